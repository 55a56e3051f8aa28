/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ctest: threads */
#include "service/runner/job_queue.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static struct pb_job_store *store, *other; /* two sessions */
static struct pb_job_queue queue;
static pthread_rwlock_t moves = PTHREAD_RWLOCK_INITIALIZER;

static void make(void)
{
    char moved[4096];
    struct pb_err err = {0};
    (void)snprintf(directory, sizeof directory, "/tmp/pb-queue-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_msg(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved,
                                    &store) == 0,
                  "%s", err.msg);
    ck_assert_msg(pb_job_store_open(&(struct pb_store_place){.directory = directory}, &err, moved,
                                    &other) == 0,
                  "%s", err.msg);
    queue = (struct pb_job_queue){.store = store, .reader = store, .moves = &moves};
}

static void end(void)
{
    char command[128];
    pb_job_store_close(store);
    pb_job_store_close(other);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* bytes: size of its file at delivery; 0 = unknown. */
static void insert_with(const char *id, int bytes, int priority)
{
    struct pb_job job;
    const struct pb_manifest_entry file = {.path = (char *)"a.tif", .bytes = bytes};
    pb_job_init(&job);
    job.priority = priority;
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    if (bytes > 0)
        ck_assert_int_eq(pb_job_add_delivered(&job, "/inbox", &file, NULL), 0);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    ck_assert_int_eq(job.bytes, bytes);
    pb_job_fini(&job);
}

static void insert(const char *id, int bytes)
{
    insert_with(id, bytes, 0);
}

static bool is_other(void *user, const struct pb_job *job)
{
    const char *barred = user;
    return barred == NULL || strcmp(job->id, barred) != 0;
}

/* "c" before "b" before "a". */
static int64_t from_the_end(void *user, const struct pb_job *job)
{
    (void)user;
    return 'z' - job->id[0];
}

/* Takes jobs that may start; returns their ids, "none" without. */
static const char *take(struct pb_job_ask ask)
{
    static char ids[256];
    queue.ask = ask;
    pb_job_queue_take_now(&queue);
    ck_assert_int_eq(queue.rc, 0);
    ck_assert(queue.found == (queue.n > 0 || ask.n == 0));
    ids[0] = '\0';
    for (int i = 0; i < queue.n; i++) {
        ck_assert_int_eq(queue.jobs[i].job.status, PB_JOB_RUNNING);
        (void)strcat(ids, queue.jobs[i].job.id);
        pb_job_fini(&queue.jobs[i].job);
    }
    return queue.n > 0 ? ids : "none";
}

static const char *next(char *barred, bool ranked)
{
    return take((struct pb_job_ask){
        .n = 1, .may = is_other, .rank = ranked ? from_the_end : NULL, .user = barred});
}

static const char *smallest(char *barred)
{
    return take((struct pb_job_ask){.n = 1, .may = is_other, .smallest = true, .user = barred});
}

static bool has(char *barred)
{
    queue.ask = (struct pb_job_ask){.may = is_other, .user = barred};
    pb_job_queue_take_now(&queue);
    ck_assert_int_eq(queue.n, 0);
    return queue.found;
}

START_TEST(gives_the_oldest_job_that_may_start)
{
    insert("a", 0);
    insert("b", 0);
    insert("c", 0);
    ck_assert_str_eq(next("a", false), "b");
    ck_assert_str_eq(next(NULL, false), "a");
    ck_assert_str_eq(next(NULL, false), "c");
    ck_assert_str_eq(next(NULL, false), "none");
}
END_TEST

START_TEST(job_of_the_least_rank_precedes_older_jobs)
{
    insert("a", 0);
    insert("b", 0);
    insert("c", 0);
    ck_assert_str_eq(next("c", true), "b");
    ck_assert_str_eq(next(NULL, true), "c");
}
END_TEST

START_TEST(higher_priority_precedes_all_ranks_of_a_lower_one)
{
    insert("c", 0);
    insert_with("a", 0, 5);
    insert_with("b", 0, 5);
    insert_with("d", 0, -5);
    ck_assert_str_eq(next("a", false), "b");
    insert_with("e", 0, 5);
    ck_assert_str_eq(next(NULL, true), "e"); /* the highest priority, by rank */
    ck_assert_str_eq(next(NULL, false), "a");
    ck_assert_str_eq(next(NULL, true), "c");
}
END_TEST

START_TEST(gives_the_smallest_input_and_unknown_sizes_last)
{
    insert("a", 0);
    insert("b", 300);
    insert("c", 100);
    insert("d", 200);
    ck_assert_str_eq(smallest("c"), "d");
    ck_assert_str_eq(smallest(NULL), "c");
    ck_assert_str_eq(smallest(NULL), "b");
    ck_assert_str_eq(smallest(NULL), "a");
}
END_TEST

START_TEST(test_first_stored_job_is_found_as_smallest)
{
    insert("a", 100);
    insert_with("b", 300, 5);
    ck_assert_str_eq(smallest(NULL), "a");
    ck_assert_str_eq(smallest(NULL), "b");
}
END_TEST

START_TEST(gives_none_when_none_may_start)
{
    ck_assert_str_eq(next(NULL, false), "none");
    insert("a", 100);
    ck_assert_str_eq(next("a", true), "none");
    ck_assert_str_eq(smallest("a"), "none");
    ck_assert(!has("a"));
    insert("b", 100);
    ck_assert(has("a"));
    ck_assert_str_eq(next("a", true), "b");
}
END_TEST

START_TEST(test_several_jobs_are_taken_in_order)
{
    struct pb_job_ask ask = {.n = 3, .may = is_other};
    insert("a", 0);
    insert_with("b", 0, 1);
    insert("c", 0);
    insert("d", 0);
    ck_assert_str_eq(take(ask), "bac");
    ck_assert_str_eq(take(ask), "d");
}
END_TEST

/* Takes the job in another session while the queue chooses it. */
static bool take_first(void *user, const struct pb_job *chosen)
{
    struct pb_job job;
    int *left = user, result = 1;
    struct pb_job *const jobs[] = {&job};
    if ((*left)-- <= 0 || pb_job_store_find(other, chosen->id, NULL, &job) != 0)
        return true;
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_RUNNING, 1), 0);
    ck_assert_int_eq(pb_store_take(other, jobs, 1, &result, NULL), 0);
    ck_assert_int_eq(result, 0);
    pb_job_fini(&job);
    return true;
}

START_TEST(test_job_taken_by_another_session_is_left)
{
    int left = 1;
    insert("a", 0);
    insert("b", 0);
    ck_assert_str_eq(take((struct pb_job_ask){.n = 1, .may = take_first, .user = &left}), "b");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_queue");
    TCase *t = tcase_create("job_queue");
    tcase_add_checked_fixture(t, make, end);
    tcase_add_test(t, gives_the_oldest_job_that_may_start);
    tcase_add_test(t, job_of_the_least_rank_precedes_older_jobs);
    tcase_add_test(t, higher_priority_precedes_all_ranks_of_a_lower_one);
    tcase_add_test(t, gives_the_smallest_input_and_unknown_sizes_last);
    tcase_add_test(t, test_first_stored_job_is_found_as_smallest);
    tcase_add_test(t, gives_none_when_none_may_start);
    tcase_add_test(t, test_several_jobs_are_taken_in_order);
    tcase_add_test(t, test_job_taken_by_another_session_is_left);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
