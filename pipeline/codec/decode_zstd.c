/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Zstandard frames; a frame's checksum is verified if present. Frames are decoded in one
 * piece, therefore no window is allocated, whatever size a frame requests. */
#include "pipeline/codec/decode.h"

#include <errno.h>

#include <zstd.h>
#include <zstd_errors.h>

static int create(void **out_context)
{
    *out_context = ZSTD_createDCtx();
    return *out_context != NULL ? 0 : -ENOMEM;
}

static void destroy(void *context)
{
    (void)ZSTD_freeDCtx(context);
}

static int run(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
               size_t most, const char **out_why)
{
    size_t made = 0;
    do {
        size_t frame = ZSTD_findFrameCompressedSize(in, in_bytes);
        if (ZSTD_isError(frame) || frame == 0) {
            *out_why = in_bytes == 0 ? pb_decode_short : pb_decode_bad;
            return -EBADMSG;
        }
        size_t n = ZSTD_decompressDCtx(context, out + made, most - made, in, frame);
        if (ZSTD_isError(n)) {
            *out_why = ZSTD_getErrorCode(n) == ZSTD_error_dstSize_tooSmall ? pb_decode_long
                                                                           : ZSTD_getErrorName(n);
            return -EBADMSG;
        }
        made += n;
        in += frame;
        in_bytes -= frame;
    } while (made < least);
    return 0;
}

const struct pb_decode pb_decode_zstd = {
    .name = "zstd",
    .context_bytes = 192 << 10,
    .create = create,
    .destroy = destroy,
    .run = run,
};
