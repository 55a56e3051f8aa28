/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/tune/device_plan.h"
#include "pipeline/device/device.h"

#include "run_suite.h"
#include "wic/device/transfer_plan.h"

#include <check.h>
#include <string.h>

static const struct pb_device_traits h200 = {.gpu = {"NVIDIA H200", 90, 132, 233472, 232448},
                                             .memory_bytes = UINT64_C(150) << 30};

START_TEST(usual_scenes_on_a_known_gpu_get_the_plan_of_a_run)
{
    static const char *const tiles[PB_DEVICE_PLANS] = {
        "1024 x 1024 px, 2 bands of uint16, index", "1024 x 1024 px, 4 bands of uint16, math",
        "1024 x 1024 px, 13 bands of uint16, math",
        "1024 x 1024 px, 1 band of uint16, 15 x 15 blur"};
    /* Lines of 1024 px with all bands; 16 KiB are the table's piece. */
    static const char *const transports[PB_DEVICE_PLANS] = {
        "pull by bulk copy, pieces of 16384 bytes, ", "pull by bulk copy, pieces of 16384 bytes, ",
        "pull by bulk copy, pieces of 26624 bytes, ", "copy engines both ways, "};
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    pb_device_plan_list(&h200, plans);
    for (int i = 0; i < PB_DEVICE_PLANS; i++) {
        ck_assert_str_eq(plans[i].tile, tiles[i]);
        ck_assert_msg(strncmp(plans[i].plan, transports[i], strlen(transports[i])) == 0, "%s",
                      plans[i].plan);
        ck_assert_uint_lt(strlen(plans[i].plan), sizeof plans[i].plan - 1);
    }
}
END_TEST

START_TEST(tiles_stay_in_place_on_a_gpu_that_shares_memory)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    struct pb_device_traits shared = h200;
    shared.integrated = true;
    pb_device_plan_list(&shared, plans);
    for (int i = 0; i < PB_DEVICE_PLANS; i++)
        ck_assert_msg(strncmp(plans[i].plan, "in place, ", 10) == 0, "%s", plans[i].plan);
}
END_TEST

START_TEST(where_there_is_none_the_reason_is_said)
{
    static const struct pb_device_traits old = {.gpu = {"old", 70, 80, 98304, 98304}},
                                         tiny = {.gpu = {"tiny", 75, 1, 600, 600}};
    struct pb_device_traits limited = h200;
    limited.time_limited = true;
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    pb_device_plan_list(&old, plans);
    ck_assert_str_eq(plans[2].plan, "none: the GPU is older than sm_75");
    pb_device_plan_list(&tiny, plans);
    ck_assert_ptr_nonnull(strstr(plans[0].plan, "shared memory"));
    pb_device_plan_list(&limited, plans);
    ck_assert_ptr_nonnull(strstr(plans[0].plan, "none: the GPU drives a display"));
}
END_TEST

#ifndef PB_HAVE_CUDA
START_TEST(a_build_without_cuda_has_none)
{
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    ck_assert_int_eq(pb_device_plans(0, plans), 0);
}
END_TEST
#endif

START_TEST(share_rounds_down_and_leaves_one)
{
    static const struct {
        int32_t percent;
        uint32_t of, part, all; /* all: 0 = no part */
    } cases[] = {
        {25, 132, 33, 132}, {50, 7, 3, 7}, {1, 16, 1, 16}, {100, 132, 132, 0}, {0, 132, 132, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_device_traits traits = h200;
        traits.gpu.multiprocessors = cases[i].of;
        pb_device_limit(&traits, cases[i].percent);
        ck_assert_uint_eq(traits.gpu.multiprocessors, cases[i].part);
        ck_assert_uint_eq(traits.all_multiprocessors, cases[i].all);
        ck_assert_str_eq(traits.share_why, "");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_plan");
    TCase *tests = tcase_create("device_plan");
    tcase_add_test(tests, usual_scenes_on_a_known_gpu_get_the_plan_of_a_run);
    tcase_add_test(tests, tiles_stay_in_place_on_a_gpu_that_shares_memory);
    tcase_add_test(tests, where_there_is_none_the_reason_is_said);
#ifndef PB_HAVE_CUDA
    tcase_add_test(tests, a_build_without_cuda_has_none);
#endif
    tcase_add_test(tests, share_rounds_down_and_leaves_one);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
