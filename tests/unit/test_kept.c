/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Places of the inputs of finished jobs (kept.h), which the triggers of the store write. */
#include "service/jobs/kept.h"
#include "service/jobs/service_time.h"

#include "job_store_fixture.h"

#define WORK "/srv/work"
#define A    "20261121-082850-aaaa"
#define B    "20261121-082850-bbbb"

static struct pb_kept nothing; /* all-zero: before the first row */

/* Ends a job of an input in work/<id>/, with those lists. */
static struct pb_job finish(const char *id, enum pb_job_status status,
                            const struct pb_input_lists *lists)
{
    char path[128];
    struct pb_job job;
    insert(id, PB_JOB_RUNNING);
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    (void)snprintf(path, sizeof path, WORK "/%s/%s.tif", id, id);
    job.owned = true;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, path), 0);
    ck_assert_int_eq(pb_job_move(&job, status, 7), 0);
    ck_assert_int_eq(pb_kept_update(store, &job, lists, NULL), 0);
    return job;
}

/* Moves the input of a finished job. */
static void put(struct pb_job *job, const char *path)
{
    const struct pb_input_lists none = {.is_deleted = false};
    ck_assert_int_eq(pb_scene_manifest_set_input(&job->manifest, path), 0);
    ck_assert_int_eq(pb_kept_update(store, job, &none, NULL), 0);
}

static struct pb_kept row_of(const char *path)
{
    struct pb_kept kept;
    ck_assert_msg(pb_kept_find(store, path, NULL, &kept) == 1, "%s", path);
    return kept;
}

static size_t files_of(const struct pb_kept *kept)
{
    struct pb_file_list files;
    ck_assert_int_eq(pb_kept_files(store, kept, NULL, &files), 0);
    const size_t n = files.n;
    pb_file_list_fini(&files);
    return n;
}

static struct pb_input_lists list_of(char *name)
{
    static struct pb_listed_file file = {.kind = 'f', .inode = 5, .bytes = 6};
    file.path = name;
    return (struct pb_input_lists){.input = {&file, 1}};
}

START_TEST(test_row_follows_its_input)
{
    const struct pb_input_lists lists = list_of("");
    struct pb_input_lists stored;
    struct pb_kept kept;
    struct pb_job a = finish(A, PB_JOB_SUCCESSFUL, &lists);
    ck_assert_int_eq(pb_kept_unmoved(store, WORK, &nothing, NULL, &kept), 1);
    ck_assert_str_eq(kept.path, WORK "/" A "/" A ".tif");
    ck_assert_str_eq(kept.job, A);
    const int64_t row = kept.row;
    put(&a, "/done/a.tif");
    ck_assert_int_eq(pb_kept_unmoved(store, WORK, &nothing, NULL, &kept), 0);
    ck_assert_int_eq(pb_kept_find(store, WORK "/" A "/" A ".tif", NULL, &kept), 0);
    kept = row_of("/done/a.tif");
    ck_assert_int_eq(kept.row, row);
    ck_assert_uint_eq(files_of(&kept), 1);
    ck_assert_int_eq(pb_kept_lists(store, &a, NULL, &stored), 0);
    ck_assert_uint_eq(stored.input.n, 1);
    ck_assert_int_eq(stored.input.file[0].bytes, 6);
    pb_input_lists_fini(&stored);
    pb_job_fini(&a);
}
END_TEST

START_TEST(test_retry_and_deletion_end_the_row)
{
    const struct pb_input_lists none = {.is_deleted = false}, deleted = {.is_deleted = true};
    struct pb_kept kept;
    struct pb_job a = finish(A, PB_JOB_FAILED, &none), b = finish(B, PB_JOB_FAILED, &none);
    put(&a, "/bad/a.tif");
    put(&b, "/bad/b.tif");
    ck_assert_int_eq(pb_job_move(&a, PB_JOB_ACCEPTED, 8), 0);
    ck_assert_int_eq(pb_store_finish(store, &a, NULL), 0);
    ck_assert_int_eq(pb_kept_find(store, "/bad/a.tif", NULL, &kept), 0);
    ck_assert_int_eq(pb_kept_update(store, &b, &deleted, NULL), 0);
    ck_assert_int_eq(pb_kept_find(store, "/bad/b.tif", NULL, &kept), 0);
    pb_job_fini(&a);
    pb_job_fini(&b);
}
END_TEST

