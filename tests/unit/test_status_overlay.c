/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * The overlay itself has no threads; its header is that of the reader, which has one. */
#include "service/status/status_overlay.h"

#include "job_store_fixture.h"
#include "run_suite.h"

#include <errno.h>

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
    pb_overlay_put(&overlay, "", &job, true);
    pb_job_fini(&job);
}

static int add(void *user, struct pb_job *stored)
{
    struct pb_job *job = pb_job_listing_add(user);
    *job = *stored;
    pb_job_init(stored);
    return 0;
}

/* Lists the jobs; spare: rows that are read beyond the limit of the query. */
static int list_with(const struct pb_job_query *query, int64_t spare, struct pb_job_listing **out)
{
    struct pb_job_query all = *query;
    struct pb_job_listing rows = {.n = 0};
    struct pb_err err = {0};
    all.limit += spare;
    ck_assert_msg(pb_job_store_list(store, &all, add, &rows, &err) == 0, "%s", err.msg);
    const int rc = pb_overlay_list(&overlay, query, &rows, all.limit, out);
    pb_job_listing_fini(&rows);
    return rc;
}

static struct pb_job_listing *list(const struct pb_job_query *query)
{
    struct pb_job_listing *listing = NULL;
    ck_assert_int_eq(list_with(query, (int64_t)overlay.n, &listing), 0);
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

START_TEST(test_list_with_too_few_rows_is_read_again)
{
    const struct pb_job_query query = {.status_mask = RUNNING, .before_seq = INT64_MAX, .limit = 2};
    struct pb_job_listing *listing = NULL;
    show(ID("d"), PB_JOB_SUCCESSFUL);
    show(ID("b"), PB_JOB_SUCCESSFUL);
    show(ID("a"), PB_JOB_RUNNING);
    ck_assert_int_eq(list_with(&query, 0, &listing), -EAGAIN);
    ck_assert_int_eq(list_with(&query, 1, &listing), 0);
    ck_assert_uint_eq(listing->n, 1);
    pb_job_listing_free(listing);
}
END_TEST

/* Compares the overlay with the store as the service does. */
static void compare(bool all)
{
    struct pb_reading *check = pb_reading_create(PB_READ_CHECK, NULL, NULL);
    pb_overlay_choose(&overlay, "", all, check);
    for (size_t i = 0; i < check->n_checked; i++) {
        struct pb_checked *checked = &check->checked[i];
        checked->is_known = true;
        checked->is_there = pb_job_store_find(store, checked->id, NULL, &checked->job) == 0;
    }
    pb_overlay_compare(&overlay, "", check);
    pb_reading_destroy(check);
}

static void put(const char *id, enum pb_job_status status, bool stored)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    job.status = status;
    job.updated_ms = 2000;
    if (stored)
        ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_overlay_put(&overlay, "", &job, false);
    pb_job_fini(&job);
}

START_TEST(test_jobs_are_shown_until_the_store_has_them)
{
    put(ID("b"), PB_JOB_SUCCESSFUL, true);
    put(ID("c"), PB_JOB_RUNNING, true);
    put(ID("d"), PB_JOB_FAILED, false);
    show(ID("e"), PB_JOB_SUCCESSFUL); /* held */
    ck_assert_uint_eq(overlay.n_new, 2);
    compare(false);
    ck_assert_uint_eq(overlay.n_new, 0);
    ck_assert_ptr_null(pb_overlay_find(&overlay, ID("b")));
    ck_assert_ptr_nonnull(pb_overlay_find(&overlay, ID("c")));
    ck_assert_ptr_nonnull(pb_overlay_find(&overlay, ID("d")));
    put(ID("d"), PB_JOB_FAILED, true);
    compare(true);
    ck_assert_ptr_null(pb_overlay_find(&overlay, ID("d")));
    ck_assert_ptr_nonnull(pb_overlay_find(&overlay, ID("e")));
    ck_assert_uint_eq(overlay.n, 2);
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
    tcase_add_test(tests, test_list_with_too_few_rows_is_read_again);
    tcase_add_test(tests, test_jobs_are_shown_until_the_store_has_them);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
