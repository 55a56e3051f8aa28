/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Blocks of float32 rows by deflate's encoder of planes: libdeflate, zlib and the two lanes of
 * inflate_pair.h decode them; they are smaller than those of runs; all other blocks are the ones of
 * runs, byte by byte. */
#include "kernels/codec/planes_format.h"
#include "pipeline/codec/codec.h"
#include "pipeline/codec/inflate_pair.h"
#include "pipeline/codec/predictor.h"

#include "run_suite.h"

#include <check.h>
#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Values of pixels: a noisy ratio of two bands, everywhere or with NaN in ... */
enum values {
    RATIO,
    TWO_OF_FIVE, /* two of five rows */
    LAST_ROWS,   /* the lower half */
    CLOUDS,      /* spots in all rows */
    NOTHING,     /* all rows */
    INTEGERS,    /* whole numbers: the lowest planes are zeros */
    SMOOTH,      /* no noise */
    UNSEEN,      /* the ratio in each eighth row, any bits in the others */
    KINDS
};

struct case_of_rows {
    size_t side, bands;
};
static const struct case_of_rows shapes[] = {{128, 1}, {512, 1},  {256, 2}, {64, 20},
                                             {72, 9},  {136, 12}, {64, 64}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct encoded {
    uint8_t *raw, *out;
    size_t raw_bytes, bytes;
};

static float ratio(void)
{
    const float red = 1500 + (float)(rand() % 40), near = 3000 + (float)(rand() % 50000) / 1000;
    return (near - red) / (near + red);
}

static float value_of(enum values values, size_t x, size_t y, size_t side)
{
    switch (values) {
    case TWO_OF_FIVE:
        return y % 5 < 2 ? NAN : ratio();
    case LAST_ROWS:
        return y >= side / 2 ? NAN : ratio();
    case CLOUDS:
        return (x / 24 + y / 24) % 3 == 0 ? NAN : ratio();
    case NOTHING:
        return NAN;
    case INTEGERS:
        return (float)(rand() % 4000);
    case SMOOTH:
        return 100.0f + sinf((float)x * 0.01f) + (float)y;
    case UNSEEN: {
        const uint32_t bits = (uint32_t)rand() << 12 ^ (uint32_t)rand();
        float any;
        memcpy(&any, &bits, sizeof any);
        return y % 8 == 0 ? ratio() : any;
    }
    default:
        return ratio();
    }
}

/* A block of predicted rows. */
static uint8_t *block_of(const struct case_of_rows *shape, enum values values, size_t *out_bytes)
{
    const size_t row_bytes = shape->side * shape->bands * sizeof(float);
    float *row = malloc(row_bytes);
    uint8_t *raw = malloc(row_bytes * shape->side);
    for (size_t y = 0; y < shape->side; y++) {
        for (size_t i = 0; i < shape->side * shape->bands; i++)
            row[i] = value_of(values, i / shape->bands, y, shape->side);
        pb_predict_row(PB_PREDICTOR_FLOAT, PB_F32, row, shape->side, (uint32_t)shape->bands,
                       raw + y * row_bytes);
    }
    free(row);
    *out_bytes = row_bytes * shape->side;
    return raw;
}

/* Encodes a copy twice with one context, into memory of exactly the bound. */
static struct encoded encode(int level, const struct pb_codec_blocks *blocks, const uint8_t *raw)
{
    struct encoded e = {.raw_bytes = blocks->bytes};
    const size_t bound = pb_codec_deflate.bound(blocks->bytes);
    void *context = NULL;
    e.raw = malloc(blocks->bytes);
    memcpy(e.raw, raw, blocks->bytes);
    e.out = malloc(bound);
    ck_assert_int_eq(pb_codec_deflate.create(level, blocks, &context), 0);
    for (int again = 0; again < 2; again++)
        ck_assert_int_eq(
            pb_codec_deflate.encode(context, e.raw, e.raw_bytes, e.out, bound, &e.bytes), 0);
    pb_codec_deflate.destroy(context);
    return e;
}

static void encoded_free(struct encoded *e)
{
    free(e->raw);
    free(e->out);
}

static void check_decoders(const struct encoded *e)
{
    struct libdeflate_decompressor *one = libdeflate_alloc_decompressor();
    struct pb_inflate_pair *pair;
    enum pb_inflate_end end;
    uint8_t *back[2] = {calloc(e->raw_bytes, 1), calloc(e->raw_bytes, 1)};
    uLongf made = e->raw_bytes;
    size_t bytes = 0;
    ck_assert_int_eq(
        libdeflate_zlib_decompress(one, e->out, e->bytes, back[0], e->raw_bytes, &bytes), 0);
    ck_assert(bytes == e->raw_bytes && memcmp(back[0], e->raw, bytes) == 0);
    ck_assert_int_eq(uncompress(back[1], &made, e->out, e->bytes), Z_OK);
    ck_assert(made == e->raw_bytes && memcmp(back[1], e->raw, made) == 0);
    ck_assert_int_eq(pb_inflate_pair_create(&pair), 0);
    for (unsigned lane = 0; lane < 2; lane++) {
        memset(back[lane], 0, e->raw_bytes);
        pb_inflate_pair_start(pair, lane, e->out, e->bytes, back[lane], e->raw_bytes);
    }
    for (int i = 0; i < 2; i++) {
        unsigned lane = pb_inflate_pair_next(pair, &end, &bytes);
        ck_assert_int_eq(end, PB_INFLATE_COMPLETE);
        ck_assert(bytes == e->raw_bytes && memcmp(back[lane], e->raw, bytes) == 0);
    }
    pb_inflate_pair_destroy(pair);
    libdeflate_free_decompressor(one);
    free(back[0]);
    free(back[1]);
}

static struct pb_codec_blocks blocks_of(const struct case_of_rows *shape, uint32_t planes)
{
    const size_t row_bytes = shape->side * shape->bands * sizeof(float);
    return (struct pb_codec_blocks){
        .bytes = row_bytes * shape->side, .planes = planes, .row_bytes = row_bytes};
}

START_TEST(test_planes_are_smaller_than_runs_or_runs)
{
    const struct case_of_rows *shape = &shapes[_i % SHAPES];
    const enum values values = (enum values)(_i / SHAPES);
    const struct pb_codec_blocks with = blocks_of(shape, 4), without = blocks_of(shape, 0);
    size_t bytes;
    uint8_t *raw = block_of(shape, values, &bytes);
    ck_assert_uint_eq(bytes, with.bytes);
    struct encoded planes = encode(pb_codec_deflate.default_float_level, &with, raw);
    struct encoded runs = encode(pb_codec_deflate.default_float_level, &without, raw);
    check_decoders(&planes);
    const bool equal = planes.bytes == runs.bytes && memcmp(planes.out, runs.out, runs.bytes) == 0;
    ck_assert(equal || planes.bytes < runs.bytes);
    if ((values == RATIO || values == LAST_ROWS) && with.row_bytes >= 2048)
        ck_assert_msg(50 * planes.bytes < 49 * runs.bytes, "%zu of %zu", planes.bytes, runs.bytes);
    if (values == CLOUDS || values == INTEGERS || values == UNSEEN)
        ck_assert(equal);
    encoded_free(&planes);
    encoded_free(&runs);
    free(raw);
}
END_TEST

/* Levels below those of libdeflate alone take planes where a search for strings gains nothing. */
START_TEST(test_levels_take_planes_of_noise)
{
    const struct case_of_rows shape = {512, 1};
    const struct pb_codec_blocks blocks = blocks_of(&shape, 4);
    size_t bytes;
    uint8_t *raw = block_of(&shape, RATIO, &bytes);
    struct encoded first = encode(pb_codec_deflate.default_float_level, &blocks, raw);
    for (int level = 1; level <= 12; level++) {
        struct encoded e = encode(level, &blocks, raw);
        check_decoders(&e);
        ck_assert(level < 10 ? e.bytes == first.bytes : e.bytes > first.bytes);
        encoded_free(&e);
    }
    encoded_free(&first);
    free(raw);
}
END_TEST

/* A sample of few rows may be too large as planes and is then encoded by runs. The block still has
 * the code of its plan. */
START_TEST(test_levels_keep_the_code_of_the_plan)
{
    static const struct case_of_rows few[] = {{128, 8}, {128, 16}, {256, 4}, {256, 8}, {64, 16}};
    const struct pb_codec_blocks blocks = blocks_of(&few[_i], 4);
    uint8_t *raw = malloc(blocks.bytes);
    uint32_t seed = 1;
    for (size_t i = 0; i < blocks.bytes; i++) {
        const size_t x = i % blocks.row_bytes;
        seed = seed * 1664525u + 1013904223u;
        const uint32_t a = seed >> 8 & 63, b = seed >> 14 & 63, c = seed >> 20 & 63;
        raw[i] = x < blocks.row_bytes / 4   ? (uint8_t)(a == 0 ? b % 4 : 0)
                 : x < blocks.row_bytes / 2 ? (uint8_t)(a + b + c - 95)
                                            : (uint8_t)(seed >> 24);
    }
    for (int level = 1; level < 10; level++) {
        struct encoded e = encode(level, &blocks, raw);
        check_decoders(&e);
        encoded_free(&e);
    }
    free(raw);
}
END_TEST

/* Rows that repeat: a search for strings finds them. */
START_TEST(test_levels_find_strings_of_floats)
{
    const struct case_of_rows shape = {128, 4};
    const struct pb_codec_blocks blocks = blocks_of(&shape, 4);
    size_t bytes;
    uint8_t *raw = block_of(&shape, RATIO, &bytes);
    for (size_t at = 2 * blocks.row_bytes; at < bytes; at++)
        raw[at] = raw[at - 2 * blocks.row_bytes];
    struct encoded e = encode(6, &blocks, raw);
    check_decoders(&e);
    ck_assert_uint_lt(e.bytes, bytes / 10);
    encoded_free(&e);
    free(raw);
}
END_TEST

/* Means of noise around each pixel have strings that only a search finds: planes are smaller than
 * runs, but not clearly smaller than pairs. */
START_TEST(test_levels_search_filtered_noise)
{
    enum { SIDE = 512, WINDOW = 15, WIDE = SIDE + WINDOW - 1 };
    const struct case_of_rows shape = {SIDE, 1};
    const struct pb_codec_blocks blocks = blocks_of(&shape, 4);
    uint32_t *sums = calloc((size_t)WIDE * SIDE, sizeof *sums); /* column sums */
    uint8_t *raw = malloc(blocks.bytes);
    for (size_t y = 0; y < WIDE; y++)
        for (size_t x = 0; x < WIDE; x++) {
            const uint32_t value = 1000 + (uint32_t)rand() % 100;
            for (size_t to = y < WINDOW ? 0 : y - WINDOW + 1; to <= y && to < SIDE; to++)
                sums[to * WIDE + x] += value;
        }
    for (size_t y = 0; y < SIDE; y++) {
        float row[SIDE];
        for (size_t x = 0; x < SIDE; x++) {
            uint32_t sum = 0;
            for (size_t k = 0; k < WINDOW; k++)
                sum += sums[y * WIDE + x + k];
            row[x] = (float)sum / (WINDOW * WINDOW);
        }
        pb_predict_row(PB_PREDICTOR_FLOAT, PB_F32, row, SIDE, 1, raw + y * blocks.row_bytes);
    }
    struct encoded planes = encode(pb_codec_deflate.default_float_level, &blocks, raw);
    struct encoded searched = encode(6, &blocks, raw);
    check_decoders(&searched);
    ck_assert_msg(100 * searched.bytes < 99 * planes.bytes, "%zu of %zu", searched.bytes,
                  planes.bytes);
    encoded_free(&searched);
    encoded_free(&planes);
    free(sums);
    free(raw);
}
END_TEST

/* Other numbers of planes, rows that are too short or too long, and a block with a part of a row.
 */
START_TEST(test_other_layouts_are_encoded_by_runs)
{
    const struct case_of_rows shape = {128, 4};
    const int level = pb_codec_deflate.default_float_level;
    struct pb_codec_blocks blocks = blocks_of(&shape, 0);
    const size_t row_bytes[] = {2048, 256, 1000, 262144, 2048};
    size_t bytes;
    uint8_t *raw = block_of(&shape, RATIO, &bytes);
    for (int i = 0; i < 5; i++) {
        blocks.bytes = bytes - (i == 4 ? 1 : 0);
        blocks.planes = 0;
        struct encoded want = encode(level, &blocks, raw);
        blocks.planes = i == 0 ? 8 : 4;
        blocks.row_bytes = row_bytes[i];
        struct encoded got = encode(level, &blocks, raw);
        ck_assert(got.bytes == want.bytes && memcmp(got.out, want.out, got.bytes) == 0);
        encoded_free(&want);
        encoded_free(&got);
    }
    free(raw);
}
END_TEST

/* Devices sort counts of 23 bits. */
START_TEST(test_large_blocks_count_fewer_rows)
{
    ck_assert_uint_eq(pb_planes_every(2048, 512), PB_PLANES_EVERY);
    ck_assert_uint_eq(pb_planes_every(40960, 512), PB_PLANES_EVERY);
    for (uint64_t row_bytes = 512; row_bytes <= 131056; row_bytes += 16)
        for (uint32_t rows = 8; rows <= 65536; rows *= 2) {
            const uint32_t every = pb_planes_every(row_bytes, rows);
            ck_assert_uint_lt((rows + every - 1) / every * row_bytes, 1 << 23);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("deflate_planes");
    TCase *tc = tcase_create("deflate_planes");
    tcase_add_loop_test(tc, test_planes_are_smaller_than_runs_or_runs, 0, SHAPES * KINDS);
    tcase_add_test(tc, test_levels_take_planes_of_noise);
    tcase_add_loop_test(tc, test_levels_keep_the_code_of_the_plan, 0, 5);
    tcase_add_test(tc, test_levels_find_strings_of_floats);
    tcase_add_test(tc, test_levels_search_filtered_noise);
    tcase_add_test(tc, test_large_blocks_count_fewer_rows);
    tcase_add_test(tc, test_other_layouts_are_encoded_by_runs);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
