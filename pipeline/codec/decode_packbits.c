/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * PackBits: a count n, then n + 1 literal bytes (0 <= n) or one byte 1 - n times (n < 0); -128
 * has no meaning. There is no end code: a stream ends with its bytes. One odd byte may follow, for
 * block sizes rounded up to even ones. */
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

static int run(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
               size_t most, const char **out_why)
{
    size_t at = 0, made = 0;
    (void)context;
    while (at < in_bytes && !(made == most && in_bytes - at == 1)) {
        uint8_t code = in[at++];
        if (code == 128)
            continue;
        size_t n = code < 128 ? code + 1u : 257u - code;
        size_t takes = code < 128 ? n : 1;
        if (takes > in_bytes - at) {
            *out_why = made >= least ? pb_decode_bad : pb_decode_short;
            return -EBADMSG;
        }
        if (n > most - made) {
            *out_why = pb_decode_long;
            return -EBADMSG;
        }
        if (code < 128)
            memcpy(out + made, in + at, n);
        else
            memset(out + made, in[at], n);
        at += takes;
        made += n;
    }
    *out_why = pb_decode_short;
    return made >= least ? 0 : -EBADMSG;
}

const struct pb_decode pb_decode_packbits = {
    .name = "PackBits",
    .context_bytes = 0,
    .create = create,
    .destroy = destroy,
    .run = run,
};
