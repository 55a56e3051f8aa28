/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/archive_rows.h"

#include "service/jobs/again_rows.h"
#include "service/jobs/kept.h"

#include "job_store_fixture.h"

#define ARCHIVE "20261121-082850-zzzz"

static const char *const names_of_scenes[] = {"A", "B", "C", "D"};

static void make_id(char out[PB_JOB_ID_BYTES])
{
    static int n;
    (void)snprintf(out, PB_JOB_ID_BYTES, "20261121-082851-%04d", n++ % 10000);
}

static struct pb_job load(const char *id)
{
    struct pb_job job;
    ck_assert_int_eq(pb_job_store_find(store, id, NULL, &job), 0);
    return job;
}

/* Stores the job and its state. */
static void put(struct pb_job *job, enum pb_job_status status)
{
    ck_assert_int_eq(pb_job_move(job, status, 5), 0);
    ck_assert_int_eq(pb_store_finish(store, job, NULL), 0);
}

/* Stores the archive's job as running. */
static void insert_archive(void)
{
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, ARCHIVE);
    (void)snprintf(job.name, sizeof job.name, "order.zip");
    (void)snprintf(job.scene, sizeof job.scene, "order");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "p");
    job.owned = true;
    job.priority = 7;
    ck_assert_int_eq(pb_job_set(&job.inbox, "/inbox"), 0);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/work/z/order.zip"), 0);
    const struct pb_manifest_entry file = {.path = "order.zip", .bytes = 5};
    ck_assert_int_eq(pb_job_add_delivered(&job, "/inbox", &file, NULL), 0);
    ck_assert_int_eq(pb_job_expect_companion(&job, "/inbox", "order.zip.md5", true), 0);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    put(&job, PB_JOB_RUNNING);
    pb_job_fini(&job);
}

static const struct pb_scene_manifest
    *summed_archive; /* the archive with its checksum; NULL = unknown */

/* Splits the archive into its first n scenes; the names of those that wait, in order. */
static const char *split(size_t n)
{
    static char names[64];
    struct pb_job archive = load(ARCHIVE), *jobs = NULL;
    const struct pb_archive_split what = {.archive = &archive,
                                          .scenes = names_of_scenes,
                                          .n = n,
                                          .read = summed_archive,
                                          .wall_ms = 9,
                                          .make_id = make_id};
    struct pb_err err = {0};
    size_t n_jobs = 0;
    int rc = pb_archive_rows_split(store, &what, &err, &jobs, &n_jobs);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert(pb_job_has_scenes(&archive) && archive.status == PB_JOB_ACCEPTED);
    names[0] = '\0';
    for (size_t i = 0; i < n_jobs; i++)
        (void)strcat(names, jobs[i].scene);
    pb_archive_rows_free(jobs, n_jobs);
    pb_job_fini(&archive);
    return names;
}

/* The next job that may start; all-zero: none. */
static struct pb_job next(void)
{
    struct pb_job_place after = {0};
    struct pb_job job = {.seq = 0};
    ck_assert_int_ge(pb_job_store_next(store, &after, 99, any, NULL, NULL, &job), 0);
    return job;
}

/* Ends the next job, which is one of a scene. */
static void end_next(const char *scene, enum pb_job_status status, enum pb_code code)
{
    struct pb_job job = next();
    ck_assert_str_eq(job.scene, scene);
    put(&job, PB_JOB_RUNNING);
    if (code != PB_OK)
        pb_job_fail(&job, code, "so");
    put(&job, status);
    pb_job_fini(&job);
}

/* Sums up; the archive's job, whose end is not stored. */
static struct pb_job summed(enum pb_job_status expected)
{
    struct pb_job archive = next();
    enum pb_job_status status = PB_JOB_ACCEPTED;
    ck_assert_str_eq(archive.id, ARCHIVE);
    ck_assert_int_eq(pb_archive_rows_sum(store, &archive, NULL, &status), 0);
    ck_assert_int_eq(status, expected);
    return archive;
}

START_TEST(test_scenes_get_jobs_that_only_read_the_input)
{
    char path[PB_SCENE_MANIFEST_PATH_BYTES];
    insert_archive();
    ck_assert_str_eq(split(2), "AB");
    struct pb_job job = next();
    ck_assert_str_eq(job.archive, ARCHIVE);
    ck_assert_str_eq(job.scene, "A");
    ck_assert_str_eq(job.name, "order.zip");
    ck_assert_str_eq(job.pipeline, "p");
    ck_assert_str_eq(job.inbox, "/inbox");
    ck_assert_str_eq(job.manifest.input, "/work/z/order.zip");
    ck_assert_int_eq(job.priority, 7);
    ck_assert(pb_job_is_scene(&job) && !job.owned);
    ck_assert_uint_eq(job.manifest.n_entries, 1);
    ck_assert_ptr_null(pb_job_companion(&job, path));
    pb_job_fini(&job);
}
END_TEST

