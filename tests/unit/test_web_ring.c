/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/web/ring.h"

#include "config/base/json_reader.h"
#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_MS 1800000000000 /* a multiple of all slots but those of a week */
#define STEP_MS  PB_WEB_SAMPLE_MS

static struct pb_web_ring *ring;
static struct pb_json_value *graphs;

static void begin(void)
{
    ring = pb_web_ring_create(4);
    ck_assert_ptr_nonnull(ring);
}

static void end(void)
{
    pb_json_release(graphs);
    graphs = NULL;
    pb_web_ring_destroy(ring);
}

static struct pb_web_sample sample_of(double done)
{
    return (struct pb_web_sample){.start_s = 1000, .done = done};
}

/* Adds a sample at a time after the start, by both clocks. */
static void add(int64_t at_ms, struct pb_web_sample sample)
{
    pb_web_ring_add(ring, START_MS + at_ms, 5000 + at_ms, &sample);
}

static void read_graphs(enum pb_web_span span, int64_t at_ms)
{
    pb_json_release(graphs);
    graphs = NULL;
    char *text = pb_web_ring_text(ring, span, START_MS + at_ms);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(pb_json_parse(text, strlen(text), 1 << 20, &graphs), 0);
    free(text);
}

/* Value of the slot that many slots before the last one; NAN = null. */
static double value(const char *column, size_t before)
{
    const struct pb_json_value *list = pb_json_get(graphs, column, NULL);
    if (list == NULL)
        list = pb_json_get(pb_json_get(graphs, "thread_share", NULL), column, NULL);
    const size_t n = pb_json_count(list);
    ck_assert_uint_gt(n, before);
    return pb_json_number_of(pb_json_at(list, n - 1 - before), NAN);
}

static double all(const char *key)
{
    return pb_json_number_of(pb_json_get(pb_json_get(graphs, "all", NULL), key, NULL), NAN);
}

START_TEST(test_metrics_are_summed_over_pipelines)
{
    static const char text[] =
        "# HELP pushbroom_jobs_total Jobs.\n"
        "pushbroom_start_time_seconds 1796000000.125\n"
        "pushbroom_jobs_total{pipeline=\"a\",state=\"successful\"} 3\n"
        "pushbroom_jobs_total{pipeline=\"a\",state=\"failed\"} 1\n"
        "pushbroom_jobs_total{pipeline=\"a b} 9,state=\\\"failed\\\"\",state=\"successful\"} 4\n"
        "pushbroom_delivery_to_product_seconds_bucket{pipeline=\"a\",le=\"0.5\"} 1\n"
        "pushbroom_delivery_to_product_seconds_bucket{pipeline=\"a\",le=\"1\"} 1\n"
        "pushbroom_delivery_to_product_seconds_bucket{pipeline=\"a\",le=\"+Inf\"} 3\n"
        "pushbroom_delivery_to_product_seconds_bucket{pipeline=\"b\",le=\"0.5\"} 0\n"
        "pushbroom_delivery_to_product_seconds_bucket{pipeline=\"b\",le=\"1\"} 4\n"
        "pushbroom_delivery_to_product_seconds_bucket{pipeline=\"b\",le=\"+Inf\"} 4\n"
        "pushbroom_bytes_read_total{pipeline=\"a\"} 100\n"
        "pushbroom_bytes_read_total{pipeline=\"b\"} 20\n"
        "pushbroom_stage_duration_seconds_total{stage=\"read\",mode=\"busy\"} 1.5\n"
        "pushbroom_stage_duration_seconds_total{stage=\"read\",mode=\"parked\"} 0.5\n"
        "pushbroom_stage_duration_seconds_total{stage=\"write\",mode=\"busy\"} 2\n"
        "pushbroom_process_cpu_seconds_total{kind=\"service\"} 1.25\n"
        "pushbroom_process_cpu_seconds_total{kind=\"children\"} 10\n"
        "pushbroom_queue_depth 7\n"
        "pushbroom_jobs_running nan\n"
        "pushbroom_queue_depth\n";
    struct pb_web_sample sample;
    pb_web_sample_read(text, &sample);
    ck_assert_double_eq(sample.start_s, 1796000000.125);
    ck_assert_double_eq(sample.done, 7);
    ck_assert_double_eq(sample.failed, 1);
    ck_assert_uint_eq(sample.n_limits, 3);
    ck_assert(isinf(sample.limit_s[2]));
    ck_assert_double_eq(sample.delays[0], 1);
    ck_assert_double_eq(sample.delays[1], 4);
    ck_assert_double_eq(sample.delays[2], 2);
    ck_assert_double_eq(sample.read_bytes, 120);
    ck_assert_str_eq(sample.stage[0].name, "read");
    ck_assert_double_eq(sample.stage[0].busy_s, 1.5);
    ck_assert_double_eq(sample.stage[0].parked_s, 0.5);
    ck_assert_str_eq(sample.stage[1].name, "write");
    ck_assert_double_eq(sample.cpu_s, 11.25);
    ck_assert_double_eq(sample.waiting, 7);
    ck_assert_double_eq(sample.running, 0);
}
END_TEST

