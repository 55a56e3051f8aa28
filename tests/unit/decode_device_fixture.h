/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DECODE_DEVICE_FIXTURE_H
#define PB_DECODE_DEVICE_FIXTURE_H
/* A stream that the device's decoder, as host code, and the host's judge. */
#include "pipeline/codec/decode.h"
#include "tests/device/emulate_codecs.h"
#include "tests/tools/tiff_blocks.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

enum { FILL = 0xa5 };

static struct {
    unsigned long decoded, refused, host;
} tally;

static inline size_t whole(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Decodes a stream on both sides, out of memory of exactly its words into memory of exactly its
 * bytes. Returns the device's status. */
static inline uint32_t both(const struct tiff_block *block, unsigned number)
{
    static void *context[PB_DEVICE_CODECS];
    const struct pb_decode *decode =
        block->codec == PB_DEVICE_LZW ? &pb_decode_lzw : &pb_decode_deflate;
    const char *why = NULL;
    size_t skew = number % 16;
    uint8_t *in = aligned_alloc(16, whole(block->n + skew) + 16), *want = malloc(block->most + 1),
            *out = aligned_alloc(16, whole(block->most) + 16);
    uint32_t bytes = 0, progress = 0;
    ck_assert(in != NULL && want != NULL && out != NULL);
    if (context[block->codec] == NULL)
        ck_assert_int_eq(decode->create(&context[block->codec]), 0);
    memcpy(in + skew, block->bytes, block->n);
    memset(out, FILL, whole(block->most) + 16);
    bool good = decode->run(context[block->codec], block->bytes, block->n, want, block->least,
                            block->most, &why) == 0;
    const struct pb_decode_stream stream = {in + skew, out, block->n, block->least, block->most, 0};
    uint32_t status = emulate_decode(block->codec, number % EMULATED_SHAPES,
                                     number / EMULATED_SHAPES, &stream, NULL, &progress, &bytes);
    if (status == PB_DECODED) {
        ck_assert_msg(good, "stream %u: accepted, the host says: %s", number, why);
        ck_assert_uint_ge(bytes, block->least);
        ck_assert_uint_eq(progress, bytes);
        ck_assert_msg(memcmp(out, want, bytes) == 0, "stream %u differs", number);
    } else {
        ck_assert_uint_le(status, PB_DECODE_HOST);
        ck_assert_msg(!good || status == PB_DECODE_HOST, "stream %u: refused with %u", number,
                      status);
    }
    for (size_t i = block->most; i < whole(block->most) + 16; i++)
        ck_assert_uint_eq(out[i], FILL);
    tally.decoded += status == PB_DECODED;
    tally.refused += status != PB_DECODED;
    tally.host += status != PB_DECODED && good;
    free(in);
    free(want);
    free(out);
    return status;
}
#endif
