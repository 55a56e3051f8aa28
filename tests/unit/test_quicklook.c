/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/product/joint.h"
#include "pipeline/product/quicklook/quicklook.h"
#include "pipeline/product/quicklook/shrink.h"
#include "tests/unit/product_fixture.h"
#include "tests/unit/run_suite.h"

#include <math.h>
#include <png.h>

static const struct feed simple = {64, 2, true};
static const struct pb_quicklook_config config_100 = {
    .product.kind = &pb_kind_quicklook, .size_px = 100, .paint.stretch = {2, 98}};

struct picture {
    int32_t w, h;
    uint8_t *rgba;
};

static struct picture decode(const struct outcome *out)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    ck_assert(png_image_begin_read_from_memory(&image, out->bytes, out->n));
    image.format = PNG_FORMAT_RGBA;
    struct picture picture = {(int32_t)image.width, (int32_t)image.height,
                              malloc(PNG_IMAGE_SIZE(image))};
    ck_assert(png_image_finish_read(&image, NULL, picture.rgba, 0, NULL));
    return picture;
}

static const uint8_t *at(const struct picture *p, int32_t x, int32_t y)
{
    return p->rgba + 4 * ((size_t)y * (size_t)p->w + (size_t)x);
}

static struct picture look(const struct image *image, const struct pb_product_config *config,
                           const struct pb_raster_info *info)
{
    struct pb_err err = {0};
    struct outcome out;
    ck_assert_int_eq(feed_product(image, &pb_product_quicklook, config, &simple, info, &err, &out),
                     0);
    struct picture picture = decode(&out);
    ck_assert_int_eq(out.result.width, picture.w);
    ck_assert_int_eq(out.result.height, picture.h);
    outcome_free(&out);
    return picture;
}

static void fill(struct image *image)
{
    for (size_t b = 0; b < image->n_bands; b++)
        for (int32_t y = 0; y < image->h; y++)
            for (int32_t x = 0; x < image->w; x++)
                *image_at(image, b, x, y) =
                    (x / 40 + y / 30) % 5 == 0 || rnd() % 7 == 0
                        ? NAN
                        : sinf((float)x * 0.05F + (float)b) + cosf((float)y * 0.03F) + uniform();
}

START_TEST(does_not_depend_on_tiles_order_or_threads)
{
    struct image image = image_create(611, 389, 3);
    fill(&image);
    assert_feed_does_not_matter(&image, &pb_product_quicklook, &config_100.product);
    struct pb_quicklook_config whole = config_100;
    whole.size_px = 4000;
    assert_feed_does_not_matter(&image, &pb_product_quicklook, &whole.product);
    free(image.data);
}
END_TEST

START_TEST(small_image_keeps_its_size_and_is_stretched)
{
    struct image image = image_create(101, 3, 1);
    struct pb_quicklook_config config = config_100;
    config.size_px = 500;
    for (int32_t y = 0; y < 3; y++)
        for (int32_t x = 0; x < 101; x++)
            *image_at(&image, 0, x, y) = (float)x;
    *image_at(&image, 0, 50, 1) = NAN;
    struct picture p = look(&image, &config.product, NULL);
    ck_assert_int_eq(p.w, 101);
    ck_assert_int_eq(p.h, 3);
    for (int32_t y = 0; y < 3; y++)
        for (int32_t x = 0; x < 101; x++) {
            const uint8_t *px = at(&p, x, y);
            if (x == 50 && y == 1) {
                ck_assert(px[3] == 0);
                continue;
            }
            /* 302 values 0 .. 100 three times over: the percentiles are 2 and 98 */
            double t = fmin(fmax((x - 2.0) / 96.0, 0), 1);
            ck_assert_uint_eq(px[0], (unsigned)(t * 255 + 0.5));
            ck_assert(px[0] == px[1] && px[1] == px[2] && px[3] == 255);
        }
    free(p.rgba);
    free(image.data);
}
END_TEST

