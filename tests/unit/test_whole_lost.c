/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* A device that is lost at any call, refuses blocks of another process, or whose pass is aborted:
 * the pass ends with the device's error, and nothing of it is left. */
#include "run_suite.h"
#include "pipeline/plan/choose.h"
#include "whole_faults.h"

#include "whole_compare.h"

START_TEST(what_is_refused_elsewhere_fails_the_device)
{
    struct image image;
    struct pb_err err = {0};
    whole_host.refuse_each = 3;
    by_another = true;
    ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", PLAIN), 0);
    ck_assert_int_eq(make_plan(true), 0);
    ck_assert_int_lt(run(&image, &err), 0);
    ck_assert_msg(err.code == PB_E_DEVICE_FAILED, "%s: %s", pb_code_id(err.code), err.msg);
    free(image.planes);
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

START_TEST(a_lost_device_ends_the_pass)
{
    for (int tile = 1; tile < 30; tile += 7) {
        struct image image;
        struct pb_err err = {0};
        ck_assert_int_eq(open_scene(REAL "real/landsat7_L7_ETMs_6band.tif", BLUR), 0);
        ck_assert_int_eq(make_plan(true), 0);
        shrink_memory();
        whole_host.tiles = 0;
        whole_host.fail_tile = tile;
        ck_assert_int_lt(run(&image, &err), 0);
        ck_assert_int_eq(err.code, PB_E_DEVICE_LOST);
        free(image.planes);
        pb_plan_destroy(plan);
        close_scene();
    }
}
END_TEST

/* Runs a pass, with planes for the host or products that the device makes, whose n-th call of the
 * stage fails. Returns true if the stage had that many calls. */
static bool lose_device(const char *stage, int n, bool products)
{
    char directory[40];
    struct image image = {.n = 0};
    struct pb_err err = {0};
    int rc;
    device_table = whole_faults_at(stage, n);
    if (products)
        make_products(directory, &rc, &err);
    else
        rc = run(&image, &err);
    const bool struck = atomic_load(&whole_faults.struck);
    ck_assert_msg((rc < 0) == struck, "call %d of %s: %d, %s", n, stage, rc, err.msg);
    ck_assert_msg(rc == 0 || err.code == PB_E_DEVICE_LOST, "call %d of %s: %s", n, stage, err.msg);
    ck_assert_int_eq(whole_host.opened, 0);
    free(image.planes);
    if (products)
        remove_files(directory);
    return struck;
}

START_TEST(a_device_that_is_lost_at_any_call_ends_the_pass)
{
    static const char *const stages[] = {
        "open",   "memory",     "table",        "copy",       "decode",     "unpredict",
        "tile",   "mark",       "after",        "when",       "happened",   "halve",
        "encode", "statistics", "values_begin", "values_add", "values_list"};
    static const char MADE_THERE[] = "      - cog: {bands: [OUT], blocksize: 64}\n"
                                     "      - statistics: {percentiles: [50]}\n";
    enum { N = sizeof stages / sizeof *stages, ALWAYS = N - 6 };
    for (int products = 0; products < 2; products++) {
        ck_assert_int_eq(
            open_with(REAL "derived/l7_deflate_p2_tiled.tif", BLUR, products ? MADE_THERE : PIXELS),
            0);
        ck_assert_int_eq(make_plan(true), 0);
        ck_assert_int_eq(plan->engine.out.n, 2 * products);
        for (int i = 0; i < (products ? N : ALWAYS); i++) {
            int n = 1;
            while (n < 40 && lose_device(stages[i], n, products))
                n *= 3;
            ck_assert_msg(n > 1, "nothing calls %s", stages[i]);
        }
        pb_plan_destroy(plan);
        close_scene();
    }
}
END_TEST

static void *abort_soon(void *pass)
{
    usleep((unsigned)(rand() % 9000));
    pb_pass_abort(pass);
    return NULL;
}

START_TEST(aborted_at_any_moment_it_ends)
{
    ck_assert_int_eq(open_scene(REAL "real/global/blue_marble_720x360_be.tif", BLUR), 0);
    ck_assert_int_eq(make_plan(true), 0);
    shrink_memory();
    for (int i = 0; i < (EACH > 1 ? 6 : 30); i++) {
        struct image image;
        struct pb_err err = {0};
        struct pb_pass *pass = NULL;
        pthread_t thread;
        ck_assert_int_eq(make_pass(&image, &err, &pass), 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, abort_soon, pass), 0);
        ck_assert_int_eq(pb_pass_start(pass, &err), 0);
        ck_assert_int_eq(pb_pass_wait(pass, -1, &err), 0);
        pthread_join(thread, NULL);
        pb_pass_destroy(pass);
        free(image.planes);
    }
    pb_plan_destroy(plan);
    close_scene();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("whole_lost");
    TCase *tc = tcase_create("all");
    pb_raster_init();
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, what_is_refused_elsewhere_fails_the_device);
    tcase_add_test(tc, a_lost_device_ends_the_pass);
    tcase_add_test(tc, a_device_that_is_lost_at_any_call_ends_the_pass);
    tcase_add_test(tc, aborted_at_any_moment_it_ends);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
