/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * zlib streams by libdeflate, which verifies the Adler-32. "Insufficient space" is a failure here:
 * the output is then incomplete. */
#include "pipeline/codec/decode.h"

#include <errno.h>

#include <libdeflate.h>

static int create(void **out_context)
{
    *out_context = libdeflate_alloc_decompressor();
    return *out_context != NULL ? 0 : -ENOMEM;
}

static void destroy(void *context)
{
    if (context != NULL)
        libdeflate_free_decompressor(context);
}

static int run(void *context, const uint8_t *in, size_t in_bytes, uint8_t *out, size_t least,
               size_t most, const char **out_why)
{
    size_t used = 0, made = 0;
    enum libdeflate_result result =
        libdeflate_zlib_decompress_ex(context, in, in_bytes, out, most, &used, &made);
    if (result == LIBDEFLATE_SUCCESS && made >= least)
        return 0;
    if (result == LIBDEFLATE_SUCCESS)
        *out_why = pb_decode_short;
    else if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
        *out_why = pb_decode_long;
    else
        *out_why = "it is cut short, not a valid zlib stream, or its Adler-32 is wrong";
    return -EBADMSG;
}

const struct pb_decode pb_decode_deflate = {
    .name = "deflate",
    .context_bytes = 16 << 10,
    .create = create,
    .destroy = destroy,
    .run = run,
};
