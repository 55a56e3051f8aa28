/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The calls of the job store (store.h). Every test runs over each kind of store. */
#include "service/jobs/job_store.h"
#include "service/jobs/journal.h"

#include "store_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_job_store *store, *other; /* two sessions of one store */

static struct pb_job_store *open_session(void)
{
    struct pb_err err = {0};
    char moved[4096];
    struct pb_job_store *session = NULL;
    ck_assert_msg(pb_job_store_open(&place, &err, moved, &session) == 0, "%s", err.msg);
    return session;
}

static void begin(void)
{
    store = open_session();
    other = open_session();
}

static void end(void)
{
    pb_job_store_close(store);
    pb_job_store_close(other);
}

static struct pb_job offer(const char *id, const char *scene)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-%s", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", scene);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    return job;
}

static struct pb_job find(const char *id)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    return job;
}

static enum pb_job_status status_of(const char *id)
{
    struct pb_job job = find(id);
    const enum pb_job_status status = job.status;
    pb_job_fini(&job);
    return status;
}

/* Moves a waiting job to running and takes it in that session. */
static int take(struct pb_job_store *session, struct pb_job *job)
{
    int result = 1;
    if (job->status == PB_JOB_ACCEPTED)
        ck_assert_int_eq(pb_job_move(job, PB_JOB_RUNNING, 10), 0);
    ck_assert_int_eq(pb_store_take(session, &job, 1, &result, NULL), 0);
    return result;
}

/* Puts the running job back into the queue. */
static void put_back(struct pb_job *job)
{
    ck_assert_int_eq(pb_job_move(job, PB_JOB_ACCEPTED, 20), 0);
    ck_assert_int_eq(pb_store_finish(store, job, NULL), 0);
}

static void add_kind(void *user, const struct pb_event *event)
{
    (void)strcat(strcat(user, strrchr(event->kind, '.') + 1), " ");
}

static const char *events(void)
{
    static char kinds[256];
    kinds[0] = '\0';
    ck_assert_int_ge(pb_journal_read(store, 0, "", 100, add_kind, kinds, NULL), 0);
    return kinds;
}

static void note_job(void *user, const struct pb_event *event)
{
    (void)strcat(user, event->job + 16);
}

START_TEST(test_offers_of_a_batch_have_their_own_results)
{
    static const char *const ids[] = {"bbbb", "aaaa", "cccc", "bbbb", "dddd"};
    static const int wanted[] = {0, -EEXIST, 0, -EEXIST, 0};
    enum { N = sizeof ids / sizeof ids[0] };
    struct pb_job jobs[N], *list[N], first = offer("aaaa", "s");
    struct pb_err err = {0};
    int results[N];
    char events[64] = "";
    for (int i = 0; i < N; i++) {
        list[i] = &jobs[i];
        pb_job_init(&jobs[i]);
        (void)snprintf(jobs[i].id, sizeof jobs[i].id, "20261121-082850-%s", ids[i]);
        (void)snprintf(jobs[i].scene, sizeof jobs[i].scene, "s%d", i);
    }
    ck_assert_msg(pb_store_offer_all(store, list, N, results, &err) == 0, "%s", err.msg);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(results[i], wanted[i]);
    ck_assert_int_gt(jobs[0].seq, first.seq);
    ck_assert_int_gt(jobs[2].seq, jobs[0].seq);
    ck_assert_int_gt(jobs[4].seq, jobs[2].seq);
    struct pb_job stored = find("bbbb");
    ck_assert_int_eq(stored.seq, jobs[0].seq);
    ck_assert_str_eq(stored.scene, "s0");
    ck_assert_int_eq(pb_journal_read(store, 0, "", 100, note_job, events, NULL), 4);
    ck_assert_str_eq(events, "aaaabbbbccccdddd");
    pb_job_fini(&stored);
    pb_job_fini(&first);
    for (int i = 0; i < N; i++)
        pb_job_fini(&jobs[i]);
}
END_TEST

START_TEST(test_take_starts_a_waiting_job_once)
{
    struct pb_job job = offer("aaaa", "a"), late = find("aaaa");
    ck_assert_int_eq(take(store, &job), 0);
    ck_assert_int_eq(job.epoch, 1);
    ck_assert_int_eq(take(other, &late), -ESTALE);
    ck_assert_str_eq(events(), "accepted running ");
    pb_job_fini(&job);
    pb_job_fini(&late);
}
END_TEST