START_TEST(size_is_the_longer_side_and_keeps_the_aspect)
{
    const struct {
        int32_t w, h, expected_w, expected_h;
    } sizes[] = {{1000, 500, 100, 50}, {500, 1000, 50, 100}, {999, 333, 100, 33},
                 {100, 100, 100, 100}, {101, 99, 100, 98},   {5000, 3, 100, 1},
                 {199, 7, 100, 4},     {60, 50, 60, 50}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct image image = image_create(sizes[i].w, sizes[i].h, 3);
        struct picture p = look(&image, &config_100.product, NULL);
        ck_assert_int_eq(p.w, sizes[i].expected_w);
        ck_assert_int_eq(p.h, sizes[i].expected_h);
        ck_assert_uint_eq(at(&p, 0, 0)[0], 128); /* constant: mid grey */
        free(p.rgba);
        free(image.data);
    }
}
END_TEST

/* A pixel that one band of three has not is shown, black in that band, and does not count in its
 * stretch; one that no band has is transparent. For several sizes: with and without a pyramid. */
START_TEST(test_quicklook_shows_where_any_band_is_valid)
{
    for (int32_t side = 40; side <= 400; side += 360) {
        struct image image = image_create(side, side, 3);
        const int32_t k = side / 40;
        for (int32_t b = 0; b < 3; b++)
            for (int32_t y = 0; y < side; y++)
                for (int32_t x = 0; x < side; x++)
                    *image_at(&image, b, x, y) = y < 10 * k             ? NAN
                                                 : y < 20 * k && b == 1 ? NAN
                                                                        : 100 + (float)(x / k);
        struct pb_quicklook_config config = config_100;
        config.size_px = 40;
        struct picture p = look(&image, &config.product, NULL);
        for (int32_t y = 0; y < 40; y++)
            for (int32_t x = 0; x < 40 && y % 10 != 0 && y % 10 != 9; x++) { /* no edge */
                const uint8_t *px = at(&p, x, y);
                ck_assert_uint_eq(px[3], y < 10 ? 0 : 255);
                ck_assert(y < 10 || (px[0] == px[2] && px[1] == (y < 20 ? 0 : px[0])));
            }
        ck_assert_uint_eq(at(&p, 39, 30)[1], 255);
        free(p.rgba);
        free(image.data);
    }
}
END_TEST

START_TEST(pixel_invalid_in_one_band_is_transparent)
{
    struct image image = image_create(20, 20, 3);
    struct pb_quicklook_config config = config_100;
    config.valid = PB_JOINT_ALL;
    fill(&image);
    for (int32_t i = 0; i < 3 * 400; i++)
        image.data[i] = uniform();
    *image_at(&image, 1, 3, 4) = NAN;
    *image_at(&image, 2, 9, 9) = INFINITY;
    struct picture p = look(&image, &config.product, NULL);
    for (int32_t y = 0; y < 20; y++)
        for (int32_t x = 0; x < 20; x++) {
            bool hole = (x == 3 && y == 4) || (x == 9 && y == 9);
            ck_assert_uint_eq(at(&p, x, y)[3], hole ? 0 : 255);
        }
    free(p.rgba);
    free(image.data);
}
END_TEST

START_TEST(nothing_valid_is_all_transparent)
{
    struct image image = image_create(300, 300, 3);
    for (int32_t i = 0; i < 3 * 90000; i++)
        image.data[i] = NAN;
    struct picture p = look(&image, &config_100.product, NULL);
    for (int32_t i = 0; i < 4 * 10000; i++)
        ck_assert_uint_eq(p.rgba[i], 0);
    free(p.rgba);
    free(image.data);
}
END_TEST

