/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * For codecs that GDAL decodes: checks that a stream is complete, from its first marker to its
 * last. Their decoders stop at the last pixel that is requested, or invent missing ones, so they
 * may accept a truncated stream. Nothing is decoded here. */
#include "pipeline/codec/decode.h"

#include <errno.h>
#include <string.h>

static int create(void **out_context)
{
    *out_context = NULL;
    return 0;
}

static void destroy(void *context)
{
    (void)context;
}

/* Next marker from *at on, 0 if absent: skips bytes of a scan, stuffed zeros and restarts. */
static uint8_t next_marker(const uint8_t *in, size_t bytes, size_t *at)
{
    while (*at + 1 < bytes) {
        const uint8_t *found = memchr(in + *at, 0xff, bytes - *at - 1);
        if (found == NULL)
            return 0;
        *at = (size_t)(found - in) + 1;
        uint8_t code = in[*at];
        if (code == 0xff)
            continue; /* fill */
        ++*at;
        if (code != 0 && (code < 0xd0 || code > 0xd7))
            return code;
    }
    return 0;
}

static int run_jpeg(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
                    size_t most, const char **out_why)
{
    size_t at = 2;
    (void)context, (void)out, (void)least, (void)most;
    *out_why = "it does not begin as a JPEG stream does";
    if (in_bytes < 4 || in[0] != 0xff || in[1] != 0xd8)
        return -EBADMSG;
    *out_why = "it has no end";
    for (;;) {
        uint8_t marker = next_marker(in, in_bytes, &at);
        if (marker == 0xd9)
            return 0;
        if (marker == 0)
            return -EBADMSG;
        if (marker == 0x01 || marker == 0xd8)
            continue;
        if (in_bytes - at < 2)
            return -EBADMSG;
        size_t length = (size_t)in[at] << 8 | in[at + 1];
        if (length < 2 || length > in_bytes - at)
            return -EBADMSG;
        at += length;
    }
}

static int run_webp(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
                    size_t most, const char **out_why)
{
    (void)context, (void)out, (void)least, (void)most;
    *out_why = "it does not begin as a WebP stream does";
    if (in_bytes < 12 || memcmp(in, "RIFF", 4) != 0 || memcmp(in + 8, "WEBP", 4) != 0)
        return -EBADMSG;
    uint32_t length =
        (uint32_t)in[4] | (uint32_t)in[5] << 8 | (uint32_t)in[6] << 16 | (uint32_t)in[7] << 24;
    *out_why = "it is shorter than it declares";
    return length > in_bytes - 8 ? -EBADMSG : 0;
}

static int run_lzma(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
                    size_t most, const char **out_why)
{
    (void)context, (void)out, (void)least, (void)most;
    *out_why = "it does not begin as an XZ stream does";
    if (in_bytes < 32 || memcmp(in,
                                "\xfd"
                                "7zXZ\0",
                                6) != 0)
        return -EBADMSG;
    while (in_bytes > 2 && in[in_bytes - 1] == 0)
        in_bytes--; /* padding */
    *out_why = "it has no end";
    return memcmp(in + in_bytes - 2, "YZ", 2) == 0 ? 0 : -EBADMSG;
}

#define ENVELOPE(id, text)                                                                         \
    const struct pb_decode pb_decode_##id = {.name = text,                                         \
                                             .verifies_only = true,                                \
                                             .create = create,                                     \
                                             .destroy = destroy,                                   \
                                             .run = run_##id}

ENVELOPE(jpeg, "JPEG");
ENVELOPE(webp, "WebP");
ENVELOPE(lzma, "LZMA");