START_TEST(test_take_of_an_earlier_epoch_is_refused)
{
    struct pb_job job = offer("aaaa", "a"), late = find("aaaa");
    ck_assert_int_eq(take(store, &job), 0);
    put_back(&job);
    ck_assert_int_eq(take(other, &late), -ESTALE);
    ck_assert_int_eq(status_of("aaaa"), PB_JOB_ACCEPTED);
    ck_assert_int_eq(take(other, &job), 0);
    ck_assert_int_eq(job.epoch, 2);
    pb_job_fini(&job);
    pb_job_fini(&late);
}
END_TEST

START_TEST(test_take_runs_one_job_of_a_scene)
{
    struct pb_job first = offer("aaaa", "a"), second = offer("bbbb", "a"), b = offer("cccc", "b");
    ck_assert_int_eq(take(store, &first), 0);
    ck_assert_int_eq(take(other, &second), -ESTALE);
    ck_assert_int_eq(status_of("bbbb"), PB_JOB_ACCEPTED);
    ck_assert_int_eq(take(other, &b), 0);
    ck_assert_int_eq(pb_job_move(&first, PB_JOB_SUCCESSFUL, 20), 0);
    ck_assert_int_eq(pb_store_finish(store, &first, NULL), 0);
    ck_assert_int_eq(take(other, &second), 0);
    pb_job_fini(&first);
    pb_job_fini(&second);
    pb_job_fini(&b);
}
END_TEST

START_TEST(test_take_of_several_jobs_starts_those_that_may)
{
    struct pb_job a = offer("aaaa", "a"), b = offer("bbbb", "a"), c = offer("cccc", "c");
    struct pb_job *const jobs[] = {&a, &b, &c};
    int results[3];
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pb_job_move(jobs[i], PB_JOB_RUNNING, 10), 0);
    ck_assert_int_eq(pb_store_take(store, jobs, 3, results, NULL), 0);
    ck_assert_int_eq(results[0], 0);
    ck_assert_int_eq(results[1], -ESTALE);
    ck_assert_int_eq(results[2], 0);
    ck_assert_str_eq(events(), "accepted accepted accepted running running ");
    for (int i = 0; i < 3; i++)
        pb_job_fini(jobs[i]);
}
END_TEST

START_TEST(test_finish_of_an_earlier_epoch_is_refused)
{
    struct pb_job job = offer("aaaa", "a");
    ck_assert_int_eq(take(store, &job), 0);
    struct pb_job late = find("aaaa");
    put_back(&job);
    ck_assert_int_eq(take(other, &job), 0);
    ck_assert_int_eq(pb_job_move(&late, PB_JOB_SUCCESSFUL, 30), 0);
    ck_assert_int_eq(pb_store_finish(store, &late, NULL), -ESTALE);
    ck_assert_int_eq(status_of("aaaa"), PB_JOB_RUNNING);
    ck_assert_str_eq(events(), "accepted running accepted running ");
    pb_job_fini(&job);
    pb_job_fini(&late);
}
END_TEST

START_TEST(test_finish_may_be_repeated)
{
    struct pb_job job = offer("aaaa", "a");
    ck_assert_int_eq(take(store, &job), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_FAILED, 20), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    ck_assert_str_eq(events(), "accepted running failed ");
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_permit_is_for_the_running_epoch)
{
    struct pb_job job = offer("aaaa", "a");
    ck_assert_int_eq(pb_store_permit(store, job.id, 0, NULL), -ESTALE);
    ck_assert_int_eq(take(store, &job), 0);
    ck_assert_int_eq(pb_store_permit(store, job.id, 1, NULL), 0);
    ck_assert_int_eq(pb_store_permit(other, job.id, 1, NULL), -ESTALE);
    put_back(&job);
    ck_assert_int_eq(pb_store_permit(store, job.id, 1, NULL), -ESTALE);
    ck_assert_int_eq(take(store, &job), 0);
    ck_assert_int_eq(pb_store_permit(store, job.id, 1, NULL), -ESTALE);
    ck_assert_int_eq(pb_store_permit(store, job.id, 2, NULL), 0);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_reap_leaves_jobs_of_the_own_session)
{
    struct pb_job own = offer("aaaa", "a"), foreign = offer("bbbb", "b");
    ck_assert_int_eq(take(store, &own), 0);
    ck_assert_int_eq(take(other, &foreign), 0);
    ck_assert_int_eq(pb_store_reap(store, 30, NULL), 1);
    ck_assert_int_eq(status_of("aaaa"), PB_JOB_RUNNING);
    ck_assert_int_eq(status_of("bbbb"), PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_store_permit(other, foreign.id, 1, NULL), -ESTALE);
    pb_job_fini(&own);
    pb_job_fini(&foreign);
}
END_TEST