START_TEST(test_rises_are_in_the_slot_between_samples)
{
    struct pb_web_sample sample = sample_of(100);
    add(0, sample);
    sample.done = 103;
    sample.failed = 1;
    sample.cpu_s = 20;
    sample.waiting = 4;
    add(STEP_MS, sample);
    sample.done = 104;
    sample.waiting = 8;
    add(2 * STEP_MS, sample);
    sample.done = 110;
    add(3 * STEP_MS, sample);
    read_graphs(PB_WEB_HOUR, 3 * STEP_MS);
    ck_assert_double_eq(value("done", 1), 4);
    ck_assert_double_eq(value("done", 0), 6);
    ck_assert_double_eq(value("covered_s", 1), 20);
    ck_assert_double_eq(value("covered_s", 0), 10);
    ck_assert_double_eq(value("waiting", 1), 6);
    ck_assert_double_eq(value("waiting_most", 1), 8);
    ck_assert_double_eq(value("cpu_share", 1), 0.25);
    ck_assert(isnan(value("done", 2)));
    ck_assert_double_eq(all("done"), 10);
    read_graphs(PB_WEB_DAY, 3 * STEP_MS);
    ck_assert_double_eq(value("done", 0), 10);
    ck_assert_double_eq(value("covered_s", 0), 30);
    ck_assert_str_eq(pb_json_get_text(graphs, "since"), "2027-01-15T08:00:00.000Z");
}
END_TEST

START_TEST(test_counters_of_another_start_count_from_0)
{
    add(0, sample_of(100));
    add(STEP_MS, sample_of(102));
    struct pb_web_sample sample = sample_of(3);
    sample.start_s = 2000;
    add(2 * STEP_MS, sample);
    sample.done = 2; /* a counter of one start does not fall */
    add(3 * STEP_MS, sample);
    read_graphs(PB_WEB_HOUR, 3 * STEP_MS);
    ck_assert_double_eq(value("done", 1), 5);
    ck_assert_double_eq(value("done", 0), 0);
}
END_TEST

START_TEST(test_gap_stays_a_gap)
{
    add(0, sample_of(0));
    add(STEP_MS, sample_of(1));
    add(20 * STEP_MS, sample_of(50));
    add(21 * STEP_MS, sample_of(52));
    read_graphs(PB_WEB_HOUR, 21 * STEP_MS);
    ck_assert_double_eq(value("done", 0), 2);
    for (size_t i = 1; i < 10; i++)
        ck_assert(isnan(value("done", i)));
    ck_assert_double_eq(value("done", 10), 1);
    ck_assert_double_eq(all("done"), 3);
}
END_TEST

START_TEST(test_close_samples_make_no_rate)
{
    add(0, sample_of(0));
    add(1, sample_of(5));
    read_graphs(PB_WEB_HOUR, 1);
    ck_assert(isnan(value("done", 0)));
    add(STEP_MS, sample_of(6));
    read_graphs(PB_WEB_HOUR, STEP_MS);
    ck_assert_double_eq(value("done", 0), 6);
    ck_assert_double_eq(value("covered_s", 0), 10);
}
END_TEST

START_TEST(test_old_slots_are_replaced)
{
    const int64_t hours_ms = 2 * 3600000;
    for (int64_t at_ms = 0; at_ms <= hours_ms; at_ms += STEP_MS)
        add(at_ms, sample_of((double)at_ms / STEP_MS));
    read_graphs(PB_WEB_HOUR, hours_ms - 1);
    for (size_t i = 0; i < 180; i++)
        ck_assert_double_eq(value("done", i), 2);
    ck_assert_double_eq(all("done"), 360);
    read_graphs(PB_WEB_HOUR, hours_ms + 1800000); /* nothing since half an hour */
    ck_assert(isnan(value("done", 0)));
    ck_assert_double_eq(all("done"), 178); /* 89 slots */
    read_graphs(PB_WEB_WEEK, hours_ms - 1);
    ck_assert_double_eq(all("done"), 720);
}
END_TEST

START_TEST(test_step_of_the_clock_loses_nothing_new)
{
    struct pb_web_sample sample = sample_of(0);
    add(0, sample);
    add(STEP_MS, sample_of(1));
    sample.done = 5;
    pb_web_ring_add(ring, START_MS - 3600000 * 24, 5000 + 2 * STEP_MS, &sample); /* a day back */
    read_graphs(PB_WEB_HOUR, -3600000 * 24);
    ck_assert_double_eq(value("done", 1), 4);
    ck_assert_double_eq(all("done"), 4);
    read_graphs(PB_WEB_DAY, STEP_MS);
    ck_assert_double_eq(value("done", 0), 1);
}
END_TEST

