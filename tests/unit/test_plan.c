/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads slow
 *
 * The arithmetic of plans, on scenes that exist as a header only: budgets are kept whatever the
 * size, and refusals name an amount that is enough. */
#include "config/config.h"
#include "pipeline/plan/describe.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "plan_fixture.h"
#include "run_suite.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* 0 = accepted, else the amount that the refusal names, in MiB. */
static uint64_t tried(const struct pb_raster_info *info, int halo, uint64_t mib)
{
    struct pb_err err;
    struct pb_plan *plan = NULL;
    if (plan_of(info, halo, mib, &err, &plan) == 0) {
        check_plan(plan, info, mib);
        pb_plan_destroy(plan);
        return 0;
    }
    unsigned long long needed = 0;
    ck_assert_int_eq(err.code, PB_E_PLAN_MEMORY);
    const char *at = strstr(err.msg, "needs at least ");
    ck_assert_msg(at != NULL && sscanf(at, "needs at least %llu MiB", &needed) == 1, "%s", err.msg);
    ck_assert_uint_gt(needed, mib);
    return needed;
}

static void check_budgets(const struct pb_raster_info *info)
{
    static const uint64_t budgets[] = {1, 40, 130, 512, 4096};
    for (int halo = 0; halo < 2; halo++) {
        uint64_t least = 0;
        for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
            uint64_t needed = tried(info, halo, budgets[i]);
            if (needed == 0)
                break; /* more is accepted as well, tried elsewhere */
            ck_assert_msg(least == 0 || least == needed, "the amount depends on the budget");
            least = needed;
        }
        if (least > 0) {
            ck_assert_uint_eq(tried(info, halo, least), 0);
            ck_assert_uint_eq(tried(info, halo, least - 1), least);
            ck_assert_uint_eq(tried(info, halo, least * 3), 0);
        }
    }
}

static const int32_t sizes[][2] = {{1, 1},          {300, 200},    {10980, 10980},
                                   {300000, 700},   {700, 300000},
#if !SANITIZED /* number of tiles of the three before */
                                   {100000, 100000}
#endif
};

START_TEST(tiled_scenes_keep_the_budget_or_name_a_larger_one)
{
    static const int32_t blocks[][2] = {
        {512, 512}, {16, 16}, {240, 250}, {1024, 256}, {1000, 1000}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct pb_raster_info info = scene(sizes[s][0], sizes[s][1], blocks[_i][0], blocks[_i][1]);
        check_budgets(&info);
        info.pixel_interleaved = false;
        info.has_mask = true;
        info.type = PB_F64;
        check_budgets(&info);
    }
}
END_TEST

START_TEST(striped_scenes_keep_budget_or_name_a_larger_one)
{
    static const int32_t rows[] = {1, 3, 16, 512, 1100};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct pb_raster_info info = scene(sizes[s][0], sizes[s][1], 0, rows[_i]);
        check_budgets(&info);
        info.top_down = rows[_i] == 1; /* one strip that GDAL takes apart */
        info.pixel_interleaved = false;
        info.has_mask = true;
        check_budgets(&info);
    }
}
END_TEST

START_TEST(hundred_gigapixels_fit_the_memory_of_a_small_scene)
{
    static const int32_t sides[] = {1024, 100000, 316000};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct pb_raster_info info = scene(sides[i], sides[i], 512, 512);
        pb_plan_destroy(planned(&info, POINTWISE, 512));
        struct pb_plan *plan = planned(&info, HALO, 512);
        ck_assert_msg(plan->layout.decoding.decodes < 1.2, "%f", plan->layout.decoding.decodes);
        ck_assert_uint_eq(plan->layout.readers, 2);
        pb_plan_destroy(plan);
    }
}
END_TEST

