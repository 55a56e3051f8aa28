/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The check of kernels that are to stay on a device (wic/device/stay.h), and its reasons. */
#include "wic/device/stay.h"
#include "wic/device/link.h"

#include <errno.h>
#include <string.h>

#include "run_suite.h"

static struct wic_stay good(void)
{
    return (struct wic_stay){.multiprocessors = 132,
                             .shared_most = 232448,
                             .threads_most = 608,
                             .own_shared_bytes = 128,
                             .blocks = 132,
                             .threads = 608,
                             .shared_bytes = 100000,
                             .blocks_each = 1};
}

static void refused(const struct wic_stay *stay, int rc, const char *part)
{
    wic_stay_forget();
    ck_assert_int_eq(wic_stay_check(stay), rc);
    ck_assert_msg(strstr(wic_link_why(), part) != NULL, "%s", wic_link_why());
}

START_TEST(kernel_that_fits_may_stay)
{
    struct wic_stay stay = good();
    wic_stay_forget();
    ck_assert_int_eq(wic_stay_check(&stay), 0);
    ck_assert_str_eq(wic_link_why(), "");
    stay.blocks_each = UINT32_MAX; /* not known yet */
    stay.blocks = UINT32_MAX;
    ck_assert_int_eq(wic_stay_check(&stay), 0);
}
END_TEST

START_TEST(display_gpu_is_refused_with_the_reason)
{
    struct wic_stay stay = good();
    stay.time_limited = true;
    refused(&stay, -EOPNOTSUPP, "drives a display");
}
END_TEST

START_TEST(launch_bound_below_the_plan_is_refused)
{
    struct wic_stay stay = good();
    stay.threads_most = 512;
    refused(&stay, -E2BIG, "608 threads, 96 of them for the service warps");
    refused(&stay, -E2BIG, "at most 512: raise its __launch_bounds__");
}
END_TEST

START_TEST(blocks_that_do_not_fit_are_refused)
{
    struct wic_stay stay = good();
    stay.shared_bytes = stay.shared_most - 127;
    refused(&stay, -E2BIG, "needs 232449 bytes of shared memory and the GPU has 232448");
    stay = good();
    stay.blocks_each = 0;
    refused(&stay, -E2BIG, "registers of this kernel");
    stay = good();
    stay.blocks = 133;
    refused(&stay, -ENOSPC, "133 blocks must be resident together and 132 fit");
}
END_TEST

START_TEST(sentence_of_an_earlier_failure_is_replaced)
{
    struct wic_stay stay = good();
    stay.time_limited = true;
    refused(&stay, -EOPNOTSUPP, "display");
    ck_assert_int_eq(wic_stay_refuse(-EIO, "number %d", 7), -EIO);
    ck_assert_str_eq(wic_link_why(), "number 7");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wic stay");
    TCase *t = tcase_create("stay");
    tcase_add_test(t, kernel_that_fits_may_stay);
    tcase_add_test(t, display_gpu_is_refused_with_the_reason);
    tcase_add_test(t, launch_bound_below_the_plan_is_refused);
    tcase_add_test(t, blocks_that_do_not_fit_are_refused);
    tcase_add_test(t, sentence_of_an_earlier_failure_is_replaced);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
