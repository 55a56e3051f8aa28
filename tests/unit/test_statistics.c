/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads arm64 */
#include "tests/unit/product_fixture.h"
#include "pipeline/product/statistics/statistics.h"
#include "tests/unit/run_suite.h"

#include <float.h>
#include <math.h>

static const struct pb_statistics_config plain_config = {.product.kind = &pb_kind_statistics};
static const struct pb_item p_items[] = {{.num = 0}, {.num = 2}, {.num = 50}, {.num = 97.5}};
static const struct pb_statistics_config percentiles_config = {
    .product.kind = &pb_kind_statistics, .percentiles = {.items = p_items, .n = 4}};
static const struct feed simple = {128, 2, true};

static void fill(struct image *image)
{
    for (size_t b = 0; b < image->n_bands; b++)
        for (int32_t y = 0; y < image->h; y++)
            for (int32_t x = 0; x < image->w; x++) {
                float v = b == 0   ? 0.3F + 0.1F * uniform()
                          : b == 1 ? floorf(uniform() * 10000)
                                   : (uniform() - 0.5F) * ldexpf(1, (int)(rnd() % 60) - 30);
                *image_at(image, b, x, y) = rnd() % 11 == 0 ? NAN : v;
            }
}

START_TEST(agree_with_a_naive_computation)
{
    struct image image = image_create(333, 217, 3);
    struct outcome out;
    struct pb_err err = {0};
    fill(&image);
    *image_at(&image, 2, 5, 5) = INFINITY; /* not a value: counts as invalid */
    ck_assert_int_eq(feed_product(&image, &pb_product_statistics, &plain_config.product, &simple,
                                  NULL, &err, &out),
                     0);
    ck_assert_uint_eq(out.result.n_statistics, 3);
    for (size_t b = 0; b < 3; b++) {
        const struct pb_band_statistics *s = &out.statistics[b];
        size_t n = (size_t)image.w * (size_t)image.h, valid = 0;
        const float *v = image.data + b * n;
        long double sum = 0, squares = 0;
        float min = FLT_MAX, max = -FLT_MAX;
        for (size_t i = 0; i < n; i++)
            if (isfinite(v[i])) {
                valid++;
                sum += (long double)v[i];
                min = fminf(min, v[i]);
                max = fmaxf(max, v[i]);
            }
        for (size_t i = 0; i < n; i++)
            if (isfinite(v[i]))
                squares += ((long double)v[i] - sum / valid) * ((long double)v[i] - sum / valid);
        ck_assert_str_eq(s->name, image.names[b]);
        ck_assert_uint_eq(s->count, n);
        ck_assert_uint_eq(s->valid, valid);
        ck_assert(s->minimum == (double)min && s->maximum == (double)max);
        double stddev = (double)sqrtl(squares / valid);
        ck_assert_double_eq_tol(s->mean, (double)(sum / valid), 1e-14 * stddev);
        ck_assert_double_eq_tol(s->stddev, stddev, 1e-12 * stddev);
        uint64_t total = 0;
        ck_assert(s->n_buckets > 128 && s->n_buckets <= 256);
        for (uint32_t i = 0; i < s->n_buckets; i++) {
            double width = (s->histogram_max - s->histogram_min) / s->n_buckets;
            double low = s->histogram_min + width * i, high = low + width;
            uint64_t naive = 0;
            for (size_t p = 0; p < n; p++)
                naive += (double)v[p] >= low && (double)v[p] < high;
            ck_assert_uint_eq(s->bucket[i], naive);
            total += naive;
        }
        ck_assert_uint_eq(total, valid);
    }
    outcome_free(&out);
    free(image.data);
}
END_TEST

START_TEST(do_not_depend_on_tiles_order_or_threads)
{
    struct image image = image_create(700, 450, 3);
    fill(&image);
    assert_feed_does_not_matter(&image, &pb_product_statistics, &plain_config.product);
    assert_feed_does_not_matter(&image, &pb_product_statistics, &percentiles_config.product);
    free(image.data);
}
END_TEST

static int ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* With fewer values than are counted apart: of numpy's definition, exactly. */
START_TEST(percentiles_lie_between_ranks)
{
    struct image image = image_create(333, 217, 3);
    struct outcome out;
    struct pb_err err = {0};
    const size_t n = 333 * 217;
    fill(&image);
    ck_assert_int_eq(feed_product(&image, &pb_product_statistics, &percentiles_config.product,
                                  &simple, NULL, &err, &out),
                     0);
    for (size_t b = 0; b < 3; b++) {
        float *sorted = malloc(n * sizeof *sorted);
        size_t valid = 0;
        for (size_t i = 0; i < n; i++)
            if (isfinite(image.data[b * n + i]))
                sorted[valid++] = image.data[b * n + i];
        qsort(sorted, valid, sizeof *sorted, ascending);
        ck_assert_uint_eq(out.statistics[b].n_percentiles, 4);
        for (size_t i = 0; i < 4; i++) {
            const struct pb_band_percentile *one = &out.statistics[b].percentile[i];
            const double at = p_items[i].num / 100 * (double)(valid - 1);
            const size_t rank = (size_t)at;
            const double low = (double)sorted[rank], high = (double)sorted[rank + 1];
            ck_assert(one->p == p_items[i].num && one->error == 0);
            ck_assert_double_eq_tol(one->value, low + (high - low) * (at - (double)rank),
                                    1e-15 * fabs(high) + 1e-300);
        }
        free(sorted);
    }
    outcome_free(&out);
    free(image.data);
}
END_TEST

