/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads */
#include "service/worker/joined.h"

#include "service/jobs/kept.h"

#include "job_store_fixture.h"
#include "run_suite.h"

#define FIRST  "20261121-082850-aaaa"
#define SECOND "20261121-082850-bbbb"

static void begin_job(struct pb_job *job, const char *id, const char *input)
{
    pb_job_init(job);
    job->owned = true;
    (void)snprintf(job->id, sizeof job->id, "%s", id);
    (void)snprintf(job->set_id, sizeof job->set_id, FIRST);
    (void)snprintf(job->replaces, sizeof job->replaces, "%s", strcmp(id, FIRST) ? FIRST : "");
    (void)snprintf(job->pipeline, sizeof job->pipeline, "month");
    (void)snprintf(job->scene, sizeof job->scene, "T1");
    ck_assert_int_eq(pb_job_set(&job->inbox, "/inbox"), 0);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job->manifest, input), 0);
}

static void deliver(struct pb_job *job, const char *name)
{
    const struct pb_manifest_entry file = {.path = (char *)name, .bytes = 5};
    ck_assert_int_eq(pb_job_add_delivered(job, "/inbox", &file, NULL), 0);
}

/* The first job ends with its input in that folder. */
static void finish(struct pb_job *job, const char *folder)
{
    struct pb_input_lists lists = {.is_deleted = false};
    ck_assert_int_eq(pb_store_offer(store, job, NULL), 0);
    ck_assert_int_eq(pb_file_list_read(folder, &lists.input), 0);
    job->status = PB_JOB_SUCCESSFUL;
    ck_assert_int_eq(pb_kept_update(store, job, &lists, NULL), 0);
    pb_input_lists_fini(&lists);
    pb_job_fini(job);
}

static void make_file(const char *folder, const char *name)
{
    char path[PB_FILES_PATH_BYTES];
    ck_assert_int_eq(pb_files_join(path, folder, name), 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fclose(file);
}

START_TEST(test_part_has_listed_and_delivered_files_once)
{
    static const char *const delivered[] = {"d.tif", "b.tif", "c.tif", "a.tif"};
    char folder[PB_FILES_PATH_BYTES], text[256] = "";
    struct pb_job job;
    ck_assert_int_eq(pb_files_join(folder, directory, "T1"), 0);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    make_file(folder, "b.tif");
    make_file(folder, "a.tif");
    begin_job(&job, FIRST, folder);
    for (size_t i = 0; i < sizeof delivered / sizeof delivered[0]; i++)
        deliver(&job, delivered[i]);
    finish(&job, folder);
    begin_job(&job, SECOND, "/work/x");
    deliver(&job, "b.tif");
    deliver(&job, "b.tif");
    ck_assert_int_eq(pb_joined_describe(store, &job, NULL), 0);
    for (size_t i = 0; i < job.joined.n_entries; i++) {
        const struct pb_manifest_entry *entry = &job.joined.entry[i];
        const size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%d %s %d;", entry->root, entry->path,
                       (int)entry->bytes);
    }
    ck_assert_str_eq(text, "0 b.tif -1;1 a.tif 0;1 b.tif 0;1 c.tif -1;1 d.tif -1;");
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_too_many_files_fail_the_job_alone)
{
    char name[32];
    struct pb_job job;
    struct pb_err err = {0};
    begin_job(&job, FIRST, directory);
    for (int i = 0; i < 12000; i++) {
        (void)snprintf(name, sizeof name, "first_%d.tif", i);
        deliver(&job, name);
    }
    finish(&job, directory);
    begin_job(&job, SECOND, "/work/x");
    for (int i = 0; i < 12000; i++) {
        (void)snprintf(name, sizeof name, "second_%d.tif", i);
        deliver(&job, name);
    }
    ck_assert_int_eq(pb_joined_describe(store, &job, &err), 1);
    ck_assert_int_eq(err.code, PB_OK);
    ck_assert_str_eq(job.error.code, "input.limit");
    ck_assert_uint_eq(job.joined.n_roots, 0);
    pb_job_fini(&job);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("joined");
    TCase *tests = tcase_create("joined");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, test_part_has_listed_and_delivered_files_once);
    tcase_add_test(tests, test_too_many_files_fail_the_job_alone);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