static double planning_s(const struct pb_raster_info *info, int halo, uint64_t mib)
{
    struct timespec from, to;
    struct pb_err err;
    struct pb_plan *plan = NULL;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    (void)plan_of(info, halo, mib, &err, &plan);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    pb_plan_destroy(plan);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

START_TEST(planning_100_gigapixels_takes_less_than_a_second)
{
    static const int32_t blocks[] = {512, 0, 250}; /* 0 = strips */
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (int halo = 0; halo < 2; halo++) {
            struct pb_raster_info info = scene(316000, 316000, blocks[i], blocks[i]);
            info.block_h = blocks[i] ? blocks[i] : 1;
            for (uint64_t mib = 1; mib <= 4096; mib *= 64) {
                double s = planning_s(&info, halo, mib);
                ck_assert_msg(s < 1.0, "blocks of %d, %d MiB: %f s", blocks[i], (int)mib, s);
            }
        }
}
END_TEST

START_TEST(small_tiles_of_a_vast_scene_become_larger)
{
    const int32_t side = 1000000; /* more tiles of 64 px than may be */
    struct pb_raster_info info = scene(side, side, 512, 512);
    configs[POINTWISE]->compute.tile_px = 64;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    struct pb_plan *plan = planned(&info, POINTWISE, 4096);
    ck_assert_uint_le(pb_grid_count(&plan->layout.grid), 1 << 22);
    pb_plan_destroy(plan);
    ck_assert_uint_gt(tried(&info, POINTWISE, 1), 0);
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 30 * 1024); /* KiB, whatever the tiles */
    struct pb_raster_info wide = scene(INT32_MAX, 64, 512, 64);
    plan = planned(&wide, POINTWISE, 8192);
    pb_plan_destroy(plan);
    configs[POINTWISE]->compute.tile_px = 0;
}
END_TEST

/* A product that cannot be counted reports the largest number; it must not wrap round to a small
 * one. */
START_TEST(tiles_of_no_fixed_side_shrink_before_a_refusal)
{
    static const char text[] = "pipelines:\n"
                               "  p:\n"
                               "    input: {match: [\"*\"], bands: {B: 1, G: 2, R: 3, N: 4}}\n"
                               "    steps: [index: {names: [NDVI, EVI, NDWI, SAVI, GNDVI, BAI]}]\n"
                               "    products: [statistics: {}]\n";
    struct pb_err_list errors;
    struct pb_raster_info info = scene(4000, 4000, 256, 256);
    struct pb_config *whole = configs[POINTWISE];
    ck_assert_int_eq(
        pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &configs[POINTWISE]),
        0);
    configs[POINTWISE]->compute.threads = 2;
    configs[POINTWISE]->compute.tile_px = 512;
    uint64_t least = tried(&info, POINTWISE, 4);
    ck_assert_uint_gt(least, 4);
    configs[POINTWISE]->compute.tile_px = 0;
    struct pb_plan *plan = planned(&info, POINTWISE, least - 1);
    ck_assert_int_lt(plan->layout.grid.side_px, 512);
    pb_plan_destroy(plan);
    plan = planned(&info, POINTWISE, 512);
    ck_assert_int_eq(plan->layout.grid.side_px, 512);
    pb_plan_destroy(plan);
    pb_config_destroy(configs[POINTWISE]);
    configs[POINTWISE] = whole;
}
END_TEST

START_TEST(a_product_of_any_size_is_refused_in_words)
{
    char text[600];
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    (void)snprintf(
        text, sizeof text,
        "compute: {device: cpu, memory: 4GB}\npipelines:\n  p:\n    input: {match: ['*']}\n"
        "    products:\n      - statistics: {}\n      - cog: {blocksize: 4096}\n"
        "      - quicklook: {bands: [B1]}\n");
    ck_assert_int_eq(pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config),
                     0);
    struct pb_raster_info info = scene(9000, 9000, 512, 512);
    info.n_bands = 20;
    struct pb_plan_request request = {
        .config = config, .pipeline = &config->pipelines[0], .info = &info, .device_index = -1};
    struct pb_err err = {0};
    struct pb_plan *plan = NULL;
    ck_assert_int_lt(pb_plan_create(&request, &err, &plan), 0);
    ck_assert_int_eq(err.code, PB_E_PLAN_MEMORY);
    ck_assert_msg(strstr(err.msg, "lower the blocksize") != NULL, "%s", err.msg);
    pb_config_destroy(config);
}
END_TEST