static void check_sum(const char *checksum, uint64_t inode)
{
    struct pb_job job = next();
    ck_assert_uint_eq(job.manifest.n_entries, 1);
    ck_assert_pstr_eq(job.manifest.entry[0].checksum, checksum);
    ck_assert_uint_eq(job.manifest.entry[0].inode, inode);
    ck_assert_str_eq(job.manifest.entry[0].path, "order.zip");
    pb_job_fini(&job);
}

/* The checksum of the archive is that of the last run that listed its scenes. */
START_TEST(test_scenes_get_the_checksum_of_the_archive)
{
    static const char sum[] =
        "sha256:5555555555555555555555555555555555555555555555555555555555555555";
    const struct pb_manifest_entry file = {.path = "order.zip",
                                           .bytes = 6,
                                           .inode = 7,
                                           .mtime_ns = 8,
                                           .ctime_ns = 9,
                                           .checksum = (char *)sum};
    struct pb_scene_manifest archive = {.n_roots = 0};
    ck_assert_int_eq(pb_scene_manifest_root(&archive, "/work/z"), 0);
    ck_assert_int_eq(pb_scene_manifest_add(&archive, &file), 0);
    insert_archive();
    summed_archive = &archive;
    (void)split(1);
    summed_archive = NULL;
    pb_scene_manifest_fini(&archive);
    check_sum(sum, 7);
    end_next("A", PB_JOB_FAILED, PB_E_INPUT_DAMAGED);
    struct pb_job of_archive = summed(PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_move(&of_archive, PB_JOB_RUNNING, 5), 0);
    put(&of_archive, PB_JOB_FAILED);
    put(&of_archive, PB_JOB_ACCEPTED); /* a retry */
    put(&of_archive, PB_JOB_RUNNING);
    pb_job_fini(&of_archive);
    ck_assert_str_eq(split(1), "A");
    check_sum(NULL, 0);
}
END_TEST

START_TEST(test_archive_waits_for_its_scenes)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    end_next("B", PB_JOB_DISMISSED, PB_E_INPUT_DUPLICATE);
    struct pb_job archive = summed(PB_JOB_SUCCESSFUL);
    ck_assert_str_eq(archive.error.code, "");
    ck_assert_ptr_nonnull(strstr(archive.report, "\"scene\":\"B\",\"job\":\"20261121-082851-"));
    ck_assert_ptr_nonnull(
        strstr(archive.report, "\"status\":\"dismissed\",\"code\":\"input.duplicate\""));
    pb_job_fini(&archive);
}
END_TEST

START_TEST(test_a_running_scene_keeps_the_archive_waiting)
{
    insert_archive();
    ck_assert_int_eq(pb_archive_rows_is_open(store, ARCHIVE, NULL), 0);
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    struct pb_job job = next();
    put(&job, PB_JOB_RUNNING);
    struct pb_job none = next();
    ck_assert_int_eq(none.seq, 0);
    ck_assert_int_eq(pb_archive_rows_is_open(store, ARCHIVE, NULL), 1);
    pb_job_fini(&job);
    pb_job_fini(&none);
}
END_TEST

START_TEST(test_unfinished_scenes_are_listed)
{
    struct pb_archive_ids ids;
    insert_archive();
    (void)split(4);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    struct pb_job job = next();
    put(&job, PB_JOB_RUNNING);
    ck_assert_int_eq(pb_archive_rows_list_open(store, ARCHIVE, NULL, &ids), 0);
    ck_assert_uint_eq(ids.n, 3);
    ck_assert_str_eq(ids.id[0], job.id);
    ck_assert_int_lt(strcmp(ids.id[1], ids.id[2]), 0);
    free(ids.id);
    ck_assert_int_eq(pb_archive_rows_list_open(store, "20261121-082852-none", NULL, &ids), 0);
    ck_assert_uint_eq(ids.n, 0);
    ck_assert_ptr_null(ids.id);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_retry_computes_scenes_that_failed_only)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    end_next("B", PB_JOB_FAILED, PB_E_INPUT_TRUNCATED);
    struct pb_job archive = summed(PB_JOB_FAILED);
    ck_assert_str_eq(archive.error.code, "input.scenes");
    ck_assert_str_eq(archive.error.message, "1 of 2 scenes failed: B (input.truncated)");
    put(&archive, PB_JOB_RUNNING);
    put(&archive, PB_JOB_FAILED);
    put(&archive, PB_JOB_ACCEPTED);
    pb_job_fini(&archive);
    archive = next();
    ck_assert(!pb_job_has_scenes(&archive));
    put(&archive, PB_JOB_RUNNING);
    pb_job_fini(&archive);
    ck_assert_str_eq(split(2), "B");
    end_next("B", PB_JOB_SUCCESSFUL, PB_OK);
    archive = summed(PB_JOB_SUCCESSFUL);
    pb_job_fini(&archive);
}
END_TEST