/* Values whose double sum depends on what is added first: a run that ended elsewhere would show. */
START_TEST(runs_end_at_the_same_places_whatever_the_tiles)
{
    struct image image = image_create(600, 130, 2);
    for (int32_t y = 0; y < image.h; y++)
        for (int32_t x = 0; x < image.w; x++) {
            float large = x % 128 == 0 ? 0x1p60F : x % 128 == 64 ? -0x1p60F : 1;
            *image_at(&image, 0, x, y) = large;
            *image_at(&image, 1, x, y) = x % 7 ? 1 : (float)(y % 2 ? 0x1p40 : -0x1p40);
        }
    assert_feed_does_not_matter(&image, &pb_product_statistics, &plain_config.product);
    free(image.data);
}
END_TEST

START_TEST(zero_has_no_sign)
{
    struct image image = image_create(200, 70, 1);
    struct pb_err err = {0};
    struct outcome out;
    for (int32_t i = 0; i < 200 * 70; i++)
        image.data[i] = i % 3 ? 0.0F : -0.0F;
    assert_feed_does_not_matter(&image, &pb_product_statistics, &plain_config.product);
    ck_assert_int_eq(feed_product(&image, &pb_product_statistics, &plain_config.product, &simple,
                                  NULL, &err, &out),
                     0);
    ck_assert(!signbit(out.statistics[0].minimum) && !signbit(out.statistics[0].maximum));
    ck_assert(out.statistics[0].n_buckets == 1);
    outcome_free(&out);
    free(image.data);
}
END_TEST

START_TEST(constant_band_has_no_deviation)
{
    struct image image = image_create(1000, 300, 1);
    struct pb_err err = {0};
    struct outcome out;
    for (int32_t i = 0; i < 1000 * 300; i++)
        image.data[i] = 0.1F;
    ck_assert_int_eq(feed_product(&image, &pb_product_statistics, &plain_config.product, &simple,
                                  NULL, &err, &out),
                     0);
    ck_assert(out.statistics[0].mean == (double)0.1F);
    ck_assert(out.statistics[0].stddev < 1e-16);
    outcome_free(&out);
    free(image.data);
}
END_TEST

START_TEST(band_without_a_valid_pixel_has_nulls)
{
    struct image image = image_create(64, 10, 1);
    struct pb_err err = {0};
    struct outcome out;
    for (int32_t i = 0; i < 640; i++)
        image.data[i] = NAN;
    ck_assert_int_eq(feed_product(&image, &pb_product_statistics, &plain_config.product, &simple,
                                  NULL, &err, &out),
                     0);
    ck_assert_uint_eq(out.statistics[0].valid, 0);
    ck_assert(isnan(out.statistics[0].mean));
    ck_assert_ptr_nonnull(strstr(out.bytes, "\"minimum\": null"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "\"histogram\": null"));
    ck_assert_ptr_nonnull(strstr(out.bytes, "\"valid_percent\": 0"));
    outcome_free(&out);
    free(image.data);
}
END_TEST

START_TEST(bands_and_buckets_of_the_config_are_used)
{
    char b3[] = "B3", b1[] = "B1", typo[] = "B9";
    char *bands[] = {b3, b1}, *wrong[] = {typo};
    struct pb_statistics_config config = {
        .product = {.kind = &pb_kind_statistics, .bands = bands, .n_bands = 2}, .buckets = 10};
    struct image image = image_create(100, 100, 3);
    struct pb_err err = {0};
    struct outcome out;
    fill(&image);
    ck_assert_int_eq(
        feed_product(&image, &pb_product_statistics, &config.product, &simple, NULL, &err, &out),
        0);
    ck_assert_uint_eq(out.result.n_statistics, 2);
    ck_assert_str_eq(out.statistics[0].name, "B3");
    ck_assert_str_eq(out.statistics[1].name, "B1");
    ck_assert_uint_le(out.statistics[0].n_buckets, 10);
    ck_assert_str_eq(out.result.media_type, "application/json");
    ck_assert_str_eq(out.result.file, "scene.statistics.json");
    outcome_free(&out);
    config.product.bands = wrong;
    config.product.n_bands = 1;
    ck_assert_int_lt(
        feed_product(&image, &pb_product_statistics, &config.product, &simple, NULL, &err, &out),
        0);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    free(image.data);
}
END_TEST

START_TEST(directory_that_is_gone_is_reported)
{
    struct image image = image_create(100, 100, 3);
    struct pb_err err = {0};
    struct outcome out;
    feed_directory = "/nowhere/at/all";
    ck_assert_int_eq(feed_product(&image, &pb_product_statistics, &plain_config.product, &simple,
                                  NULL, &err, &out),
                     pb_code_errno(PB_E_OUTPUT_WRITE));
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nowhere/at/all/scene."));
    free(image.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("statistics");
    TCase *tc = tcase_create("statistics");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, agree_with_a_naive_computation);
    tcase_add_test(tc, do_not_depend_on_tiles_order_or_threads);
    tcase_add_test(tc, percentiles_lie_between_ranks);
    tcase_add_test(tc, runs_end_at_the_same_places_whatever_the_tiles);
    tcase_add_test(tc, zero_has_no_sign);
    tcase_add_test(tc, constant_band_has_no_deviation);
    tcase_add_test(tc, band_without_a_valid_pixel_has_nulls);
    tcase_add_test(tc, bands_and_buckets_of_the_config_are_used);
    tcase_add_test(tc, directory_that_is_gone_is_reported);
    suite_add_tcase(suite, tc);
    (void)scratch();
    int status = run_suite(suite);
    rmdir(scratch());
    return status;
}