/* Why the scene of four bands does not fit a pipeline that names none. */
static void refuse_bands(const char *steps, const char *product, struct pb_err *err)
{
    char text[2000];
    struct pb_err_list errors;
    struct pb_config *config = NULL;
    struct pb_plan *plan = NULL;
    struct pb_raster_info info = scene(900, 900, 512, 512);
    (void)snprintf(text, sizeof text,
                   "compute: {device: cpu}\npipelines:\n  p:\n    input: {match: ['*']}\n"
                   "    steps:\n%s    products: [cog: {bands: [%s]}]\n",
                   steps, product);
    ck_assert_int_eq(pb_config_parse(text, strlen(text), "f.yaml", &pb_products, &errors, &config),
                     0);
    struct pb_plan_request request = {
        .config = config, .pipeline = &config->pipelines[0], .info = &info, .device_index = -1};
    *err = (struct pb_err){0};
    ck_assert_int_lt(pb_plan_create(&request, err, &plan), 0);
    pb_config_destroy(config);
}

START_TEST(all_bands_that_a_scene_lacks_are_named_at_once)
{
    struct pb_err err;
    refuse_bands("      - math: {bands: {X: (B5 - B1) / (B5 + B1), Y: X + B2}}\n"
                 "      - scale: {factor: 2, bands: [Y, B6]}\n",
                 "X, B7", &err);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_EXPRESSION);
    ck_assert_str_eq(err.msg, "pipeline p, step 1 (math): unknown name 'B5'; did you mean 'B1'?; "
                              "also step 2 (scale): no band 'B6' here; did you mean 'B1'?; also a "
                              "product wants what no step makes: no step makes a band 'B7'; did "
                              "you mean 'B1'?");
    refuse_bands("      - math: {bands: {X: B1}}\n", "X, B64", &err);
    ck_assert_int_eq(err.code, PB_E_PIPELINE_PRODUCT);
    ck_assert_str_eq(err.msg, "pipeline p: a product wants what no step makes: no step makes a "
                              "band 'B64'; did you mean 'B4'?");
}
END_TEST

START_TEST(more_mistakes_than_a_message_holds_are_counted)
{
    struct pb_err err;
    refuse_bands("      - scale: {factor: 2, bands: [B11, B12, B13, B14, B15, B16, B17, B18, B19, "
                 "B20, B21]}\n",
                 "B1", &err);
    size_t told = 1;
    for (const char *at = err.msg; (at = strstr(at, "; also step 1 (scale)")) != NULL; at++)
        told++;
    ck_assert_uint_gt(told, 3);
    char rest[40];
    (void)snprintf(rest, sizeof rest, "'?; and %zu more", 11 - told);
    ck_assert_msg(strlen(err.msg) > strlen(rest) &&
                      strcmp(err.msg + strlen(err.msg) - strlen(rest), rest) == 0,
                  "%s", err.msg);
}
END_TEST

START_TEST(whole_blocks_are_read_straight_into_slots)
{
    struct pb_raster_info info = scene(10000, 9000, 256, 512);
    struct pb_plan *plan = planned(&info, POINTWISE, 512);
    ck_assert_uint_eq(plan->layout.decoding.cells[0].count, 0);
    ck_assert_uint_eq(plan->layout.decoding.cells_bytes, 0);
    pb_plan_destroy(plan);
    plan = planned(&info, HALO, 512);
    ck_assert_uint_gt(plan->layout.decoding.cells[0].count, 0);
    pb_plan_destroy(plan);
}
END_TEST

