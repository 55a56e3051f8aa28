/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/runner/job_queue.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static struct pb_job_store *store;
static struct pb_job_queue queue;

static void make(void)
{
    char moved[4096];
    struct pb_err err = {0};
    (void)snprintf(directory, sizeof directory, "/tmp/pb-queue-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_msg(pb_job_store_open(directory, &err, moved, &store) == 0, "%s", err.msg);
    queue = (struct pb_job_queue){.reader = store};
}

static void end(void)
{
    char command[128];
    pb_job_store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* bytes: of its input in our directory; 0 = a submitted file. */
static void insert_with(const char *id, int bytes, int priority)
{
    struct pb_job job;
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    pb_job_init(&job);
    job.priority = priority;
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.scene, sizeof job.scene, "%s", id);
    job.status = PB_JOB_ACCEPTED;
    job.owned = bytes > 0;
    (void)snprintf(path, sizeof path, "%s/%s.tif", directory, id);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, path), 0);
    if (bytes > 0) {
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(ftruncate(fileno(file), bytes), 0);
        (void)fclose(file);
    }
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
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

static const char *take(int rc, struct pb_job *job)
{
    static char id[PB_JOB_ID_BYTES];
    ck_assert_int_ge(rc, 0);
    (void)snprintf(id, sizeof id, "%s", rc > 0 ? job->id : "none");
    if (rc > 0)
        pb_job_fini(job);
    return id;
}

static const char *next(char *barred, bool ranked)
{
    struct pb_job job;
    struct pb_err err = {0};
    bool more = true;
    const struct pb_job_filter filter = {
        .may = is_other, .rank = ranked ? from_the_end : NULL, .user = barred};
    int rc = pb_job_queue_next(&queue, &filter, &err, &more, &job);
    ck_assert(!more);
    return take(rc, &job);
}

static const char *smallest(char *barred)
{
    struct pb_job job;
    struct pb_err err = {0};
    const struct pb_job_filter filter = {.may = is_other, .user = barred};
    return take(pb_job_queue_smallest(&queue, &filter, &err, &job), &job);
}

START_TEST(gives_the_oldest_job_that_may_start)
{
    insert("a", 0);
    insert("b", 0);
    ck_assert_str_eq(next(NULL, false), "a");
    ck_assert_str_eq(next("a", false), "b");
}
END_TEST

START_TEST(job_of_the_least_rank_precedes_older_jobs)
{
    insert("a", 0);
    insert("b", 0);
    insert("c", 0);
    ck_assert_str_eq(next(NULL, true), "c");
    ck_assert_str_eq(next("c", true), "b");
}
END_TEST

START_TEST(higher_priority_precedes_all_ranks_of_a_lower_one)
{
    insert("c", 0);
    insert_with("a", 0, 5);
    insert_with("b", 0, 5);
    insert_with("d", 0, -5);
    ck_assert_str_eq(next(NULL, false), "a");
    ck_assert_str_eq(next(NULL, true), "b"); /* the highest priority, by rank */
    ck_assert_str_eq(next("b", true), "a");
}
END_TEST

START_TEST(gives_the_smallest_input_and_submitted_files_last)
{
    insert("a", 0);
    insert("b", 300);
    insert("c", 100);
    insert("d", 200);
    ck_assert_str_eq(smallest(NULL), "c");
    ck_assert_str_eq(smallest("c"), "d");
}
END_TEST

START_TEST(gives_none_when_none_may_start)
{
    const struct pb_job_filter filter = {.may = is_other, .user = "a"};
    ck_assert(pb_job_queue_is_empty(&queue));
    ck_assert_str_eq(next(NULL, false), "none");
    insert("a", 100);
    ck_assert(!pb_job_queue_is_empty(&queue));
    ck_assert_str_eq(next("a", true), "none");
    ck_assert_str_eq(smallest("a"), "none");
    ck_assert(!pb_job_queue_has(&queue, &filter));
    insert("b", 100);
    ck_assert(pb_job_queue_has(&queue, &filter));
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
    tcase_add_test(t, gives_the_smallest_input_and_submitted_files_last);
    tcase_add_test(t, gives_none_when_none_may_start);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
