/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Blocks without a valid pixel: given as planes of NaN or as none, after each other and in any
 * size. */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/mask_encoder.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64 };

static float pixels[SIDE * SIDE];

static struct pb_block_format format_of(const struct pb_painter *painter)
{
    struct pb_block_format format = {.block_px = SIDE,
                                     .n_bands = painter != NULL ? pb_painter_channels(painter) : 1,
                                     .n_planes = 1,
                                     .painter = painter,
                                     .predictor = 1,
                                     .codec = &pb_codec_none};
    ck_assert_int_eq(pb_quantizer_init(&format.quantizer, painter != NULL ? PB_U8 : PB_F32,
                                       painter != NULL ? 0 : (double)NAN),
                     0);
    return format;
}

static struct pb_block_pixels whole(const float *const *planes, int32_t w, int32_t h)
{
    return (struct pb_block_pixels){planes, NULL, SIDE, SIDE, w, h};
}

/* Encodes NaN by a fresh encoder. */
static void *fresh(const struct pb_block_format *format, int32_t w, int32_t h, size_t *out_bytes)
{
    struct pb_block_encoder *encoder = NULL;
    const float *planes[] = {pixels};
    const void *data;
    for (size_t i = 0; i < SIDE * SIDE; i++)
        pixels[i] = NAN;
    ck_assert_int_eq(pb_block_encoder_create(format, NULL, &encoder), 0);
    const struct pb_block_pixels px = whole(planes, w, h);
    ck_assert_int_eq(pb_block_encode(encoder, &px, NULL, &data, out_bytes), 0);
    void *copy = malloc(*out_bytes);
    memcpy(copy, data, *out_bytes);
    pb_block_encoder_destroy(encoder);
    return copy;
}

static void expect_alike(const struct pb_block_format *format)
{
    static const int32_t sizes[][2] = {{SIDE, SIDE}, {SIDE, SIDE}, {17, SIDE}, {SIDE, 5}, {3, 4}};
    struct pb_block_encoder *encoder = NULL;
    const float *planes[] = {pixels};
    ck_assert_int_eq(pb_block_encoder_create(format, NULL, &encoder), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int given = 0; given < 2; given++) {
            const void *data;
            size_t bytes, wanted;
            int32_t w = sizes[i][0], h = sizes[i][1];
            void *same = fresh(format, w, h, &wanted);
            const struct pb_block_pixels px = whole(given ? planes : NULL, w, h);
            ck_assert_int_eq(pb_block_encode(encoder, &px, NULL, &data, &bytes), 0);
            ck_assert_uint_eq(bytes, wanted);
            ck_assert_mem_eq(data, same, bytes);
            free(same);
        }
    pb_block_encoder_destroy(encoder);
}

START_TEST(no_planes_are_planes_without_a_valid_pixel)
{
    struct pb_block_format format = format_of(NULL);
    expect_alike(&format);
}
END_TEST

/* Cut anywhere, with its lower rows elsewhere; also with all of them in the upper part. */
START_TEST(block_in_two_parts_has_the_bytes_of_one_part)
{
    struct pb_block_format format = format_of(NULL);
    struct pb_block_encoder *encoder = NULL;
    const float *one[] = {pixels};
    for (size_t i = 0; i < SIDE * SIDE; i++)
        pixels[i] = i % 7 == 0 ? NAN : (float)(i % 100);
    ck_assert_int_eq(pb_block_encoder_create(&format, NULL, &encoder), 0);
    for (int32_t split = 1; split <= SIDE; split += 5) {
        const void *data;
        size_t bytes, wanted;
        struct pb_block_pixels px = whole(one, 9, SIDE - 3);
        ck_assert_int_eq(pb_block_encode(encoder, &px, NULL, &data, &wanted), 0);
        void *same = malloc(wanted);
        memcpy(same, data, wanted);
        const size_t n = (size_t)(SIDE - split) * SIDE;
        float *below = malloc(n * sizeof *below + 1);
        memcpy(below, pixels + split * SIDE, n * sizeof *below);
        const float *lower[] = {below};
        px.lower = lower;
        px.split = split;
        ck_assert_int_eq(pb_block_encode(encoder, &px, NULL, &data, &bytes), 0);
        ck_assert_uint_eq(bytes, wanted);
        ck_assert_mem_eq(data, same, bytes);
        free(below);
        free(same);
    }
    pb_block_encoder_destroy(encoder);
}
END_TEST

START_TEST(ramp_colours_invalid_pixels_but_not_outside_ones)
{
    const struct pb_ramp_stop stops[] = {{0, false, {0, 0, 0, 255}}, {1, false, {9, 9, 9, 255}}};
    const struct pb_ramp ramp = {.stop = stops, .n = 2, .invalid = {255, 0, 0, 255}};
    const uint8_t *red = ramp.invalid;
    struct pb_ramp_table *table = pb_ramp_table_create(&ramp, 0, 1);
    const struct pb_painter painter = {
        .n_planes = 1, .has_ramp = true, .ramp = table, .alpha = true};
    struct pb_block_format format = format_of(&painter);
    size_t bytes;
    uint8_t *block = fresh(&format, 17, SIDE, &bytes);
    ck_assert_mem_eq(block, red, 4);
    ck_assert_mem_ne(block + (size_t)17 * 4, red, 4);
    free(block);
    expect_alike(&format);
    pb_ramp_table_destroy(table);
}
END_TEST

START_TEST(a_mask_of_no_planes_is_zero)
{
    struct pb_mask_encoder *encoder = NULL;
    const float *planes[] = {pixels};
    const unsigned char zero[SIDE * SIDE / 8] = {0};
    const void *data;
    size_t bytes;
    for (size_t i = 0; i < SIDE * SIDE; i++)
        pixels[i] = 1;
    ck_assert_int_eq(pb_mask_encoder_create(&pb_codec_none, SIDE, 1, false, NULL, &encoder), 0);
    const struct pb_block_pixels all = whole(planes, SIDE, SIDE), none = whole(NULL, SIDE, SIDE);
    ck_assert_int_eq(pb_mask_encode(encoder, &all, NULL, &data, &bytes), 0);
    ck_assert_uint_eq(((const unsigned char *)data)[0], 255);
    ck_assert_int_eq(pb_mask_encode(encoder, &none, NULL, &data, &bytes), 0);
    ck_assert_uint_eq(bytes, sizeof zero);
    ck_assert_mem_eq(data, zero, bytes);
    pb_mask_encoder_destroy(encoder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("block_encoder");
    TCase *tc = tcase_create("block_encoder");
    tcase_add_test(tc, no_planes_are_planes_without_a_valid_pixel);
    tcase_add_test(tc, block_in_two_parts_has_the_bytes_of_one_part);
    tcase_add_test(tc, ramp_colours_invalid_pixels_but_not_outside_ones);
    tcase_add_test(tc, a_mask_of_no_planes_is_zero);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
