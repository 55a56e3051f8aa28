/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
/* Blocks of the encoder of pairs are decoded by zlib, libdeflate and both own inflaters, bit for
 * bit; strings are found as far back as deflate reaches and no farther; nothing outside of the
 * block is read, and output is within its bound. */
#include "pipeline/codec/decode.h"
#include "pipeline/codec/deflate_pairs.h"
#include "pipeline/codec/deflate_runs.h"
#include "pipeline/codec/inflate_pair.h"

#include "run_suite.h"
#include "tests/tools/mutate.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <libdeflate.h>
#include <zlib.h>

enum { LARGEST = 3 * PB_DEFLATE_RUNS_CHUNK, GUARD = 64, HEAD = 2, SUM = 4, KINDS = 9 };

static struct pb_deflate_pairs work;
static uint8_t block[LARGEST], decoded[LARGEST + GUARD];

static int difference(struct mutate *m, int most)
{
    return (int)mutate_below(m, (size_t)most) + (int)mutate_below(m, (size_t)most) - most;
}

/* Samples after predictor 2 of various noise, noise, flat, sparse, periods of any length, runs of
 * any length, few values. */
static void make(struct mutate *m, size_t kind, size_t bytes)
{
    const size_t period = 1 + mutate_below(m, kind == 5 ? 12 : 40000);
    size_t left = 0;
    uint8_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        const uint64_t r = mutate_next(m);
        const int sample = i % 2 == 0 ? difference(m, kind == 0 ? 20 : 90) : 0;
        if (kind < 2 && i % 2 == 0) {
            block[i] = (uint8_t)sample;
            if (i + 1 < bytes)
                block[++i] = (uint8_t)(sample >> 8);
        } else if (kind == 2)
            block[i] = (uint8_t)r;
        else if (kind == 3)
            block[i] = 0;
        else if (kind == 4)
            block[i] = (uint8_t)((r & 15) == 0 ? r >> 8 : 0);
        else if (kind < 7)
            block[i] = (uint8_t)(i < period ? r : (r & 255) == 0 ? r >> 9 : block[i - period]);
        else if (kind == 7) {
            left = left > 0 ? left - 1 : mutate_below(m, (r & 7) == 0 ? 3000 : 12);
            value = left > 0 ? value : (uint8_t)(r >> 8);
            block[i] = value;
        } else
            block[i] = (uint8_t)(i / 7 % 3 + (r & 1));
    }
}

static void decode_by_zlib(const uint8_t *in, size_t in_bytes, size_t bytes)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)in_bytes};
    z.next_out = decoded, z.avail_out = (uInt)bytes;
    ck_assert_int_eq(inflateInit(&z), Z_OK);
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    ck_assert_uint_eq(z.total_out, bytes);
    (void)inflateEnd(&z);
    ck_assert_int_eq(memcmp(decoded, block, bytes), 0);
}

static void decode_by_both(const uint8_t *in, size_t in_bytes, size_t bytes)
{
    struct libdeflate_decompressor *one = libdeflate_alloc_decompressor();
    memset(decoded, 0x5a, bytes);
    ck_assert_int_eq(libdeflate_zlib_decompress(one, in, in_bytes, decoded, bytes, NULL),
                     LIBDEFLATE_SUCCESS);
    ck_assert_int_eq(memcmp(decoded, block, bytes), 0);
    libdeflate_free_decompressor(one);
    struct pb_inflate_pair *pair;
    enum pb_inflate_end end;
    size_t made;
    ck_assert_int_eq(pb_inflate_pair_create(&pair), 0);
    memset(decoded, 0x5a, bytes);
    pb_inflate_pair_start(pair, 0, in, in_bytes, decoded, bytes);
    ck_assert_uint_eq(pb_inflate_pair_next(pair, &end, &made), 0);
    ck_assert_int_eq(end, PB_INFLATE_COMPLETE);
    ck_assert_uint_eq(made, bytes);
    ck_assert_int_eq(memcmp(decoded, block, bytes), 0);
    pb_inflate_pair_destroy(pair);
}

