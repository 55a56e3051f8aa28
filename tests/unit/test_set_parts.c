/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/set_parts.h"

#include "service/jobs/again_rows.h"
#include "service/jobs/kept.h"
#include "service/jobs/service_time.h"

#include "store_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST  "20261121-082850-aaaa"
#define SECOND "20261121-082850-bbbb"
#define THIRD  "20261121-082850-cccc"

static struct pb_job_store *store;
static const struct pb_set_key key = {"month", "T1", "/inbox", NULL};

static void make(void)
{
    char moved[PB_FILES_PATH_BYTES];
    ck_assert_int_eq(pb_job_store_open(&place, NULL, moved, &store), 0);
}

static void end(void)
{
    pb_job_store_close(store);
}

static void insert(const char *id, const char *set_id, const char *folder)
{
    struct pb_job job;
    pb_job_init(&job);
    job.owned = true;
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.set_id, sizeof job.set_id, "%s", set_id);
    (void)snprintf(job.replaces, sizeof job.replaces, "%s", strcmp(id, set_id) ? set_id : "");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "month");
    (void)snprintf(job.scene, sizeof job.scene, "T1");
    ck_assert_int_eq(pb_job_set(&job.inbox, "/inbox"), 0);
    ck_assert_int_eq(pb_job_set(&job.folder, folder), 0);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/work/x"), 0);
    const struct pb_manifest_entry file = {.path = "a.tif", .bytes = 5};
    ck_assert_int_eq(pb_job_add_delivered(&job, "/inbox", &file, NULL), 0);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_job_fini(&job);
}

/* Order of the service: it stores the end first, then the place of the input. */
static void finish(const char *id, enum pb_job_status status, const char *path)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    const struct pb_input_lists none = {.is_deleted = false};
    job.status = status;
    ck_assert_int_eq(pb_kept_update(store, &job, &none, NULL), 0);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, path), 0);
    ck_assert_int_eq(pb_kept_update(store, &job, &none, NULL), 0);
    pb_job_fini(&job);
}

static char last_maker[PB_JOB_ID_BYTES];

static int note(void *user, const struct pb_set_part *part)
{
    char *text = user;
    struct pb_scene_manifest manifest;
    (void)snprintf(last_maker, sizeof last_maker, "%s", part->maker);
    size_t n = strlen(text);
    ck_assert_int_eq(pb_scene_manifest_parse(part->manifest, &manifest), 0);
    ck_assert_uint_eq(manifest.n_entries, 1);
    (void)snprintf(text + n, 256 - n, "%.4s %s %s;", part->job + 16, part->path,
                   manifest.entry[0].path);
    pb_scene_manifest_fini(&manifest);
    return 0;
}

static const char *parts(const char *set_id)
{
    static char text[256];
    text[0] = '\0';
    ck_assert_int_eq(pb_set_parts_list(store, set_id, note, text, NULL), 0);
    return text;
}

START_TEST(the_parts_of_a_set_are_its_successful_jobs)
{
    struct pb_set_last last;
    insert(FIRST, FIRST, NULL);
    ck_assert_int_eq(pb_set_parts_last(store, &key, 0, NULL, &last), 0);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    insert(SECOND, FIRST, NULL);
    finish(SECOND, PB_JOB_FAILED, "/quarantine/a");
    ck_assert_str_eq(parts(FIRST), "aaaa /done/a a.tif;");
    finish(SECOND, PB_JOB_SUCCESSFUL, "/done/a.1");
    ck_assert_str_eq(parts(FIRST), "bbbb /done/a.1 a.tif;aaaa /done/a a.tif;");
    ck_assert_int_eq(pb_set_parts_last(store, &key, 0, NULL, &last), 1);
    ck_assert_str_eq(last.set_id, FIRST);
    ck_assert_str_eq(last.job, SECOND);
    ck_assert_int_eq(pb_set_parts_hold(store, "/done/a.1", NULL), 1);
    ck_assert_int_eq(pb_set_parts_hold(store, "/work/x", NULL), 0);
    ck_assert_int_eq(
        pb_set_parts_last(store, &key, pb_job_store_time_ms(store) + 60000, NULL, &last), 0);
}
END_TEST

