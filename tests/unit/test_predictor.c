/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
/* Predictors are undone here like in TIFF readers: in place, over bytes. unpredict.h, which reads
 * scenes, undoes them as well. */
#include "pipeline/codec/predictor.h"
#include "pipeline/codec/unpredict.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void undo_horizontal(uint8_t *row, size_t bytes, size_t n, size_t step)
{
    for (size_t i = step; i < n; i++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, row + i * bytes, bytes);
        memcpy(&b, row + (i - step) * bytes, bytes);
        a += b;
        memcpy(row + i * bytes, &a, bytes);
    }
}

static void undo_float(uint8_t *row, size_t bytes, size_t n, size_t step)
{
    uint8_t *planes = malloc(n * bytes);
    for (size_t i = step; i < n * bytes; i++)
        row[i] = (uint8_t)(row[i] + row[i - step]);
    memcpy(planes, row, n * bytes);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < bytes; k++)
            row[i * bytes + k] = planes[(bytes - 1 - k) * n + i];
    free(planes);
}

static void round_trip(int predictor, enum pb_type type, size_t n_px, size_t n_bands)
{
    size_t bytes = pb_type_bytes(type), n = n_px * n_bands;
    uint8_t *in = malloc(n * bytes), *out = malloc(n * bytes + 8);
    for (size_t i = 0; i < n * bytes; i++)
        in[i] = (uint8_t)(rand() >> 7);
    memset(out + n * bytes, 0x5a, 8);
    pb_predict_row(predictor, type, in, n_px, n_bands, out);
    for (size_t i = 0; i < 8; i++)
        ck_assert_uint_eq(out[n * bytes + i], 0x5a);
    uint8_t *own = malloc(n * bytes + 8), *temp = malloc(n * bytes);
    memcpy(own, out, n * bytes + 8);
    pb_unpredict_row(predictor, bytes, false, own, n_px, n_bands, temp);
    ck_assert_msg(memcmp(own, in, n * bytes) == 0, "predictor %d, type %d, %zu px, %zu bands",
                  predictor, (int)type, n_px, n_bands);
    ck_assert_mem_eq(own + n * bytes, out + n * bytes, 8);
    free(own);
    free(temp);
    if (predictor == PB_PREDICTOR_HORIZONTAL)
        undo_horizontal(out, bytes, n, n_bands);
    else if (predictor == PB_PREDICTOR_FLOAT)
        undo_float(out, bytes, n, n_bands);
    ck_assert_msg(memcmp(in, out, n * bytes) == 0, "predictor %d, type %d, %zu px, %zu bands",
                  predictor, (int)type, n_px, n_bands);
    free(in);
    free(out);
}

START_TEST(every_type_and_band_count_survives_the_round_trip)
{
    static const size_t widths[] = {1, 2, 3, 16, 63, 64, 65, 512};
    for (int type = 0; type < PB_TYPE_COUNT; type++)
        for (int predictor = 1; predictor <= 3; predictor++)
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
                for (size_t bands = 1; bands <= 5; bands++)
                    if (pb_predictor_fits(predictor, (enum pb_type)type))
                        round_trip(predictor, (enum pb_type)type, widths[w], bands);
}
END_TEST

/* Undoes a band of random bytes alone and in its row. */
static void check_band(int predictor, size_t bytes, bool swap, size_t n_bands, size_t n_px)
{
    const size_t n = n_px * n_bands, first = n_px - n_px / 3; /* all, and the first pixels only */
    uint8_t *row = malloc(n * bytes), *whole = malloc(n * bytes);
    uint8_t *expected = malloc(n_px * bytes), *out = malloc(n_px * bytes);
    for (size_t i = 0; i < n * bytes; i++)
        row[i] = (uint8_t)(rand() >> 7);
    memcpy(whole, row, n * bytes);
    pb_unpredict_row(predictor, bytes, swap, whole, n_px, n_bands, NULL);
    for (size_t b = 0; b < n_bands; b++) {
        pb_gather_samples(whole + b * bytes, bytes, n_bands, n_px, expected);
        pb_unpredict_band(predictor, bytes, swap, row + b * bytes, n_bands, n_px, out);
        ck_assert_mem_eq(out, expected, n_px * bytes);
        memset(out, 0x5a, n_px * bytes);
        pb_unpredict_band(predictor, bytes, swap, row + b * bytes, n_bands, first, out);
        ck_assert_mem_eq(out, expected, first * bytes);
        for (size_t i = first * bytes; i < n_px * bytes; i++)
            ck_assert_uint_eq(out[i], 0x5a);
    }
    free(row);
    free(whole);
    free(expected);
    free(out);
}

START_TEST(test_band_is_undone_as_in_its_row)
{
    static const size_t widths[] = {1, 2, 17, 512};
    for (size_t bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (size_t bands = 1; bands <= 5; bands++)
                for (int way = 0; way < 4; way++)
                    check_band(way % 2 == 0 ? PB_PREDICTOR_NONE : PB_PREDICTOR_HORIZONTAL, bytes,
                               way / 2 == 1, bands, widths[w]);
}
END_TEST

START_TEST(a_ramp_becomes_a_constant)
{
    uint16_t ramp[6] = {65533, 65535, 1, 3, 5, 7}, out[6];
    pb_predict_row(PB_PREDICTOR_HORIZONTAL, PB_U16, ramp, 6, 1, out);
    ck_assert_uint_eq(out[0], 65533);
    for (int i = 1; i < 6; i++)
        ck_assert_uint_eq(out[i], 2);
}
END_TEST

START_TEST(auto_takes_what_fits_the_type)
{
    for (int type = 0; type < PB_TYPE_COUNT; type++)
        ck_assert(pb_predictor_fits(pb_predictor_auto((enum pb_type)type), (enum pb_type)type));
    ck_assert_int_eq(pb_predictor_auto(PB_F32), 3);
    ck_assert_int_eq(pb_predictor_auto(PB_I16), 2);
    ck_assert(!pb_predictor_fits(3, PB_U32));
    ck_assert(!pb_predictor_fits(4, PB_F32));
    ck_assert(!pb_predictor_fits(0, PB_F32));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("predictor");
    TCase *tc = tcase_create("predictor");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, every_type_and_band_count_survives_the_round_trip);
    tcase_add_test(tc, test_band_is_undone_as_in_its_row);
    tcase_add_test(tc, a_ramp_becomes_a_constant);
    tcase_add_test(tc, auto_takes_what_fits_the_type);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