START_TEST(test_rows_of_a_kind_are_read_by_age)
{
    const struct pb_input_lists none = {.is_deleted = false};
    struct pb_kept first, second, other;
    struct pb_job a = finish(A, PB_JOB_SUCCESSFUL, &none), b = finish(B, PB_JOB_SUCCESSFUL, &none);
    struct pb_job c = finish("20261121-082850-cccc", PB_JOB_FAILED, &none);
    const int64_t end = pb_job_store_time_ms(store) + 1;
    put(&b, "/done/b.tif");
    put(&a, "/done/a.tif");
    put(&c, "/bad/c.tif");
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &nothing, end, NULL, &first), 1);
    ck_assert_str_eq(first.job, A);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &first, end, NULL, &second), 1);
    ck_assert_str_eq(second.job, B);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &second, end, NULL, &other), 0);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &nothing, first.up_ms, NULL, &other), 0);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_QUARANTINED, &nothing, end, NULL, &other), 1);
    ck_assert_str_eq(other.path, "/bad/c.tif");
    ck_assert_int_eq(pb_kept_forget(store, &first, NULL), 0);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &nothing, end, NULL, &other), 1);
    ck_assert_str_eq(other.job, B);
    pb_job_fini(&a);
    pb_job_fini(&b);
    pb_job_fini(&c);
}
END_TEST

START_TEST(test_age_begins_once)
{
    struct pb_kept kept, again;
    struct pb_job job;
    insert(A, PB_JOB_RUNNING);
    ck_assert_int_eq(pb_job_store_find(store, A, NULL, &job), 0);
    job.owned = true;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/done/a.tif"), 0);
    ck_assert_int_eq(pb_job_move(&job, PB_JOB_SUCCESSFUL, 7), 0);
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &nothing, INT64_MAX, NULL, &kept), 0);
    ck_assert_int_eq(pb_kept_count(store, NULL), 0);
    ck_assert_int_eq(pb_kept_next(store, PB_KEPT_ARCHIVED, &nothing, INT64_MAX, NULL, &kept), 1);
    while (pb_job_store_time_ms(store) == kept.up_ms)
        (void)usleep(1000);
    ck_assert_int_eq(pb_kept_count(store, NULL), 0);
    put(&job, "/done/a.tif");
    again = row_of("/done/a.tif");
    ck_assert_int_eq(again.up_ms, kept.up_ms);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_found_input_takes_the_place_of_a_row)
{
    const struct pb_input_lists lists = list_of("");
    struct pb_kept found = {.since_ms = 3, .job = B, .path = "/bad/a.tif"}, kept;
    struct pb_job a = finish(A, PB_JOB_FAILED, &lists);
    put(&a, "/bad/a.tif");
    kept = row_of("/bad/a.tif");
    ck_assert_int_eq(pb_kept_say(store, &kept, NULL), 0);
    ck_assert(row_of("/bad/a.tif").is_said);
    ck_assert_uint_eq(files_of(&kept), 1);
    ck_assert_int_eq(pb_kept_add(store, &found, NULL), 0);
    kept = row_of("/bad/a.tif");
    ck_assert_str_eq(kept.job, B);
    ck_assert_int_eq(kept.since_ms, 3);
    ck_assert(!kept.is_said);
    ck_assert_uint_eq(files_of(&kept), 0);
    pb_job_fini(&a);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, test_row_follows_its_input);
    tcase_add_test(tests, test_retry_and_deletion_end_the_row);
    tcase_add_test(tests, test_rows_of_a_kind_are_read_by_age);
    tcase_add_test(tests, test_age_begins_once);
    tcase_add_test(tests, test_found_input_takes_the_place_of_a_row);
}

int main(void)
{
    return run_over_stores("kept", open_store, close_store, add, NULL);
}
