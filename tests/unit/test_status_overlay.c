/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/status/status_overlay.h"

#include "job_store_fixture.h"
#include "run_suite.h"

#define ID(letter) "20261121-082850-" letter letter letter letter
#define RUNNING    PB_JOB_MASK(PB_JOB_RUNNING)
#define SUCCESSFUL PB_JOB_MASK(PB_JOB_SUCCESSFUL)

static struct pb_overlay overlay;

/* Shows the stored job in another state. */
static void show(const char *id, enum pb_job_status status)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    job.status = status;
    job.updated_ms = 2000;
    pb_overlay_put(&overlay, store, &job, true);
    pb_job_fini(&job);
}

static struct pb_job_listing *list(const struct pb_job_query *query)
{
    struct pb_job_listing *listing = NULL;
    struct pb_err err = {0};
    ck_assert_msg(pb_overlay_list(&overlay, store, query, &err, &listing) == 0, "%s", err.msg);
    return listing;
}

/* Last letters of the ids that are listed. */
static const char *letters(unsigned mask, int64_t before_seq, int64_t limit)
{
    static char text[32];
    const struct pb_job_query query = {
        .status_mask = mask, .before_seq = before_seq, .limit = limit};
    struct pb_job_listing *listing = list(&query);
    for (size_t i = 0; i < listing->n; i++)
        text[i] = listing->jobs[i].id[19];
    text[listing->n] = '\0';
    pb_job_listing_free(listing);
    return text;
}

static void make_jobs(void)
{
    make();
    overlay = (struct pb_overlay){0};
    insert(ID("a"), PB_JOB_SUCCESSFUL);
    insert(ID("b"), PB_JOB_RUNNING);
    insert(ID("c"), PB_JOB_ACCEPTED);
    insert(ID("d"), PB_JOB_RUNNING);
    insert(ID("e"), PB_JOB_SUCCESSFUL);
}

static void end_jobs(void)
{
    pb_overlay_fini(&overlay);
    end();
}

START_TEST(test_list_has_each_job_once_in_its_present_state)
{
    show(ID("a"), PB_JOB_RUNNING);    /* its end is stored, but was not announced */
    show(ID("d"), PB_JOB_SUCCESSFUL); /* its end is announced, but could not be stored */
    show(ID("b"), PB_JOB_RUNNING);
    ck_assert_str_eq(letters(RUNNING, INT64_MAX, 10), "ba");
    ck_assert_str_eq(letters(SUCCESSFUL, INT64_MAX, 10), "ed");
    ck_assert_str_eq(letters(PB_JOB_MASK_ALL, INT64_MAX, 10), "edcba");
    ck_assert_str_eq(letters(RUNNING | SUCCESSFUL, INT64_MAX, 10), "edba");
    ck_assert_str_eq(letters(0, INT64_MAX, 10), "");
}
END_TEST

START_TEST(test_list_has_a_limit_and_begins_before_a_job)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, ID("d"), NULL, &job), 0);
    show(ID("a"), PB_JOB_RUNNING);
    show(ID("e"), PB_JOB_RUNNING);
    ck_assert_str_eq(letters(RUNNING, INT64_MAX, 4), "edba");
    ck_assert_str_eq(letters(RUNNING, INT64_MAX, 3), "edb");
    ck_assert_str_eq(letters(RUNNING, INT64_MAX, 1), "e");
    ck_assert_str_eq(letters(RUNNING, job.seq, 2), "ba");
    ck_assert_str_eq(letters(RUNNING, job.seq, 1), "b");
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_list_does_not_change_with_the_jobs)
{
    const struct pb_job_query query = {
        .status_mask = PB_JOB_MASK_ALL, .before_seq = INT64_MAX, .limit = 10};
    struct pb_job_listing *listing = list(&query);
    insert(ID("f"), PB_JOB_ACCEPTED);
    show(ID("b"), PB_JOB_FAILED);
    pb_overlay_fini(&overlay);
    ck_assert_uint_eq(listing->n, 5);
    ck_assert_str_eq(listing->jobs[3].id, ID("b"));
    ck_assert_int_eq(listing->jobs[3].status, PB_JOB_RUNNING);
    pb_job_listing_free(listing);
}
END_TEST

START_TEST(test_list_has_jobs_of_a_pipeline_and_a_time)
{
    struct pb_job job;
    struct pb_job_query query = {
        .status_mask = PB_JOB_MASK_ALL, .before_seq = INT64_MAX, .limit = 10, .pipeline = "p"};
    ck_assert_int_eq(pb_job_store_find(store, ID("b"), NULL, &job), 0);
    (void)snprintf(job.pipeline, sizeof job.pipeline, "p");
    job.updated_ms = 5000;
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_fini(&job);
    struct pb_job_listing *listing = list(&query);
    ck_assert_uint_eq(listing->n, 1);
    ck_assert_str_eq(listing->jobs[0].id, ID("b"));
    pb_job_listing_free(listing);
    show(ID("a"), PB_JOB_RUNNING); /* at 2000 */
    query.pipeline = NULL;
    query.since_ms = 2000;
    listing = list(&query);
    ck_assert_uint_eq(listing->n, 2);
    ck_assert_str_eq(listing->jobs[1].id, ID("a"));
    pb_job_listing_free(listing);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("status_overlay");
    TCase *tests = tcase_create("status_overlay");
    tcase_add_checked_fixture(tests, make_jobs, end_jobs);
    tcase_add_test(tests, test_list_has_each_job_once_in_its_present_state);
    tcase_add_test(tests, test_list_has_a_limit_and_begins_before_a_job);
    tcase_add_test(tests, test_list_does_not_change_with_the_jobs);
    tcase_add_test(tests, test_list_has_jobs_of_a_pipeline_and_a_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
