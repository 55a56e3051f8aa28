/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/device_retry.h"
#include "service/worker/worker_lines.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

/* Plays a run whose tries end with these codes (NULL: it succeeds); writes what followed. */
static void play(const char *const *codes, char *out)
{
    enum pb_device_try now = PB_DEVICE_TRY_FIRST;
    out[0] = '\0';
    for (size_t i = 0;; i++) {
        (void)strcat(out, i ? " " : "");
        (void)strcat(out, pb_device_try_name(now));
        if (codes[i] == NULL)
            return;
        now = pb_device_try_next(now, codes[i]);
        if (now == PB_DEVICE_TRY_OVER) {
            (void)strcat(out, " over");
            return;
        }
    }
}

static const struct {
    const char *codes[4];
    const char *tries;
} rows[] = {
    {{NULL}, "first"},
    {{"device.lost", NULL}, "first fresh"},
    {{"device.lost", "device.lost", NULL}, "first fresh cpu"},
    {{"device.lost", "device.failed", NULL}, "first fresh cpu"},
    {{"device.lost", "device.missing", NULL}, "first fresh cpu"},
    {{"device.failed", NULL}, "first fresh"},
    {{"device.lost", "device.lost", "device.lost"}, "first fresh cpu over"},
    {{"device.lost", "device.lost", "input.truncated"}, "first fresh cpu over"},
    {{"device.lost", "input.truncated"}, "first fresh over"},
    {{"device.lost", "job.dismissed"}, "first fresh over"},
    {{"device.lost", "memory"}, "first fresh over"},
    {{"device.missing"}, "first over"}, /* a demand that was never met */
    {{"device.busy", NULL}, "first stream"},
    {{"device.busy", "device.failed", NULL}, "first stream cpu"},
    {{"device.busy", "device.missing", NULL}, "first stream cpu"},
    {{"device.busy", "device.busy", NULL}, "first stream cpu"},
    {{"device.lost", "device.busy", NULL}, "first fresh stream"},
    {{"device.busy", "input.damaged"}, "first stream over"},
    {{"input.damaged"}, "first over"},
    {{"job.dismissed"}, "first over"},
    {{""}, "first over"},
};

START_TEST(a_run_goes_on_by_the_table)
{
    char tries[64];
    play(rows[_i].codes, tries);
    ck_assert_str_eq(tries, rows[_i].tries);
}
END_TEST

START_TEST(a_failure_without_a_code_stands)
{
    ck_assert_int_eq(pb_device_try_next(PB_DEVICE_TRY_FIRST, NULL), PB_DEVICE_TRY_OVER);
    ck_assert(!pb_worker_is_spent(NULL));
}
END_TEST

/* Independent of earlier tries: a worker that takes no other job is always replaced. */
START_TEST(a_device_that_failed_ends_its_process)
{
    ck_assert(pb_worker_is_spent("device.lost"));
    ck_assert(pb_worker_is_spent("device.failed"));
    ck_assert(pb_worker_is_spent("device.busy"));
    ck_assert(!pb_worker_is_spent("device.missing"));
    ck_assert(!pb_worker_is_spent("input.damaged"));
}
END_TEST

START_TEST(the_reason_names_what_is_done_and_why)
{
    char why[300];
    pb_device_try_why(PB_DEVICE_TRY_CPU, false, "device.lost", "the GPU failed", why, sizeof why);
    ck_assert_str_eq(why, "on the CPU after device.lost: the GPU failed");
    pb_device_try_why(PB_DEVICE_TRY_CPU, true, "device.lost", "x", why, sizeof why);
    ck_assert_ptr_nonnull(strstr(why, "although the configuration demands a GPU"));
    pb_device_try_why(PB_DEVICE_TRY_STREAM, true, "device.busy", "full", why, sizeof why);
    ck_assert_str_eq(why, "by streams in a fresh process after device.busy: full");
    pb_device_try_why(PB_DEVICE_TRY_FRESH, true, "", NULL, why, sizeof why);
    ck_assert_str_eq(why, "again in a fresh process after a failure: no reason was given");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device_retry");
    TCase *cases = tcase_create("device_retry");
    tcase_add_loop_test(cases, a_run_goes_on_by_the_table, 0, sizeof rows / sizeof rows[0]);
    tcase_add_test(cases, a_failure_without_a_code_stands);
    tcase_add_test(cases, a_device_that_failed_ends_its_process);
    tcase_add_test(cases, the_reason_names_what_is_done_and_why);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