static void set_needs(const char *digest)
{
    struct pb_store_needs *needs = calloc(1, sizeof *needs + sizeof needs->at[0]);
    needs->n = 1;
    (void)snprintf(needs->at[0].pipeline, sizeof needs->at[0].pipeline, "p");
    (void)snprintf(needs->at[0].digest, sizeof needs->at[0].digest, "%s", digest);
    ck_assert_int_eq(pb_store_set_needs(store, needs, NULL), 0);
}

static void check_needs(const char *id, const char *digest)
{
    struct pb_job job = find(id);
    ck_assert_str_eq(job.needs, digest);
    pb_job_fini(&job);
}

static struct pb_job offer_through(const char *pipeline, const char *id)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-%s", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    (void)snprintf(job.pipeline, sizeof job.pipeline, "%s", pipeline);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    return job;
}

START_TEST(test_needs_follow_the_pipeline_of_the_service)
{
    struct pb_job early = offer_through("p", "aaaa");
    check_needs("aaaa", ""); /* like a row of an older version */
    set_needs("one");
    struct pb_job waiting = offer_through("p", "bbbb"), other_one = offer_through("q", "cccc"),
                  ended = offer_through("p", "dddd");
    check_needs("aaaa", "one");
    check_needs("bbbb", "one");
    check_needs("cccc", "");
    ck_assert_int_eq(take(store, &ended), 0);
    ck_assert_int_eq(pb_job_move(&ended, PB_JOB_FAILED, 20), 0);
    ck_assert_int_eq(pb_store_finish(store, &ended, NULL), 0);
    set_needs("two");
    check_needs("bbbb", "two");
    check_needs("cccc", "");
    check_needs("dddd", "one");
    ck_assert_int_eq(pb_job_move(&ended, PB_JOB_ACCEPTED, 30), 0); /* a retry */
    ck_assert_int_eq(pb_store_finish(store, &ended, NULL), 0);
    check_needs("dddd", "two");
    pb_job_fini(&early);
    pb_job_fini(&waiting);
    pb_job_fini(&other_one);
    pb_job_fini(&ended);
}
END_TEST

START_TEST(test_take_with_earlier_needs_is_refused)
{
    set_needs("one");
    struct pb_job job = offer_through("p", "aaaa");
    set_needs("two"); /* since it was chosen */
    struct pb_job again = find("aaaa");
    ck_assert_int_eq(take(store, &job), -ESTALE);
    ck_assert_int_eq(take(store, &again), 0);
    pb_job_fini(&job);
    pb_job_fini(&again);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_offers_of_a_batch_have_their_own_results);
    tcase_add_test(tests, test_take_starts_a_waiting_job_once);
    tcase_add_test(tests, test_take_of_an_earlier_epoch_is_refused);
    tcase_add_test(tests, test_take_runs_one_job_of_a_scene);
    tcase_add_test(tests, test_take_of_several_jobs_starts_those_that_may);
    tcase_add_test(tests, test_finish_of_an_earlier_epoch_is_refused);
    tcase_add_test(tests, test_finish_may_be_repeated);
    tcase_add_test(tests, test_permit_is_for_the_running_epoch);
    tcase_add_test(tests, test_reap_leaves_jobs_of_the_own_session);
    tcase_add_test(tests, test_needs_follow_the_pipeline_of_the_service);
    tcase_add_test(tests, test_take_with_earlier_needs_is_refused);
}

int main(void)
{
    return run_over_stores("store", begin, end, add_tests, NULL);
}
