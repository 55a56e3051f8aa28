/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Which blocks have strings, and what deflate's defaults make of it: no string that repeats within
 * deflate's reach is missed, noise and runs are distinguished from strings, and blocks of floats
 * are those of the encoder of runs, byte by byte. */
#include "pipeline/codec/codec.h"
#include "pipeline/codec/deflate_runs.h"
#include "pipeline/codec/deflate_strings.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512 * 512 * 2 };

static uint8_t block[BLOCK];
static struct pb_deflate_strings work;

static void noise(uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(rand() >> 8);
}

/* Noise that repeats after `period` bytes, all along. */
static void repeat(size_t period)
{
    noise(block, period);
    for (size_t i = period; i < BLOCK; i++)
        block[i] = block[i - period];
}

static size_t encoded_of(int level, const struct pb_codec_blocks *blocks)
{
    size_t capacity = pb_codec_deflate.bound(BLOCK), bytes = 0;
    void *context = NULL, *out = malloc(capacity);
    ck_assert_int_eq(pb_codec_deflate.create(level, blocks, &context), 0);
    ck_assert_int_eq(pb_codec_deflate.encode(context, block, BLOCK, out, capacity, &bytes), 0);
    pb_codec_deflate.destroy(context);
    free(out);
    return bytes;
}

static size_t encoded(int level)
{
    return encoded_of(level, &(struct pb_codec_blocks){.bytes = BLOCK});
}

START_TEST(strings_are_found_as_far_back_as_deflate_reaches)
{
    static const size_t periods[] = {37, 1000, 4096, 10000, 20480, 30000};
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        repeat(periods[i]);
        ck_assert_int_ne(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_NONE);
        ck_assert_uint_lt(encoded(pb_codec_deflate.default_level), BLOCK / 2);
    }
}
END_TEST

/* A pixel of two bytes like one above it, now and then: enough to be worth it. */
START_TEST(short_strings_among_noise_count_together)
{
    noise(block, BLOCK);
    for (size_t i = 8192; i + 12 <= BLOCK; i += 40)
        memcpy(block + i, block + i - 4096, 12);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_SOME);
}
END_TEST

START_TEST(noise_and_runs_are_no_strings)
{
    noise(block, BLOCK);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_NONE);
    for (size_t i = 0; i + 300 <= BLOCK; i += 700)
        memset(block + i, (int)(i % 251), 300);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_NONE);
    memset(block, 7, BLOCK);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_NONE);
}
END_TEST

/* Differences of a smooth surface in bytes, such as shaded relief: many short strings, which begin
 * at odd bytes, too. */
START_TEST(test_smooth_bytes_have_short_strings)
{
    enum { SIDE = 512, PERIOD = 37 };
    const struct pb_codec_blocks samples[] = {{.bytes = BLOCK, .sample_bytes = 2},
                                              {.bytes = BLOCK, .sample_bytes = 1}};
    size_t bytes[2];
    uint8_t before = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        const double x = (double)(i % SIDE), y = (double)(i / SIDE);
        const double wave = sin(x / PERIOD + sin(y / PERIOD)) + sin(y / 23 + x / 11);
        const uint8_t value = (uint8_t)(128 + 50 * wave + rand() % 100 / 100.0);
        block[i] = (uint8_t)(value - before);
        before = value;
    }
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_SOME);
    for (int i = 0; i < 2; i++)
        bytes[i] = encoded_of(pb_codec_deflate.default_level, &samples[i]);
    ck_assert_msg(20 * bytes[1] < 19 * bytes[0], "%zu of %zu", bytes[1], bytes[0]);
}
END_TEST

/* Differences of few values at random: a search costs much time and makes the block larger. */
START_TEST(test_noise_of_few_values_has_no_strings)
{
    uint8_t before = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        const uint8_t value = (uint8_t)(rand() % 4 == 0 ? rand() % 5 : 2);
        block[i] = (uint8_t)(value - before);
        before = value;
    }
    ck_assert_int_eq(pb_deflate_strings_of_bytes(&work, block, BLOCK), PB_STRINGS_NONE);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_MANY);
}
END_TEST

START_TEST(maps_of_few_values_go_to_the_thorough_encoder)
{
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = (uint8_t)((i / 9 + i / 1024 / 13) % 3);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_MANY);
}
END_TEST

/* A byte takes less than two bits there, as in a map, but there is nothing to find. */
START_TEST(noise_beside_nodata_has_no_strings)
{
    memset(block, 0, BLOCK);
    for (size_t i = 0; i < BLOCK; i += 1024)
        noise(block + i, 190);
    ck_assert_int_eq(pb_deflate_strings(&work, block, BLOCK), PB_STRINGS_NONE);
}
END_TEST

START_TEST(only_the_bytes_of_the_block_are_looked_at)
{
    for (size_t n = 1; n < 3000; n += 1 + n / 50) {
        uint8_t *own = malloc(n); /* a sanitizer sees reads past its end */
        noise(own, n);
        enum pb_strings first = pb_deflate_strings(&work, own, n);
        memset(&work, 0x5a, sizeof work);
        ck_assert_int_eq(pb_deflate_strings(&work, own, n), first);
        free(own);
    }
}
END_TEST

/* Sums of noise: matches of libdeflate cost more than the bytes that they replace. */
START_TEST(a_level_searches_where_it_pays)
{
    struct pb_deflate_runs *runs = malloc(sizeof *runs);
    uint8_t *out = malloc(pb_deflate_runs_bound(BLOCK));
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = (uint8_t)((rand() % 40 + rand() % 40 + rand() % 40) / 3);
    size_t plain = pb_deflate_runs(runs, block, BLOCK, out) + 6;
    for (int level = 1; level < 10; level += 4)
        ck_assert_uint_eq(encoded(level), plain);
    repeat(20480);
    plain = pb_deflate_runs(runs, block, BLOCK, out) + 6;
    for (int level = 1; level < 13; level++)
        ck_assert_uint_lt(encoded(level), plain / 2);
    free(out);
    free(runs);
}
END_TEST

START_TEST(floats_are_encoded_as_runs_whatever_they_are)
{
    struct pb_deflate_runs *runs = malloc(sizeof *runs);
    uint8_t *out = malloc(pb_deflate_runs_bound(BLOCK));
    repeat(1000);
    ck_assert_uint_eq(encoded(pb_codec_deflate.default_float_level),
                      pb_deflate_runs(runs, block, BLOCK, out) + 6);
    free(out);
    free(runs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deflate_strings");
    TCase *tc = tcase_create("deflate_strings");
    tcase_add_test(tc, strings_are_found_as_far_back_as_deflate_reaches);
    tcase_add_test(tc, short_strings_among_noise_count_together);
    tcase_add_test(tc, noise_and_runs_are_no_strings);
    tcase_add_test(tc, test_smooth_bytes_have_short_strings);
    tcase_add_test(tc, test_noise_of_few_values_has_no_strings);
    tcase_add_test(tc, maps_of_few_values_go_to_the_thorough_encoder);
    tcase_add_test(tc, noise_beside_nodata_has_no_strings);
    tcase_add_test(tc, only_the_bytes_of_the_block_are_looked_at);
    tcase_add_test(tc, a_level_searches_where_it_pays);
    tcase_add_test(tc, floats_are_encoded_as_runs_whatever_they_are);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
