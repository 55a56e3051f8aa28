/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/json_reader.h"
#include "service/worker/result_json.h"

#include "run_suite.h"

#include <check.h>
#include <string.h>

static struct pb_run_result result;
static struct pb_json *json;
static struct pb_json_value *value;

static void make(void)
{
    memset(&result, 0, sizeof result);
    (void)strcpy(result.directory, "/p/scene");
    (void)strcpy(result.report.device, "cuda:0");
    result.report.elapsed_ms = 2000;
    result.report.stage[0] =
        (struct pb_stage_report){"read", 4, UINT64_C(6000000000), UINT64_C(2000000000), 10, 1000};
    result.report.stage[1] = (struct pb_stage_report){"compute", 1, 0, 0, 10, 1000};
}

static void end(void)
{
    pb_json_release(value);
    pb_json_destroy(json);
}

/* The report as a reader of the printed text sees it. */
static const struct pb_json_value *printed(void)
{
    size_t bytes = 0;
    json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_result_print(json, &result);
    pb_json_end(json);
    const char *text = pb_json_text(json, &bytes);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(pb_json_parse(text, bytes, PB_JSON_LINE_MAX, &value), 0);
    return pb_json_get(value, "report", NULL);
}

static const char *source(const struct pb_json_value *object, const char *key)
{
    bool there = false;
    const struct pb_json_value *member = pb_json_get(object, key, &there);
    ck_assert_msg(there, "%s is not there", key);
    return member ? pb_json_source(member) : "null";
}

static double number(const struct pb_json_value *object, const char *key)
{
    return atof(source(object, key));
}

START_TEST(stage_reports_the_parked_share_of_thread_time)
{
    const struct pb_json_value *stages = pb_json_get(printed(), "stages", NULL);
    ck_assert_uint_eq(pb_json_count(stages), 2);
    ck_assert_double_eq_tol(number(pb_json_at(stages, 0), "parked_share"), 0.25, 1e-9);
    ck_assert_double_eq_tol(number(pb_json_at(stages, 0), "parked_ms"), 2000, 1e-9);
    ck_assert_double_eq_tol(number(pb_json_at(stages, 1), "parked_share"), 0, 1e-9);
}
END_TEST

START_TEST(a_share_of_no_time_is_null)
{
    result.report.elapsed_ms = 0;
    const struct pb_json_value *stages = pb_json_get(printed(), "stages", NULL);
    ck_assert_str_eq(source(pb_json_at(stages, 0), "parked_share"), "null");
}
END_TEST

START_TEST(a_run_without_a_link_tells_of_none)
{
    bool there = true;
    result.report.link.to_device_bytes = 5;
    (void)pb_json_get(printed(), "link", &there);
    ck_assert(!there);
}
END_TEST

START_TEST(the_link_tells_bytes_share_and_waiting)
{
    struct pb_link_report *link = &result.report.link;
    *link = (struct pb_link_report){.used = true,
                                    .to_device_bytes = UINT64_C(50000000000),
                                    .from_device_bytes = UINT64_C(10000000000),
                                    .to_device_rate = 50e9,
                                    .from_device_rate = 40e9,
                                    .starved_ns = 1500000,
                                    .leave_ns = 250000,
                                    .blocks = 132,
                                    .launches = 2,
                                    .plan = "pull by bulk copy"};
    const struct pb_json_value *got = pb_json_get(printed(), "link", NULL);
    ck_assert_str_eq(source(got, "to_device_bytes"), "50000000000");
    ck_assert_str_eq(source(got, "from_device_bytes"), "10000000000");
    ck_assert_double_eq_tol(number(got, "to_device_share"), 0.5, 1e-9);
    ck_assert_double_eq_tol(number(got, "from_device_share"), 0.125, 1e-9);
    ck_assert_double_eq_tol(number(got, "starved_ms"), 1.5, 1e-9);
    ck_assert_double_eq_tol(number(got, "leave_ms"), 0.25, 1e-9);
    ck_assert_str_eq(source(got, "blocks"), "132");
    ck_assert_str_eq(source(got, "launches"), "2");
    ck_assert_str_eq(pb_json_get_text(got, "plan"), "pull by bulk copy");
}
END_TEST

START_TEST(a_rate_that_was_not_measured_gives_null)
{
    result.report.link = (struct pb_link_report){.used = true, .to_device_bytes = 1};
    const struct pb_json_value *got = pb_json_get(printed(), "link", NULL);
    ck_assert_str_eq(source(got, "to_device_share"), "null");
    ck_assert_str_eq(source(got, "from_device_share"), "null");
    ck_assert_str_eq(source(got, "plan"), "null");
}
END_TEST

START_TEST(decoding_gpu_reports_its_work_and_waits)
{
    struct pb_device_report *gpu = &result.report.link.device;
    const struct pb_json_value *got;
    result.report.link.used = true;
    *gpu = (struct pb_device_report){.used = true,
                                     .occupied_ns = 500000000,
                                     .work_ns = {[PB_DEVICE_DECODE] = 400000000},
                                     .set_up_ns = 90000000,
                                     .pin_ns = 60000000,
                                     .blocks = 484,
                                     .core_blocks = 120,
                                     .kept_bytes = 964000000};
    gpu->wait_ns[PB_DEVICE_WAIT_DISPATCH_DECODE] = 1000000000;
    got = pb_json_get(printed(), "gpu", NULL);
    ck_assert_double_eq_tol(number(got, "occupied_ms"), 500, 1e-9);
    ck_assert_double_eq_tol(number(got, "occupied_share"), 0.25, 1e-9);
    ck_assert_double_eq_tol(number(got, "set_up_ms"), 90, 1e-9);
    ck_assert_double_eq_tol(number(got, "pin_ms"), 60, 1e-9);
    ck_assert_str_eq(source(got, "blocks"), "484");
    ck_assert_str_eq(source(got, "core_blocks"), "120");
    ck_assert_str_eq(source(got, "kept_bytes"), "964000000");
    const struct pb_json_value *work = pb_json_at(pb_json_get(got, "work", NULL), PB_DEVICE_DECODE);
    ck_assert_str_eq(pb_json_get_text(work, "name"), "decode");
    ck_assert_double_eq_tol(number(work, "share"), 0.2, 1e-9);
    const struct pb_json_value *wait =
        pb_json_at(pb_json_get(got, "waits", NULL), PB_DEVICE_WAIT_DISPATCH_DECODE);
    ck_assert_str_eq(pb_json_get_text(wait, "thread"), "dispatcher");
    ck_assert_str_eq(pb_json_get_text(wait, "for"), "decoding on the GPU");
    ck_assert_double_eq_tol(number(wait, "share"), 0.5, 1e-9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("result_json");
    TCase *tests = tcase_create("result_json");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, stage_reports_the_parked_share_of_thread_time);
    tcase_add_test(tests, a_share_of_no_time_is_null);
    tcase_add_test(tests, a_run_without_a_link_tells_of_none);
    tcase_add_test(tests, the_link_tells_bytes_share_and_waiting);
    tcase_add_test(tests, a_rate_that_was_not_measured_gives_null);
    tcase_add_test(tests, decoding_gpu_reports_its_work_and_waits);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
