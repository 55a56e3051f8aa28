/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Pixels that are read for the range of heights. */
#include "pipeline/run/run_heights.h"
#include "config/config.h"
#include "pipeline/raster/raster.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

enum { W = 5000, H = 3000 };

static uint64_t read_px;

/* The height of a pixel is its number of column, and of some one that is far off. */
static int fill(const void *of, int32_t band, const struct pb_rect *rect, void *out,
                size_t row_bytes, struct pb_err *err)
{
    (void)of;
    (void)band;
    (void)err;
    for (int32_t y = 0; y < rect->h; y++) {
        float *const row = (float *)(void *)((char *)out + (size_t)y * row_bytes);

        for (int32_t x = 0; x < rect->w; x++)
            row[x] = rect->y + y == 700 && rect->x + x == 800 ? -500.0f : (float)(rect->x + x);
    }
    read_px += (uint64_t)rect->w * (uint64_t)rect->h;
    return 0;
}

START_TEST(an_area_that_grows_is_read_where_it_is_new)
{
    const struct pb_raster_made made = {
        .width = W, .height = H, .n_bands = 1, .type = PB_F32, .fill = fill};
    const struct pb_rect areas[] = {
        {1500, 1100, 1000, 500}, {10, 20, 3990, 2880}, {2000, 1000, 100, 100}};
    const double want[][2] = {{1500, 2499}, {-500, 3999}, {2000, 2099}};
    /* Only the new pixels of an area that contains a known one are read; a smaller one has a range
     * of its own. */
    const uint64_t px[] = {1000 * 500, 3990 * 2880 - 1000 * 500, 100 * 100};
    static struct pb_config config;
    struct pb_err err = {0};
    struct pb_plan_heights heights = {
        .lacks = {.band = {.name = "h", .type = PB_F32, .scale = 1}, .number = 1}};
    struct pb_raster *raster;

    config.compute.memory_bytes = 64 << 20;
    ck_assert_int_eq(pb_raster_make(&made, NULL, &raster), 0);
    const struct pb_plan_request request = {
        .config = &config, .raster = raster, .heights = &heights};
    for (size_t i = 0; i < 3; i++) {
        read_px = 0;
        heights.lacks.area = areas[i];
        ck_assert_msg(pb_run_heights_read(&request, &err) == 0, "%s", err.msg);
        ck_assert_uint_eq(heights.n, i + 1);
        ck_assert(heights.known[i].range[0] == want[i][0]);
        ck_assert(heights.known[i].range[1] == want[i][1]);
        ck_assert_uint_eq(read_px, px[i]);
    }
    config.compute.memory_bytes = 1 << 20;
    ck_assert_int_lt(pb_run_heights_read(&request, &err), 0);
    ck_assert_int_eq(err.code, PB_E_PLAN_MEMORY);
    ck_assert_uint_eq(heights.n, 3);
    pb_run_heights_fini(&heights);
    pb_raster_close(raster);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("run_heights");
    TCase *tests = tcase_create("run_heights");

    tcase_add_test(tests, an_area_that_grows_is_read_where_it_is_new);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