/* Encodes a copy that ends where its memory ends. Returns the size without framing. */
static size_t check(size_t bytes)
{
    const size_t bound = pb_deflate_runs_bound(bytes);
    uint8_t *in = malloc(bytes), *out = malloc(HEAD + bound + SUM + GUARD);
    memcpy(in, block, bytes);
    memset(out, 0x5a, HEAD + bound + SUM + GUARD);
    memset(&work, 0xa5, sizeof work);
    const size_t n = pb_deflate_pairs(&work, in, bytes, out + HEAD);
    ck_assert_uint_le(n, bound);
    for (size_t i = 0; i < SUM + GUARD; i++)
        ck_assert_uint_eq(out[HEAD + bound + i], 0x5a);
    out[0] = 0x78, out[1] = 0x01;
    const uint32_t sum = libdeflate_adler32(1, in, bytes);
    for (int i = 0; i < SUM; i++)
        out[HEAD + n + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
    decode_by_zlib(out, HEAD + n + SUM, bytes);
    decode_by_both(out, HEAD + n + SUM, bytes);
    free(in);
    free(out);
    return n;
}

START_TEST(test_pairs_of_all_kinds_are_decoded)
{
    struct mutate m = {.state = (uint64_t)_i + 1};
    for (size_t kind = 0; kind < KINDS; kind++) {
        make(&m, kind, LARGEST);
        check(1 + mutate_below(&m, LARGEST));
        check(1 + mutate_below(&m, 3000));
    }
}
END_TEST

START_TEST(test_pairs_of_each_small_size_are_decoded)
{
    struct mutate m = {.state = 7};
    for (size_t kind = 0; kind < KINDS; kind++) {
        make(&m, kind, 200);
        for (size_t bytes = 1; bytes < 100; bytes++)
            check(bytes);
    }
}
END_TEST

START_TEST(test_pairs_at_ends_of_chunks_are_decoded)
{
    struct mutate m = {.state = 9};
    for (size_t kind = 0; kind < KINDS; kind++) {
        make(&m, kind, LARGEST);
        for (size_t bytes = PB_DEFLATE_RUNS_CHUNK - 3; bytes <= PB_DEFLATE_RUNS_CHUNK + 9; bytes++)
            check(bytes);
        check(2 * (size_t)PB_DEFLATE_RUNS_CHUNK);
        check(LARGEST);
    }
}
END_TEST

START_TEST(test_noise_of_pairs_is_stored)
{
    struct mutate m = {.state = 11};
    make(&m, 2, LARGEST);
    ck_assert_uint_le(check(LARGEST), LARGEST + 3 * 6);
}
END_TEST

static void repeat(size_t period)
{
    struct mutate m = {.state = 13};
    make(&m, 2, period);
    for (size_t i = period; i < LARGEST; i++)
        block[i] = block[i - period];
}

START_TEST(test_pairs_reach_as_far_as_deflate)
{
    static const size_t periods[] = {2, 6, 1000, 4096, 20480, 32000, 32768};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        repeat(periods[i]);
        ck_assert_uint_le(check(LARGEST), periods[i] + LARGEST / 50);
    }
    repeat(32770);
    ck_assert_uint_gt(check(LARGEST), LARGEST - LARGEST / 100);
}
END_TEST

/* Words of two pairs repeat, longer strings do not. */
START_TEST(test_short_strings_make_blocks_smaller)
{
    static struct pb_deflate_runs runs;
    static uint8_t out[LARGEST + LARGEST / 100];
    struct mutate m = {.state = 15};
    make(&m, 0, LARGEST);
    const size_t plain = pb_deflate_runs(&runs, block, LARGEST, out);
    ck_assert_uint_lt(check(LARGEST), plain - plain / 25);
}
END_TEST

START_TEST(test_runs_cost_next_to_nothing)
{
    memset(block, 7, LARGEST);
    ck_assert_uint_lt(check(LARGEST), LARGEST / 500);
    for (size_t i = 0; i + 999 < LARGEST; i += 999) /* odd lengths at odd positions */
        memset(block + i, (int)(i % 251), 999);
    ck_assert_uint_lt(check(LARGEST), LARGEST / 90);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deflate_pairs");
    TCase *tc = tcase_create("deflate_pairs");
    tcase_add_loop_test(tc, test_pairs_of_all_kinds_are_decoded, 0, 20);
    tcase_add_test(tc, test_pairs_of_each_small_size_are_decoded);
    tcase_add_test(tc, test_pairs_at_ends_of_chunks_are_decoded);
    tcase_add_test(tc, test_noise_of_pairs_is_stored);
    tcase_add_test(tc, test_pairs_reach_as_far_as_deflate);
    tcase_add_test(tc, test_short_strings_make_blocks_smaller);
    tcase_add_test(tc, test_runs_cost_next_to_nothing);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