/* Waiting or running job of the scene; "" = absent. */
static const char *busy(const struct pb_set_key *of)
{
    static struct pb_set_last last;
    ck_assert_int_ge(pb_set_parts_last(store, of, 0, NULL, &last), 0);
    return last.busy;
}

START_TEST(sets_of_other_inboxes_folders_pipelines_differ)
{
    struct pb_set_last last;
    const struct pb_set_key other = {"year", "T1", "/inbox", NULL},
                            below = {"month", "T1", "/inbox", "a/b"},
                            elsewhere = {"month", "T1", "/other", "a/b"};
    insert(FIRST, FIRST, "a/b");
    ck_assert_str_eq(busy(&below), FIRST);
    ck_assert_str_eq(busy(&elsewhere), "");
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    ck_assert_int_eq(pb_set_parts_last(store, &key, 0, NULL, &last), 0);
    ck_assert_int_eq(pb_set_parts_last(store, &other, 0, NULL, &last), 0);
    ck_assert_int_eq(pb_set_parts_last(store, &below, 0, NULL, &last), 1);
    ck_assert_int_eq(pb_set_parts_last(store, &elsewhere, 0, NULL, &last), 0);
}
END_TEST

START_TEST(a_job_that_waits_or_runs_keeps_its_set_busy)
{
    insert(THIRD, "", NULL); /* no loose files */
    ck_assert_str_eq(busy(&key), "");
    insert(FIRST, FIRST, NULL);
    ck_assert_str_eq(busy(&key), FIRST);
    finish(FIRST, PB_JOB_RUNNING, "/work/x");
    ck_assert_str_eq(busy(&key), FIRST);
    finish(FIRST, PB_JOB_FAILED, "/quarantine/x");
    ck_assert_str_eq(busy(&key), "");
}
END_TEST

START_TEST(sets_expire_by_newest_part_unless_a_job_waits)
{
    char name[PB_JOB_NAME_BYTES];
    const int64_t later = pb_job_store_time_ms(store) + 60000;
    insert(FIRST, FIRST, NULL);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    ck_assert_int_eq(pb_set_parts_pipeline(store, "", NULL, name), 1);
    ck_assert_str_eq(name, "month");
    ck_assert_int_eq(pb_set_parts_pipeline(store, "month", NULL, name), 0);
    ck_assert_int_eq(pb_set_parts_trim(store, "month", 90000, later, NULL), 0);
    ck_assert_int_eq(pb_set_parts_trim(store, "year", 0, later, NULL), 0);
    insert(SECOND, FIRST, NULL);
    ck_assert_int_eq(pb_set_parts_trim(store, "month", 0, later, NULL), 0);
    finish(SECOND, PB_JOB_DISMISSED, "/done/a.1");
    ck_assert_int_eq(pb_set_parts_trim(store, "month", 0, later, NULL), 1);
    ck_assert_str_eq(parts(FIRST), "");
}
END_TEST

START_TEST(sets_of_a_removed_pipeline_keep_its_retention)
{
    const int64_t now = pb_job_store_time_ms(store);
    insert(FIRST, FIRST, NULL);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    ck_assert_int_eq(pb_set_parts_trim(store, "month", -1, INT64_MAX, NULL), 0);
    ck_assert_int_eq(pb_set_parts_trim(store, "month", 100000, now, NULL), 0);
    ck_assert_int_eq(pb_set_parts_trim(store, "month", -1, now + 50000, NULL), 0);
    ck_assert_int_eq(pb_set_parts_trim(store, "month", -1, now + 150000, NULL), 1);
}
END_TEST

