/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pixels that are read for the range of heights. */
#include "pipeline/plan/heights.h"
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
    const struct pb_chain_input input = {.name = "h", .type = PB_F32, .scale = 1};
    const double areas[][4] = {{1500, 1100, 2500, 1600},
                               {1500, 1100, 2500, 1600},
                               {10, 20, 4000, 2900},
                               {2000, 1000, 2100, 1100}};
    const double want[][2] = {{1500, 2499}, {1500, 2499}, {-500, 3999}, {2000, 2099}};
    static struct pb_config config;
    const int32_t number = 1;
    const uint32_t file = 0;
    uint64_t px[4];
    struct pb_raster *raster;

    config.compute.memory_bytes = 64 << 20;
    ck_assert_int_eq(pb_raster_make(&made, NULL, &raster), 0);
    const struct pb_plan_request request = {.config = &config, .raster = raster};
    struct pb_plan_heights heights = {
        .request = &request, .input = &input, .number = &number, .file = &file};
    const struct pb_ground_heights ground = pb_plan_heights(&heights);
    for (int i = 0; i < 4; i++) {
        char why[300] = "";
        double range[2];

        read_px = 0;
        ck_assert_msg(ground.range(ground.of, 0, areas[i], why, sizeof why, range) == 0, "%s", why);
        ck_assert(range[0] == want[i][0] && range[1] == want[i][1]);
        px[i] = read_px;
    }
    ck_assert_uint_eq(px[0], 1000 * 500);
    ck_assert_uint_eq(px[1], 0);
    ck_assert_uint_eq(px[2], 3990 * 2880 - 1000 * 500);
    ck_assert_uint_eq(px[3], 100 * 100); /* a smaller one has a range of its own */
    config.compute.memory_bytes = 1 << 20;
    struct pb_plan_heights again = {
        .request = &request, .input = &input, .number = &number, .file = &file};
    char why[300] = "";
    double range[2];
    ck_assert_int_lt(ground.range(&again, 0, areas[2], why, sizeof why, range), 0);
    ck_assert_int_eq(again.err.code, PB_E_PLAN_MEMORY);
    pb_raster_close(raster);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_heights");
    TCase *tests = tcase_create("plan_heights");

    tcase_add_test(tests, an_area_that_grows_is_read_where_it_is_new);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