/* In whole rows, blocks have the order of a COG's file; a row of a huge scene takes too much. */
START_TEST(tiles_are_visited_by_whole_rows_if_memory_allows)
{
    static const struct {
        int32_t w;
        int config;
        uint64_t mib;
        bool whole;
    } cases[] = {
        {10980, POINTWISE, 512, true},  {10980, HALO, 512, true},
        {10980, POINTWISE, 140, false}, {10980, HALO, 256, false},
        {32768, POINTWISE, 1024, true}, {40000, POINTWISE, 4096, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_raster_info info = scene(cases[i].w, 10000, 512, 512);
        struct pb_plan *plan = planned(&info, cases[i].config, cases[i].mib);
        ck_assert_msg(plan->layout.whole_rows == cases[i].whole, "case %zu: %llu MiB", i,
                      (unsigned long long)(plan->memory.total_bytes >> 20));
        if (cases[i].config == POINTWISE)
            ck_assert_int_eq(plan->layout.order, cases[i].whole ? PB_ORDER_ROWS : PB_ORDER_Z);
        if (cases[i].whole)
            ck_assert_int_eq(pb_grid_stripe_cols(&plan->layout.grid), plan->layout.grid.cols);
        pb_plan_destroy(plan);
    }
}
END_TEST

START_TEST(a_scene_of_one_tile_needs_no_cells)
{
    struct pb_raster_info info = scene(500, 400, 0, 3);
    struct pb_plan *plan = planned(&info, HALO, 512);
    ck_assert_uint_eq(plan->layout.decoding.cells[0].count, 0);
    pb_plan_destroy(plan);
}
END_TEST

START_TEST(narrows_stripes_before_refusing)
{
    struct pb_raster_info info = scene(60000, 60000, 0, 1);
    double before = 0;
    uint64_t mib = 4096;
    for (; tried(&info, HALO, mib) == 0; mib = mib * 4 / 5) {
        struct pb_plan *plan = planned(&info, HALO, mib);
        double price =
            plan->layout.decoding.decodes / plan->layout.readers + 1.0 / plan->layout.workers;
        ck_assert(price >= before);
        before = price;
        pb_plan_destroy(plan);
    }
    ck_assert(before > 2.0);
    ck_assert_uint_lt(mib, 400);
}
END_TEST

/* One product of 20 bands, for this many threads. */
static struct pb_config *twenty_bands(int32_t threads)
{
    char steps[1200] = "      - math: {bands: {", bands[120] = "";
    for (int i = 0; i < 20; i++) {
        size_t s = strlen(steps), b = strlen(bands);
        (void)snprintf(steps + s, sizeof steps - s, "%sI%d: R + %d", i ? ", " : "", i, i);
        (void)snprintf(bands + b, sizeof bands - b, "%sI%d", i ? ", " : "", i);
    }
    (void)snprintf(steps + strlen(steps), sizeof steps - strlen(steps), "}}\n");
    struct pb_config *config = parse(steps, bands);
    config->compute.threads = threads;
    return config;
}

/* Each amount of memory uses no fewer threads than a smaller one; the amount that is named for idle
 * cores keeps all busy. */
START_TEST(idle_cores_are_listed_with_the_memory_they_need)
{
    struct pb_raster_info info = scene(10980, 10980, 512, 512);
    char text[2000];
    pb_config_destroy(configs[POINTWISE]);
    configs[POINTWISE] = twenty_bands(8);
    struct pb_plan *plan = planned(&info, POINTWISE, 640);
    uint64_t wanted = pb_plan_wanted_bytes(plan);
    ck_assert_uint_ge(plan->layout.writers, 2);
    ck_assert_uint_lt(plan->layout.writers, 8);
    ck_assert_uint_eq(plan->layout.threads_wanted, 8);
    ck_assert_uint_gt(wanted, UINT64_C(640) << 20);
    pb_plan_describe(plan, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "idle       "));
    pb_plan_destroy(plan);
    for (uint64_t mib = 640, before = 0; mib < 4000; mib += 200) {
        plan = planned(&info, POINTWISE, mib);
        ck_assert_uint_ge(plan->layout.writers, before);
        ck_assert_int_eq(plan->layout.writers<8, pb_plan_wanted_bytes(plan)> 0);
        before = plan->layout.writers;
        pb_plan_destroy(plan);
    }
    plan = planned(&info, POINTWISE, (wanted >> 20) + 1);
    ck_assert_uint_eq(plan->layout.writers, 8);
    pb_plan_describe(plan, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "idle       "));
    pb_plan_destroy(plan);
}
END_TEST