/* The wall clock was set back: the times of day have a wrong order, and wrong ages. */
START_TEST(age_and_order_of_parts_ignore_the_wall_clock)
{
    struct pb_set_last last;
    char sql[256];
    insert(FIRST, FIRST, NULL);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    const struct timespec pause = {0, 2000000};
    (void)nanosleep(&pause, NULL);
    insert(SECOND, FIRST, NULL);
    finish(SECOND, PB_JOB_SUCCESSFUL, "/done/a.1");
    (void)snprintf(sql, sizeof sql,
                   "UPDATE set_parts SET time_ms = 5 WHERE job = '%s';"
                   "UPDATE set_parts SET time_ms = 1 WHERE job = '%s';",
                   FIRST, SECOND);
    change_rows(sql);
    const int64_t now = pb_job_store_time_ms(store);
    ck_assert_int_eq(pb_set_parts_last(store, &key, now - 3600000, NULL, &last), 1);
    ck_assert_str_eq(last.job, SECOND);
    ck_assert_str_eq(parts(FIRST), "bbbb /done/a.1 a.tif;aaaa /done/a a.tif;");
    ck_assert_int_eq(pb_set_parts_trim(store, "month", 3600000, now, NULL), 0);
    ck_assert_int_eq(pb_set_parts_trim(store, "month", 3600000, now + 3700000, NULL), 2);
}
END_TEST

START_TEST(parts_stay_when_their_jobs_are_forgotten)
{
    struct pb_job job;
    insert(FIRST, FIRST, NULL);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    ck_assert_int_eq(pb_job_store_prune(store, 0, NULL), 1);
    ck_assert_int_ne(pb_job_store_find(store, FIRST, NULL, &job), 0);
    ck_assert_str_eq(parts(FIRST), "aaaa /done/a a.tif;");
}
END_TEST

static void insert_again(const char *id, const char *of, const char *set_id)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.again, sizeof job.again, "%s", of);
    (void)snprintf(job.set_id, sizeof job.set_id, "%s", set_id);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_job_fini(&job);
}

START_TEST(inputs_are_held_while_products_are_made_again)
{
    char id[PB_JOB_ID_BYTES];
    insert(FIRST, FIRST, NULL);
    insert(SECOND, FIRST, NULL);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    finish(SECOND, PB_JOB_SUCCESSFUL, "/done/b");
    ck_assert_int_eq(pb_again_holds(store, "/done/a", NULL), 0);
    ck_assert_int_eq(pb_again_waits(store, SECOND, NULL, id), 0);
    insert_again(THIRD, SECOND, FIRST);
    ck_assert_int_eq(pb_again_holds(store, "/done/b", NULL), 1);
    ck_assert_int_eq(pb_again_holds(store, "/done/a", NULL), 1); /* the set is the same */
    ck_assert_int_eq(pb_again_holds(store, "/done/c", NULL), 0);
    ck_assert_int_eq(pb_again_waits(store, SECOND, NULL, id), 1);
    ck_assert_str_eq(id, THIRD);
    finish(THIRD, PB_JOB_FAILED, "/done/b");
    ck_assert_int_eq(pb_again_holds(store, "/done/b", NULL), 0);
    ck_assert_int_eq(pb_again_waits(store, SECOND, NULL, id), 0);
}
END_TEST

START_TEST(parts_have_the_job_that_made_them_last)
{
    insert(FIRST, FIRST, NULL);
    finish(FIRST, PB_JOB_SUCCESSFUL, "/done/a");
    insert_again(SECOND, FIRST, FIRST);
    ck_assert_str_eq(parts(FIRST), "aaaa /done/a a.tif;");
    ck_assert_str_eq(last_maker, FIRST);
    finish(SECOND, PB_JOB_SUCCESSFUL, "/done/a");
    ck_assert_str_eq(parts(FIRST), "aaaa /done/a a.tif;"); /* and no part more */
    ck_assert_str_eq(last_maker, SECOND);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, the_parts_of_a_set_are_its_successful_jobs);
    tcase_add_test(tests, sets_of_other_inboxes_folders_pipelines_differ);
    tcase_add_test(tests, a_job_that_waits_or_runs_keeps_its_set_busy);
    tcase_add_test(tests, sets_expire_by_newest_part_unless_a_job_waits);
    tcase_add_test(tests, sets_of_a_removed_pipeline_keep_its_retention);
    tcase_add_test(tests, age_and_order_of_parts_ignore_the_wall_clock);
    tcase_add_test(tests, parts_stay_when_their_jobs_are_forgotten);
    tcase_add_test(tests, inputs_are_held_while_products_are_made_again);
    tcase_add_test(tests, parts_have_the_job_that_made_them_last);
}

int main(void)
{
    return run_over_stores("set_parts", make, end, add_tests, NULL);
}