static struct pb_web_sample with_delays(double a, double b, double c, double d)
{
    return (struct pb_web_sample){
        .start_s = 1000, .limit_s = {1, 10, 100, INFINITY}, .delays = {a, b, c, d}, .n_limits = 4};
}

START_TEST(test_percentiles_are_those_of_the_histogram)
{
    add(0, sample_of(0)); /* a service that has finished no job prints no histogram */
    add(STEP_MS, with_delays(0, 50, 50, 0));
    read_graphs(PB_WEB_HOUR, STEP_MS);
    ck_assert_double_eq(value("p50_s", 0), 10);
    ck_assert_double_eq_tol(value("p99_s", 0), 10 + 90 * 0.98, 0.001);
    add(2 * STEP_MS, with_delays(0, 50, 50, 0));
    add(3 * STEP_MS, with_delays(2, 50, 50, 0));
    read_graphs(PB_WEB_HOUR, 3 * STEP_MS);
    ck_assert_double_eq(value("p50_s", 0), 0.5);
    ck_assert_double_eq_tol(all("p50_s"), 1 + 9 * 49.0 / 50, 0.001);
    add(4 * STEP_MS, with_delays(2, 50, 50, 9));
    read_graphs(PB_WEB_HOUR, 4 * STEP_MS - 1);
    ck_assert_double_eq(value("p99_s", 0), 100); /* above the last limit: at least that */
    read_graphs(PB_WEB_HOUR, 10 * STEP_MS);
    ck_assert(isnan(value("p50_s", 0)));
}
END_TEST

START_TEST(test_other_limits_replace_the_histogram)
{
    add(0, with_delays(0, 0, 0, 0));
    add(STEP_MS, with_delays(0, 8, 0, 0));
    struct pb_web_sample other = {
        .start_s = 2000, .limit_s = {5, INFINITY}, .delays = {3, 0}, .n_limits = 2};
    add(2 * STEP_MS, other);
    read_graphs(PB_WEB_HOUR, 2 * STEP_MS - 1);
    ck_assert_double_eq(all("p50_s"), 2.5);
}
END_TEST

START_TEST(test_time_of_threads_is_divided)
{
    struct pb_web_sample sample = sample_of(0);
    add(0, sample);
    sample.stage[0].busy_s = 3;
    sample.stage[0].parked_s = 1;
    sample.stage[1].busy_s = 4;
    (void)snprintf(sample.stage[0].name, sizeof sample.stage[0].name, "read");
    (void)snprintf(sample.stage[1].name, sizeof sample.stage[1].name, "write");
    add(STEP_MS, sample);
    read_graphs(PB_WEB_HOUR, STEP_MS);
    ck_assert_double_eq(value("read", 0), 0.375);
    ck_assert_double_eq(value("write", 0), 0.5);
    ck_assert_double_eq(value("parked", 0), 0.125);
    add(2 * STEP_MS, sample); /* no job ended */
    add(3 * STEP_MS, sample);
    read_graphs(PB_WEB_HOUR, 3 * STEP_MS);
    ck_assert(isnan(value("read", 0)));
}
END_TEST

START_TEST(test_spans_have_names)
{
    enum pb_web_span span = PB_WEB_WEEK;
    ck_assert(pb_web_span_read(NULL, &span) && span == PB_WEB_HOUR);
    ck_assert(pb_web_span_read("week", &span) && span == PB_WEB_WEEK);
    ck_assert(pb_web_span_read("day", &span) && span == PB_WEB_DAY);
    ck_assert(!pb_web_span_read("year", &span));
    ck_assert(!pb_web_span_read("", &span));
    read_graphs(PB_WEB_DAY, 0);
    ck_assert_ptr_null(pb_json_get_text(graphs, "since"));
    ck_assert(isnan(value("done", 0)));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("web_ring");
    TCase *tcase = tcase_create("ring");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, test_metrics_are_summed_over_pipelines);
    tcase_add_test(tcase, test_rises_are_in_the_slot_between_samples);
    tcase_add_test(tcase, test_counters_of_another_start_count_from_0);
    tcase_add_test(tcase, test_gap_stays_a_gap);
    tcase_add_test(tcase, test_close_samples_make_no_rate);
    tcase_add_test(tcase, test_old_slots_are_replaced);
    tcase_add_test(tcase, test_step_of_the_clock_loses_nothing_new);
    tcase_add_test(tcase, test_percentiles_are_those_of_the_histogram);
    tcase_add_test(tcase, test_other_limits_replace_the_histogram);
    tcase_add_test(tcase, test_time_of_threads_is_divided);
    tcase_add_test(tcase, test_spans_have_names);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