/* Twenty bands with their statistics and quicklook, at the default memory and 4 cores. A thread has
 * one tile: a slot of each kind is enough. */
START_TEST(twenty_bands_keep_cores_busy_at_the_default_memory)
{
    static const int32_t block[] = {256, 512, 1024};
    static const uint32_t least[] = {3, 3, 2}; /* tiles of 1024 px take more */
    for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
        struct pb_raster_info info = scene(10980, 10980, block[i], block[i]);
        pb_config_destroy(configs[POINTWISE]);
        configs[POINTWISE] = twenty_bands(4);
        struct pb_plan *plan = planned(&info, POINTWISE, 512);
        ck_assert_msg(plan->layout.by_workers && plan->layout.workers >= least[i],
                      "blocks of %d: %u threads", block[i], plan->layout.workers);
        ck_assert_uint_eq(plan->layout.in_slots, plan->layout.workers);
        ck_assert_uint_eq(plan->layout.out_slots, plan->layout.workers);
        pb_plan_destroy(plan);
    }
}
END_TEST

START_TEST(one_strip_is_read_by_one_reader_from_top_to_bottom)
{
    struct pb_raster_info info = scene(10980, 10980, 0, 1);
    info.top_down = true;
    struct pb_plan *plan = planned(&info, HALO, 512);
    ck_assert_uint_eq(plan->layout.readers, 1);
    ck_assert_uint_eq(plan->layout.workers, 2);
    ck_assert(plan->layout.decoding.decodes == 1.0);
    pb_plan_destroy(plan);
    info.pixel_interleaved = false; /* a strip a band: each next one starts over */
    plan = planned(&info, HALO, 4096);
    ck_assert_int_ge(plan->layout.decoding.cells[0].shape.h, 1024);
    pb_plan_destroy(plan);
}
END_TEST

START_TEST(the_description_says_how_often_blocks_are_decoded)
{
    char text[2000];
    struct pb_raster_info info = scene(20000, 10980, 512, 512);
    struct pb_plan *plan = planned(&info, HALO, 512);
    ck_assert_int_lt(pb_plan_describe(plan, text, sizeof text), (int)sizeof text);
    ck_assert_msg(strstr(text, "every block 1.05 times") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "stripes of 32 of 40 tiles") != NULL, "%s", text);
    pb_plan_destroy(plan);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tc = tcase_create("memory");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, tiled_scenes_keep_the_budget_or_name_a_larger_one, 0, 5);
    tcase_add_loop_test(tc, striped_scenes_keep_budget_or_name_a_larger_one, 0, 5);
    tcase_add_test(tc, hundred_gigapixels_fit_the_memory_of_a_small_scene);
    if (SANITIZED)
        printf("skipped: the time and memory that planning takes: they are the sanitizer's\n");
    else {
        tcase_add_test(tc, planning_100_gigapixels_takes_less_than_a_second);
        tcase_add_test(tc, small_tiles_of_a_vast_scene_become_larger);
    }
    tcase_add_test(tc, tiles_of_no_fixed_side_shrink_before_a_refusal);
    tcase_add_test(tc, a_product_of_any_size_is_refused_in_words);
    tcase_add_test(tc, all_bands_that_a_scene_lacks_are_named_at_once);
    tcase_add_test(tc, more_mistakes_than_a_message_holds_are_counted);
    tcase_add_test(tc, whole_blocks_are_read_straight_into_slots);
    tcase_add_test(tc, tiles_are_visited_by_whole_rows_if_memory_allows);
    tcase_add_test(tc, a_scene_of_one_tile_needs_no_cells);
    tcase_add_test(tc, narrows_stripes_before_refusing);
    tcase_add_test(tc, idle_cores_are_listed_with_the_memory_they_need);
    tcase_add_test(tc, twenty_bands_keep_cores_busy_at_the_default_memory);
    tcase_add_test(tc, one_strip_is_read_by_one_reader_from_top_to_bottom);
    tcase_add_test(tc, the_description_says_how_often_blocks_are_decoded);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