START_TEST(test_retry_computes_skipped_scenes)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    ck_assert_int_eq(pb_archive_rows_skipped(store, ARCHIVE, NULL), 0);
    end_next("B", PB_JOB_DISMISSED, PB_E_INPUT_DUPLICATE);
    ck_assert_int_eq(pb_archive_rows_skipped(store, ARCHIVE, NULL), 1);
    struct pb_job archive = summed(PB_JOB_SUCCESSFUL);
    put(&archive, PB_JOB_RUNNING);
    (void)snprintf(archive.stage, sizeof archive.stage, "scenes");
    put(&archive, PB_JOB_SUCCESSFUL);
    put(&archive, PB_JOB_ACCEPTED);
    put(&archive, PB_JOB_RUNNING);
    pb_job_fini(&archive);
    ck_assert_str_eq(split(2), ""); /* a run without a request */
    archive = load(ARCHIVE);
    archive.anyway = true;
    put(&archive, PB_JOB_RUNNING);
    pb_job_fini(&archive);
    ck_assert_str_eq(split(2), "B");
    struct pb_job job = next();
    ck_assert(job.anyway && job.status == PB_JOB_ACCEPTED);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_scene_that_is_gone_does_not_count)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    end_next("B", PB_JOB_FAILED, PB_E_INPUT_TRUNCATED);
    struct pb_job archive = summed(PB_JOB_FAILED);
    put(&archive, PB_JOB_RUNNING);
    pb_job_fini(&archive);
    ck_assert_str_eq(split(1), "");
    archive = summed(PB_JOB_SUCCESSFUL);
    pb_job_fini(&archive);
}
END_TEST

START_TEST(test_cancelled_scene_dismisses_the_archive)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_DISMISSED, PB_E_JOB_DISMISSED);
    end_next("B", PB_JOB_SUCCESSFUL, PB_OK);
    struct pb_job archive = summed(PB_JOB_DISMISSED);
    ck_assert_str_eq(archive.error.code, "job.dismissed");
    pb_job_fini(&archive);
}
END_TEST

START_TEST(test_archive_with_a_damaged_report_fails)
{
    static const char *const reports[] = {NULL, "", "{\"scenes\":[", "{}", "{\"scenes\":[{}]}"};
    insert_archive();
    (void)split(1);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        struct pb_job archive = load(ARCHIVE);
        ck_assert_int_eq(pb_job_set(&archive.report, reports[i]), 0);
        ck_assert_int_eq(pb_store_finish(store, &archive, NULL), 0);
        pb_job_fini(&archive);
        archive = summed(PB_JOB_FAILED);
        ck_assert_str_ne(archive.error.code, "");
        pb_job_fini(&archive);
    }
}
END_TEST

START_TEST(test_drop_takes_scenes_of_a_cancelled_retry)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    end_next("B", PB_JOB_FAILED, PB_E_INPUT_TRUNCATED);
    struct pb_job archive = summed(PB_JOB_FAILED);
    put(&archive, PB_JOB_RUNNING);
    put(&archive, PB_JOB_FAILED);
    put(&archive, PB_JOB_ACCEPTED);
    put(&archive, PB_JOB_DISMISSED);
    ck_assert_ptr_null(archive.report);
    ck_assert_int_eq(pb_archive_rows_drop(store, &archive, 8, NULL), 0);
    char ids[64] = "";
    ck_assert_int_eq(list_jobs(PB_JOB_MASK(PB_JOB_FAILED), INT64_MAX, 9, ids), 0);
    ck_assert_str_eq(ids, "");
    ck_assert_int_eq(list_jobs(PB_JOB_MASK(PB_JOB_SUCCESSFUL), INT64_MAX, 9, ids), 0);
    ck_assert_uint_eq(strlen(ids), 4);
    pb_job_fini(&archive);
}
END_TEST