/* The upper left corner of the file is bright. */
START_TEST(north_is_up_and_east_is_right)
{
    const struct {
        double d[4];
        bool right, down; /* the corner of the picture where it is */
        bool lies;
    } cases[] = {{{1, 0, 0, -1}, false, false, false}, {{1, 0, 0, 1}, false, true, false},
                 {{-1, 0, 0, 1}, true, true, false},   {{-1, 0, 0, -1}, true, false, false},
                 {{0, 1, 1, 0}, false, true, true},    {{0, 1, -1, 0}, false, false, true},
                 {{0, -1, 1, 0}, true, true, true},    {{0, -1, -1, 0}, true, false, true},
                 {{2, 1, 1, -2}, false, false, false}, {{1, 2, -2, 1}, false, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image image = image_create(10, 6, 1);
        struct pb_raster_info info = {
            .width = 10, .height = 6, .n_bands = 1, .has_orientation = true};
        memcpy(info.orientation, cases[i].d, sizeof info.orientation);
        for (int32_t y = 0; y < 3; y++)
            for (int32_t x = 0; x < 5; x++)
                *image_at(&image, 0, x, y) = 1;
        struct picture p = look(&image, &config_100.product, &info);
        ck_assert_int_eq(p.w, cases[i].lies ? 6 : 10);
        ck_assert_int_eq(p.h, cases[i].lies ? 10 : 6);
        for (int down = 0; down < 2; down++)
            for (int right = 0; right < 2; right++)
                ck_assert_msg(at(&p, right ? p.w - 1 : 0, down ? p.h - 1 : 0)[0] ==
                                  (right == cases[i].right && down == cases[i].down ? 255 : 0),
                              "case %zu, corner %d %d", i, right, down);
        free(p.rgba);
        free(image.data);
    }
}
END_TEST

START_TEST(bands_are_one_or_three)
{
    char b1[] = "B1", b2[] = "B2", b3[] = "B3";
    char *three[] = {b3, b2, b1}, *two[] = {b1, b2};
    struct pb_quicklook_config config = config_100;
    struct image image = image_create(10, 10, 4);
    struct pb_err err = {0};
    struct outcome out;
    for (int32_t i = 0; i < 400; i++)
        image.data[i] = (float)(i % 10 * (i < 100)); /* a ramp in B1, else 0 */
    config.product.bands = three;
    config.product.n_bands = 3;
    struct picture p = look(&image, &config.product, NULL);
    ck_assert(at(&p, 9, 0)[2] == 255 && at(&p, 9, 0)[0] == 128);
    free(p.rgba);
    config.product.n_bands = 0; /* the first three */
    p = look(&image, &config.product, NULL);
    ck_assert(at(&p, 9, 0)[0] == 255 && at(&p, 9, 0)[2] == 128);
    free(p.rgba);
    config.product.bands = two;
    config.product.n_bands = 2;
    ck_assert_int_lt(
        feed_product(&image, &pb_product_quicklook, &config.product, &simple, NULL, &err, &out), 0);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    free(image.data);
}
END_TEST

START_TEST(stretch_is_recorded)
{
    struct image image = image_create(50, 50, 1);
    struct pb_err err = {0};
    struct outcome out;
    for (int32_t i = 0; i < 2500; i++)
        image.data[i] = (float)(i % 50);
    ck_assert_int_eq(
        feed_product(&image, &pb_product_quicklook, &config_100.product, &simple, NULL, &err, &out),
        0);
    ck_assert_ptr_nonnull(memmem(out.bytes, out.n, "tEXtpushbroom.stretch\0B1 0.98 .. 48.02;", 39));
    ck_assert_str_eq(out.result.file, "scene.png");
    ck_assert_str_eq(out.result.media_type, "image/png");
    outcome_free(&out);
    free(image.data);
}
END_TEST

START_TEST(planned_memory_does_not_grow_with_the_scene)
{
    const char *names[] = {"B1", "B2", "B3"};
    uint64_t largest = 0;
    for (int32_t side = 10000; side <= 160000; side *= 2) {
        struct pb_grid grid;
        struct pb_raster_info info = {.width = side, .height = side, .n_bands = 3};
        struct pb_product_env env = {.grid = &grid,
                                     .info = &info,
                                     .order = PB_ORDER_Z,
                                     .tiles_in_flight = 16,
                                     .workers = 4,
                                     .band_names = names,
                                     .n_bands = 3};
        ck_assert_int_eq(pb_grid_init(&grid, side, side, 512), 0);
        uint64_t bytes = pb_product_quicklook.bytes(&env, &config_100.product);
        largest = bytes > largest ? bytes : largest;
    }
    ck_assert_msg(largest < 64 << 20, "%lu MiB", (unsigned long)(largest >> 20));
}
END_TEST

START_TEST(area_average_weighs_overlaps_and_skips_invalid)
{
    struct pb_shrink how = {
        .image_w = 3, .image_h = 1, .source_w = 3, .source_h = 1, .target_w = 2, .target_h = 1};
    const float source[] = {1, 4, 10};
    float target[2];
    pb_shrink_area(&how, source, target);
    ck_assert_float_eq_tol(target[0], 2, 1e-6F); /* (1 * 1 + 4 * 0.5) / 1.5 */
    ck_assert_float_eq_tol(target[1], 8, 1e-6F);
    const float holes[] = {NAN, 4, NAN};
    pb_shrink_area(&how, holes, target);
    ck_assert(target[0] == 4 && target[1] == 4);
    const float side[] = {NAN, NAN, 3};
    pb_shrink_area(&how, side, target);
    ck_assert(isnan(target[0]) && target[1] == 3);
}
END_TEST

START_TEST(area_of_the_same_size_equals_source_and_average)
{
    enum { W = 61, H = 7 };
    float source[H * W], target[H * W];
    for (int32_t i = 0; i < H * W; i++)
        source[i] = i % 5 == 0 ? NAN : i % 7 == 0 ? INFINITY : sinf((float)i) / 3;
    struct pb_shrink how = {W, H, 0, W, H, W, H};
    pb_shrink_area(&how, source, target);
    for (int32_t i = 0; i < H * W; i++)
        ck_assert(isfinite(source[i]) ? target[i] == source[i] : isnan(target[i]));
    for (int32_t y = 0; y < H; y++) { /* each row as it is averaged out of two equal ones */
        float two[2 * W], one[W];
        memcpy(two, source + y * W, sizeof one);
        memcpy(two + W, source + y * W, sizeof one);
        struct pb_shrink half = {W, 2, 0, W, 2, W, 1};
        pb_shrink_area(&half, two, one);
        for (int32_t x = 0; x < W; x++)
            ck_assert(one[x] == target[y * W + x] || isnan(one[x]));
        for (int32_t x = 0; x < W; x++)
            ck_assert_int_eq(!!isnan(one[x]), !!isnan(target[y * W + x]));
    }
}
END_TEST

START_TEST(nearest_makes_no_value_that_was_not_there)
{
    const float source[6] = {1, 2, 3, 4, 5, 6};
    float target[2];
    struct pb_shrink how = {6, 1, 0, 6, 1, 2, 1};
    pb_shrink_nearest(&how, source, target);
    ck_assert(target[0] == 2 && target[1] == 5);
}
END_TEST

START_TEST(of_a_palette_only_its_own_indices_are_shown)
{
    struct image image = image_create(1000, 700, 1);
    struct pb_raster_info info = {.has_palette = true};
    struct pb_quicklook_config config = config_100;
    config.paint.stretch[0] = 0;
    config.paint.stretch[1] = 100;
    for (int32_t y = 0; y < image.h; y++)
        for (int32_t x = 0; x < image.w; x++)
            *image_at(&image, 0, x, y) = rnd() % 2 ? 1 : 9;
    struct picture p = look(&image, &config.product, &info);
    size_t ends = 0;
    for (int32_t y = 0; y < p.h; y++)
        for (int32_t x = 0; x < p.w; x++)
            ends += at(&p, x, y)[0] == 0 || at(&p, x, y)[0] == 255;
    ck_assert_uint_eq(ends, (size_t)p.w * (size_t)p.h);
    free(p.rgba);
    free(image.data);
}
END_TEST

START_TEST(colour_table_is_used_unless_levels_are_given)
{
    static const uint8_t table[][4] = {{1, 2, 3, 255}, {200, 100, 50, 255}, {9, 9, 9, 0}};
    struct image image = image_create(4, 1, 1);
    struct pb_raster_info info = {.has_palette = true, .palette = table, .n_palette = 3};
    struct pb_quicklook_config config = config_100;
    for (int32_t x = 0; x < 4; x++)
        *image_at(&image, 0, x, 0) = (float)x;
    struct picture p = look(&image, &config.product, &info);
    ck_assert(memcmp(at(&p, 0, 0), table[0], 4) == 0);
    ck_assert(memcmp(at(&p, 1, 0), table[1], 4) == 0);
    ck_assert(at(&p, 2, 0)[3] == 0 && at(&p, 3, 0)[3] == 0); /* transparent; not in the table */
    free(p.rgba);
    config.paint.is_asked = true;
    p = look(&image, &config.product, &info);
    ck_assert(at(&p, 3, 0)[0] == 255 && at(&p, 3, 0)[1] == 255 && at(&p, 0, 0)[3] == 255);
    free(p.rgba);
    free(image.data);
}
END_TEST

START_TEST(a_ramp_colours_the_range)
{
    struct image image = image_create(3, 1, 1);
    struct pb_ramp_stop stops[PB_RAMP_NAMED_STOPS];
    struct pb_ramp ramp;
    struct pb_quicklook_config config = config_100;
    pb_ramp_named(2, stops, &ramp);
    config.paint = (struct pb_paint_config){
        .ramp = 2, .chosen = &ramp, .range = {-1, 1}, .has_range = true, .is_asked = true};
    *image_at(&image, 0, 0, 0) = -1;
    *image_at(&image, 0, 1, 0) = 2;
    *image_at(&image, 0, 2, 0) = NAN;
    struct picture p = look(&image, &config.product, NULL);
    ck_assert(memcmp(at(&p, 0, 0), stops[0].rgba, 4) == 0);
    ck_assert(memcmp(at(&p, 1, 0), stops[255].rgba, 4) == 0);
    ck_assert(at(&p, 2, 0)[3] == 0);
    free(p.rgba);
    free(image.data);
}
END_TEST

START_TEST(directory_that_is_gone_is_reported)
{
    struct image image = image_create(100, 100, 3);
    struct pb_err err = {0};
    struct outcome out;
    feed_directory = "/nowhere/at/all";
    ck_assert_int_eq(
        feed_product(&image, &pb_product_quicklook, &config_100.product, &simple, NULL, &err, &out),
        pb_code_errno(PB_E_OUTPUT_WRITE));
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nowhere/at/all/scene."));
    free(image.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quicklook");
    TCase *tc = tcase_create("quicklook");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, does_not_depend_on_tiles_order_or_threads);
    tcase_add_test(tc, small_image_keeps_its_size_and_is_stretched);
    tcase_add_test(tc, size_is_the_longer_side_and_keeps_the_aspect);
    tcase_add_test(tc, pixel_invalid_in_one_band_is_transparent);
    tcase_add_test(tc, test_quicklook_shows_where_any_band_is_valid);
    tcase_add_test(tc, nothing_valid_is_all_transparent);
    tcase_add_test(tc, north_is_up_and_east_is_right);
    tcase_add_test(tc, bands_are_one_or_three);
    tcase_add_test(tc, colour_table_is_used_unless_levels_are_given);
    tcase_add_test(tc, a_ramp_colours_the_range);
    tcase_add_test(tc, stretch_is_recorded);
    tcase_add_test(tc, planned_memory_does_not_grow_with_the_scene);
    tcase_add_test(tc, area_average_weighs_overlaps_and_skips_invalid);
    tcase_add_test(tc, area_of_the_same_size_equals_source_and_average);
    tcase_add_test(tc, nearest_makes_no_value_that_was_not_there);
    tcase_add_test(tc, of_a_palette_only_its_own_indices_are_shown);
    tcase_add_test(tc, directory_that_is_gone_is_reported);
    suite_add_tcase(suite, tc);
    (void)scratch();
    int status = run_suite(suite);
    rmdir(scratch());
    return status;
}
