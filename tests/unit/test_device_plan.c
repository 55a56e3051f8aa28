/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device_plan.h"

#include "run_suite.h"
#include "wic/chunk_plan.h"

#include <check.h>
#include <string.h>

START_TEST(each_usual_tile_has_a_plan_on_a_gpu_that_was_measured)
{
    static const struct wic_gpu h200 = {"NVIDIA H200", 90, 132, 233472, 232448};
    static const char *const tiles[PB_DEVICE_PLANS] = {"1024 x 1024 px, 2 bands of uint16",
                                                       "1024 x 1024 px, 4 bands of uint16",
                                                       "1024 x 1024 px, 13 bands of uint16"};
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    pb_device_plan_list(&h200, plans);
    for (int i = 0; i < PB_DEVICE_PLANS; i++) {
        ck_assert_str_eq(plans[i].tile, tiles[i]);
        ck_assert_msg(strncmp(plans[i].plan, "pull by bulk copy, ", 19) == 0, "%s", plans[i].plan);
        ck_assert_uint_lt(strlen(plans[i].plan), sizeof plans[i].plan - 1);
    }
}
END_TEST

START_TEST(where_there_is_none_the_reason_is_said)
{
    static const struct wic_gpu old = {"old", 70, 80, 98304, 98304},
                                tiny = {"tiny", 75, 1, 600, 600};
    struct pb_device_plan plans[PB_DEVICE_PLANS];
    pb_device_plan_list(&old, plans);
    ck_assert_str_eq(plans[2].plan, "none: the GPU is older than sm_75");
    pb_device_plan_list(&tiny, plans);
    ck_assert_ptr_nonnull(strstr(plans[0].plan, "shared memory"));
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

int main(void)
{
    Suite *suite = suite_create("device_plan");
    TCase *tests = tcase_create("device_plan");
    tcase_add_test(tests, each_usual_tile_has_a_plan_on_a_gpu_that_was_measured);
    tcase_add_test(tests, where_there_is_none_the_reason_is_said);
#ifndef PB_HAVE_CUDA
    tcase_add_test(tests, a_build_without_cuda_has_none);
#endif
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
