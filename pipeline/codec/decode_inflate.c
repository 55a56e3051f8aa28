/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/codec/decode_inflate.h"

#include "pipeline/codec/decode.h"

#include <errno.h>
#include <stdlib.h>

#include <zlib.h>

struct pb_inflate {
    z_stream stream;
    uint64_t made;
    uint8_t out[1 << 16];
};

int pb_inflate_create(struct pb_inflate **out_inflate)
{
    struct pb_inflate *inflate = calloc(1, sizeof *inflate);
    if (inflate == NULL || inflateInit(&inflate->stream) != Z_OK) {
        free(inflate);
        return -ENOMEM;
    }
    *out_inflate = inflate;
    return 0;
}

void pb_inflate_destroy(struct pb_inflate *inflate)
{
    if (inflate == NULL)
        return;
    (void)inflateEnd(&inflate->stream);
    free(inflate);
}

int pb_inflate_feed(struct pb_inflate *state, const uint8_t *in, size_t bytes, uint64_t least,
                    uint64_t most, const char **out_why)
{
    z_stream *z = &state->stream;
    int rc = Z_OK;
    z->next_in = (uint8_t *)(uintptr_t)in;
    z->avail_in = (uInt)bytes;
    do {
        z->next_out = state->out;
        z->avail_out = sizeof state->out;
        rc = inflate(z, Z_NO_FLUSH);
        state->made += sizeof state->out - z->avail_out;
        *out_why = pb_decode_long;
        if (state->made > most)
            return -EBADMSG;
    } while (rc == Z_OK && z->avail_out == 0);
    if (rc == Z_OK || rc == Z_BUF_ERROR)
        return 0; /* needs more input */
    *out_why = rc == Z_STREAM_END ? pb_decode_short
                                  : "it is not a valid zlib stream, or its Adler-32 is wrong";
    return rc == Z_STREAM_END && state->made >= least ? 1 : -EBADMSG;
}
