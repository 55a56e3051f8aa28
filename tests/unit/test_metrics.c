/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/metrics.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_metrics metrics;

static struct pb_job make_job(const char *pipeline, int64_t took_ms)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.pipeline, sizeof job.pipeline, "%s", pipeline);
    job.status = PB_JOB_SUCCESSFUL;
    job.created_ms = 1000000;
    job.started_ms = 2000000;
    job.finished_ms = job.started_ms + took_ms;
    return job;
}

static bool has_line(const char *line)
{
    const struct pb_troubles troubles = {.n = 0};
    const struct pb_metrics_gauges gauges = {.troubles = &troubles};
    char *text = pb_metrics_print(&metrics, &gauges);
    ck_assert_ptr_nonnull(text);
    const char *at = strstr(text, line);
    bool found = at != NULL && at[strlen(line)] == '\n';
    free(text);
    return found;
}

START_TEST(counts_short_jobs_in_their_buckets)
{
    static const int64_t took_ms[] = {4, 10, 20, 8000000};
    memset(&metrics, 0, sizeof metrics);
    for (size_t i = 0; i < 4; i++) {
        const struct pb_job job = make_job("p", took_ms[i]);
        pb_metrics_finished(&metrics, &job);
    }
    ck_assert(has_line("pushbroom_job_duration_seconds_bucket{pipeline=\"p\",le=\"0.01\"} 2"));
    ck_assert(has_line("pushbroom_job_duration_seconds_bucket{pipeline=\"p\",le=\"0.025\"} 3"));
    ck_assert(has_line("pushbroom_job_duration_seconds_bucket{pipeline=\"p\",le=\"7200\"} 3"));
    ck_assert(has_line("pushbroom_job_duration_seconds_bucket{pipeline=\"p\",le=\"+Inf\"} 4"));
    ck_assert(has_line("pushbroom_job_duration_seconds_sum{pipeline=\"p\"} 8000.034"));
}
END_TEST

START_TEST(test_archive_of_scenes_has_no_duration_and_no_age)
{
    memset(&metrics, 0, sizeof metrics);
    struct pb_job job = make_job("p", 1000);
    (void)snprintf(job.stage, sizeof job.stage, "scenes");
    pb_metrics_finished(&metrics, &job);
    ck_assert(has_line("pushbroom_jobs_total{pipeline=\"p\",state=\"successful\"} 1"));
    ck_assert(!has_line("pushbroom_job_duration_seconds_count{pipeline=\"p\"} 1"));
    ck_assert(!has_line("pushbroom_delivery_to_product_seconds_count{pipeline=\"p\"} 1"));
}
END_TEST

START_TEST(escapes_label_values)
{
    memset(&metrics, 0, sizeof metrics);
    const struct pb_job job = make_job("a\"b\\c\nd", 1);
    pb_metrics_finished(&metrics, &job);
    ck_assert(
        has_line("pushbroom_jobs_total{pipeline=\"a\\\"b\\\\c\\nd\",state=\"successful\"} 1"));
}
END_TEST

START_TEST(counts_pipelines_over_the_limit_as_other)
{
    char name[32];
    memset(&metrics, 0, sizeof metrics);
    for (int i = 0; i < PB_METRICS_PIPELINES + 10; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        const struct pb_job job = make_job(name, 1);
        pb_metrics_finished(&metrics, &job);
    }
    ck_assert_uint_eq(metrics.n_pipelines, PB_METRICS_PIPELINES + 1);
    ck_assert(has_line("pushbroom_jobs_total{pipeline=\"p63\",state=\"successful\"} 1"));
    ck_assert(has_line("pushbroom_jobs_total{pipeline=\"other\",state=\"successful\"} 10"));
}
END_TEST

START_TEST(counts_jobs_without_pipeline_as_none)
{
    memset(&metrics, 0, sizeof metrics);
    const struct pb_job job = make_job("", 1);
    pb_metrics_count(&metrics, &job);
    ck_assert(has_line("pushbroom_jobs_total{pipeline=\"none\",state=\"successful\"} 1"));
}
END_TEST

START_TEST(test_archive_counts_as_one_quarantined_input)
{
    memset(&metrics, 0, sizeof metrics);
    struct pb_job job = make_job("p", 1000);
    job.status = PB_JOB_FAILED;
    pb_job_fail(&job, PB_E_INPUT_SCENES, "2 of 2 scenes failed");
    pb_metrics_finished(&metrics, &job);
    pb_job_fail(&job, PB_E_INPUT_TRUNCATED, "so");
    (void)snprintf(job.archive, sizeof job.archive, "20260101-000000-abcd");
    pb_metrics_finished(&metrics, &job);
    pb_metrics_finished(&metrics, &job);
    ck_assert(has_line("pushbroom_quarantined_total{reason=\"input.scenes\"} 1"));
    ck_assert(!has_line("pushbroom_quarantined_total{reason=\"input.truncated\"} 2"));
    ck_assert(has_line("pushbroom_jobs_total{pipeline=\"p\",state=\"failed\"} 3"));
}
END_TEST

START_TEST(takes_ages_from_arrival_and_acquisition)
{
    char report[] = "{\"metadata\": {\"datetime\": \"1970-01-01T00:10:00.5Z\"}}";
    memset(&metrics, 0, sizeof metrics);
    struct pb_job job = make_job("p", 1000);
    job.report = report;
    job.delivered_ms = 901000; /* the job finished at 2001000 */
    pb_metrics_finished(&metrics, &job);
    ck_assert(has_line("pushbroom_delivery_to_product_seconds_sum{pipeline=\"p\"} 1100.000"));
    ck_assert(has_line("pushbroom_acquisition_to_product_seconds_sum{pipeline=\"p\"} 1401.000"));
    job.delivered_ms = 0; /* submitted file: time of its submission */
    pb_metrics_finished(&metrics, &job);
    ck_assert(has_line("pushbroom_delivery_to_product_seconds_sum{pipeline=\"p\"} 2101.000"));
    (void)snprintf(job.again, sizeof job.again, "20260101-000000-abcd");
    pb_metrics_finished(&metrics, &job);
    ck_assert(has_line("pushbroom_delivery_to_product_seconds_count{pipeline=\"p\"} 2"));
    job.again[0] = '\0';
    job.status = PB_JOB_FAILED;
    pb_metrics_finished(&metrics, &job);
    ck_assert(has_line("pushbroom_delivery_to_product_seconds_count{pipeline=\"p\"} 2"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = tcase_create("metrics");
    tcase_add_test(tcase, counts_short_jobs_in_their_buckets);
    tcase_add_test(tcase, test_archive_of_scenes_has_no_duration_and_no_age);
    tcase_add_test(tcase, escapes_label_values);
    tcase_add_test(tcase, counts_pipelines_over_the_limit_as_other);
    tcase_add_test(tcase, counts_jobs_without_pipeline_as_none);
    tcase_add_test(tcase, test_archive_counts_as_one_quarantined_input);
    tcase_add_test(tcase, takes_ages_from_arrival_and_acquisition);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