START_TEST(test_path_of_the_scenes_follows_the_archive)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    struct pb_job archive = load(ARCHIVE), job = next();
    ck_assert_int_eq(pb_scene_manifest_set_input(&archive.manifest, "/done/order.zip"), 0);
    ck_assert_int_eq(pb_store_finish(store, &archive, NULL), 0);
    pb_job_fini(&archive);
    struct pb_job moved_job = load(job.id);
    ck_assert_str_eq(moved_job.manifest.input, "/done/order.zip");
    pb_job_fini(&job);
    pb_job_fini(&moved_job);
}
END_TEST

START_TEST(test_scenes_are_forgotten_with_the_archive)
{
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    end_next("B", PB_JOB_FAILED, PB_E_INPUT_TRUNCATED);
    ck_assert_int_eq(pb_job_store_prune(store, 0, NULL), 0);
    struct pb_job archive = summed(PB_JOB_FAILED);
    put(&archive, PB_JOB_RUNNING);
    put(&archive, PB_JOB_FAILED);
    pb_job_fini(&archive);
    ck_assert_int_eq(pb_job_store_prune(store, 0, NULL), 3);
}
END_TEST

START_TEST(test_scenes_do_not_push_out_other_jobs)
{
    insert("20261121-082849-aaaa", PB_JOB_FAILED);
    insert_archive();
    (void)split(2);
    end_next("A", PB_JOB_FAILED, PB_E_INPUT_TRUNCATED);
    end_next("B", PB_JOB_FAILED, PB_E_INPUT_TRUNCATED);
    struct pb_job archive = summed(PB_JOB_FAILED);
    put(&archive, PB_JOB_RUNNING);
    put(&archive, PB_JOB_FAILED);
    ck_assert_int_eq(pb_job_store_prune(store, 2, NULL), 0);
    ck_assert_int_eq(pb_job_store_prune(store, 1, NULL), 1);
    ck_assert_int_eq(status_of(ARCHIVE), PB_JOB_FAILED);
    insert("20261121-082853-aaaa", PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_job_store_prune(store, 1, NULL), 3);
    ck_assert_int_eq(status_of("20261121-082853-aaaa"), PB_JOB_SUCCESSFUL);
    pb_job_fini(&archive);
}
END_TEST

START_TEST(test_archived_input_stays_for_a_scene_made_again)
{
    insert_archive();
    (void)split(1);
    end_next("A", PB_JOB_SUCCESSFUL, PB_OK);
    struct pb_job archive = summed(PB_JOB_SUCCESSFUL), job;
    const struct pb_input_lists none = {.is_deleted = false};
    put(&archive, PB_JOB_RUNNING);
    ck_assert_int_eq(pb_job_move(&archive, PB_JOB_SUCCESSFUL, 6), 0);
    ck_assert_int_eq(pb_kept_update(store, &archive, &none, NULL), 0);
    ck_assert_int_eq(pb_again_holds(store, archive.manifest.input, NULL), 0);
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082852-aaaa");
    (void)snprintf(job.archive, sizeof job.archive, ARCHIVE);
    (void)snprintf(job.again, sizeof job.again, "20261121-082851-aaaa");
    ck_assert(!pb_job_is_scene(&job));
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    ck_assert_int_eq(pb_again_holds(store, archive.manifest.input, NULL), 1);
    pb_job_fini(&archive);
    pb_job_fini(&job);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_scenes_get_jobs_that_only_read_the_input);
    tcase_add_test(tests, test_scenes_get_the_checksum_of_the_archive);
    tcase_add_test(tests, test_archive_waits_for_its_scenes);
    tcase_add_test(tests, test_a_running_scene_keeps_the_archive_waiting);
    tcase_add_test(tests, test_unfinished_scenes_are_listed);
    tcase_add_test(tests, test_retry_computes_scenes_that_failed_only);
    tcase_add_test(tests, test_retry_computes_skipped_scenes);
    tcase_add_test(tests, test_scene_that_is_gone_does_not_count);
    tcase_add_test(tests, test_cancelled_scene_dismisses_the_archive);
    tcase_add_test(tests, test_archive_with_a_damaged_report_fails);
    tcase_add_test(tests, test_drop_takes_scenes_of_a_cancelled_retry);
    tcase_add_test(tests, test_path_of_the_scenes_follows_the_archive);
    tcase_add_test(tests, test_scenes_are_forgotten_with_the_archive);
    tcase_add_test(tests, test_scenes_do_not_push_out_other_jobs);
    tcase_add_test(tests, test_archived_input_stays_for_a_scene_made_again);
}

int main(void)
{
    return run_over_stores("archive_rows", open_store, close_store, add_tests, NULL);
}
