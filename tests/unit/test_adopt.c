/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Files that the sweep of work/ leaves in place while jobs run. */
#include "service/inbox/adopt.h"

#include "config/base/arena.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "pipeline/product/product_kinds.h"
#include "service/inbox/staging.h"
#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST  "20261121-082850-aaaa"
#define SECOND "20261121-082850-bbbb"

static char root[64];
static struct pb_dirs dirs;
static struct pb_config config;
static struct pb_config *pipelines; /* with one that takes *.tif */
static struct pb_intake intake;
static struct pb_troubles troubles;

static void make(void)
{
    static const char text[] = "pipelines:\n"
                               "  all:\n"
                               "    input: {match: ['*.tif']}\n"
                               "    products: [statistics: {}]\n";
    char moved[PB_FILES_PATH_BYTES];
    struct pb_err_list errors = {0};

    ck_assert_int_eq(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &pipelines),
                     0);

    (void)snprintf(root, sizeof root, "/tmp/pb-adopt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(dirs.work, sizeof dirs.work, "%s/work", root);
    (void)snprintf(dirs.archive, sizeof dirs.archive, "%s/work/done", root);
    (void)snprintf(dirs.quarantine, sizeof dirs.quarantine, "%s/quarantine", root);
    ck_assert_int_eq(pb_files_make_directory(dirs.archive, "archive", NULL), 0);
    ck_assert_int_eq(pb_files_make_directory(dirs.quarantine, "quarantine", NULL), 0);
    pb_intake_init(&intake, &config);
    intake.dirs = &dirs;
    ck_assert_int_eq(
        pb_job_store_open(&(struct pb_store_place){.directory = root}, NULL, moved, &intake.store),
        0);
}

static void end(void)
{
    char command[128];

    pb_job_store_close(intake.store);
    pb_intake_fini(&intake);
    pb_config_destroy(pipelines);
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static bool there(const char *name)
{
    char path[PB_FILES_PATH_BYTES];

    return pb_files_join(path, root, name) == 0 && access(path, F_OK) == 0;
}

/* Inserts a job of the set FIRST whose file is in work/. */
static void insert(const char *id, enum pb_job_status status)
{
    char claim[PB_FILES_PATH_BYTES], folder[PB_FILES_PATH_BYTES], file[PB_FILES_PATH_BYTES];
    struct pb_job job;

    ck_assert_int_eq(pb_files_join(claim, dirs.work, id), 0);
    ck_assert_int_eq(pb_files_join(folder, claim, "T1"), 0);
    ck_assert_int_eq(pb_files_join(file, folder, "a.tif"), 0);
    ck_assert(mkdir(claim, 0755) == 0 && mkdir(folder, 0755) == 0);
    FILE *const out = fopen(file, "w");
    ck_assert(out != NULL && fclose(out) == 0);
    pb_job_init(&job);
    job.owned = true;
    (void)snprintf(job.id, sizeof job.id, "%s", id);
    (void)snprintf(job.set_id, sizeof job.set_id, "%s", FIRST);
    (void)snprintf(job.name, sizeof job.name, "T1");
    (void)snprintf(job.scene, sizeof job.scene, "T1");
    (void)snprintf(job.pipeline, sizeof job.pipeline, "month");
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, folder), 0);
    ck_assert_int_eq(pb_store_offer(intake.store, &job, NULL), 0);
    job.status = status;
    ck_assert_int_eq(pb_store_finish(intake.store, &job, NULL), 0);
    pb_job_fini(&job);
}

/* Makes work_of_b/<id>/<name>, which another node has claimed; id.gather is the staging of a set.
 */
static void claim_elsewhere(const char *id, const char *name, char work[PB_FILES_PATH_BYTES])
{
    char claim[PB_FILES_PATH_BYTES], file[PB_FILES_PATH_BYTES];

    ck_assert_int_eq(pb_files_join(work, root, "work_of_b"), 0);
    ck_assert_int_eq(pb_files_join(claim, work, id), 0);
    ck_assert_int_eq(pb_files_join(file, claim, name), 0);
    (void)mkdir(work, 0755);
    ck_assert_int_eq(mkdir(claim, 0755), 0);
    FILE *const out = name[0] != '\0' ? fopen(file, "w") : NULL;
    ck_assert(name[0] == '\0' || (out != NULL && fclose(out) == 0));
}

/* This node has two inboxes, and watches that of b. */
static void watch_b(void)
{
    dirs.n_inboxes = 2;
    (void)snprintf(dirs.inbox[0], sizeof dirs.inbox[0], "%s/inbox_of_a", root);
    (void)snprintf(dirs.inbox[1], sizeof dirs.inbox[1], "%s/inbox_of_b", root);
    pb_intake_allow(&intake, 1, INT64_MAX);
    pb_intake_set_config(&intake, pipelines);
}

START_TEST(claims_of_another_node_become_jobs_once)
{
    char work[PB_FILES_PATH_BYTES];
    struct pb_adopted adopted;
    struct pb_job job;

    watch_b();
    insert(FIRST, PB_JOB_SUCCESSFUL); /* at another place: it is not changed */
    claim_elsewhere(FIRST, "a.tif", work);
    claim_elsewhere(SECOND, "b.tif", work);
    claim_elsewhere("20261121-082850-cccc", "", work);
    for (int i = 0; i < 2; i++) {
        pb_adopt_claims(&intake, work, 1, &adopted);
        ck_assert_msg(adopted.left == 0, "%s", adopted.first.msg);
        ck_assert_int_eq(adopted.adopted, i == 0);
    }
    ck_assert_int_eq(pb_job_store_find(intake.store, SECOND, NULL, &job), 0);
    ck_assert_str_eq(job.name, "b.tif");
    ck_assert_ptr_nonnull(strstr(job.manifest.input, "/work_of_b/" SECOND "/b.tif"));
    pb_job_fini(&job);
    ck_assert(there("work/" FIRST "/T1/a.tif") && there("work_of_b/" FIRST "/a.tif"));
    ck_assert(there("work_of_b/20261121-082850-cccc")); /* it may be about to move a file there */
    ck_assert_int_eq(pb_files_join(work, root, "gone"), 0);
    pb_adopt_claims(&intake, work, 1, &adopted);
    ck_assert_int_gt(adopted.left, 0);
}
END_TEST

/* Its origin is a sub-folder of that inbox. */
static void name_origin(const char *work, const char *id, const char *inbox)
{
    char claim[PB_FILES_PATH_BYTES], from[PB_FILES_PATH_BYTES];

    ck_assert_int_eq(pb_files_join(claim, work, id), 0);
    ck_assert_int_eq(pb_files_join(from, root, inbox), 0);
    ck_assert_int_eq(pb_origin_write(claim, from), 0);
}

START_TEST(claims_that_are_not_taken_over_stay)
{
    static const char gathered[] = "20261121-082850-dddd.gather";
    char work[PB_FILES_PATH_BYTES];
    struct pb_adopted adopted;
    struct pb_job job;

    watch_b();
    claim_elsewhere(FIRST, "a.tif", work);
    name_origin(work, FIRST, "inbox_of_c/a"); /* not an inbox of this node */
    claim_elsewhere(SECOND, "b.tif", work);
    name_origin(work, SECOND, "inbox_of_a"); /* the inbox is watched by another node */
    claim_elsewhere("20261121-082850-cccc", "no_pipeline.txt", work);
    name_origin(work, "20261121-082850-cccc", "inbox_of_b");
    claim_elsewhere(gathered, "T1", work);
    name_origin(work, gathered, "inbox_of_c");
    pb_adopt_claims(&intake, work, dirs.n_inboxes, &adopted);
    ck_assert_msg(adopted.left == 0, "%s", adopted.first.msg);
    ck_assert_int_eq(adopted.adopted, 0);
    ck_assert(there("work_of_b/20261121-082850-dddd.gather/T1"));
    pb_intake_allow(&intake, 0, INT64_MAX);
    pb_adopt_claims(&intake, work, dirs.n_inboxes, &adopted);
    ck_assert(adopted.left == 0 && adopted.adopted == 1);
    ck_assert_int_eq(pb_job_store_find(intake.store, SECOND, NULL, &job), 0);
    pb_job_fini(&job);
}
END_TEST

static void set_status(const char *id, enum pb_job_status status)
{
    struct pb_job job;

    ck_assert_int_eq(pb_job_store_find(intake.store, id, NULL, &job), 0);
    job.status = status;
    ck_assert_int_eq(pb_store_finish(intake.store, &job, NULL), 0);
    pb_job_fini(&job);
}

/* The archive did not take it when its job ended. */
START_TEST(part_read_by_a_running_job_is_kept_until_it_ends)
{
    struct pb_adopted adopted;

    insert(FIRST, PB_JOB_SUCCESSFUL);
    insert(SECOND, PB_JOB_RUNNING);
    pb_adopt_work(&intake, false, &adopted);
    ck_assert_int_eq(adopted.left, 0);
    ck_assert(there("work/" FIRST "/T1/a.tif") && there("work/" SECOND "/T1/a.tif"));
    ck_assert(pb_adopt_has_left(&intake, &troubles));
    set_status(SECOND, PB_JOB_ACCEPTED); /* it receives the places of the files at its start */
    pb_adopt_work(&intake, false, &adopted);
    ck_assert(!there("work/" FIRST) && there("work/done/T1/a.tif"));
    ck_assert(there("work/" SECOND "/T1/a.tif"));
    ck_assert(!pb_adopt_has_left(&intake, &troubles));
}
END_TEST

/* Makes the folder of a claimed set without a job. */
static void make_set(void)
{
    char claim[PB_FILES_PATH_BYTES], folder[PB_FILES_PATH_BYTES], path[PB_FILES_PATH_BYTES];
    ck_assert_int_eq(pb_files_join(claim, dirs.work, FIRST), 0);
    ck_assert_int_eq(pb_files_join(folder, claim, "s1"), 0);
    ck_assert_int_eq(pb_files_join(path, folder, "s1_R.tif"), 0);
    ck_assert(mkdir(claim, 0755) == 0 && mkdir(folder, 0755) == 0);
    FILE *const out = fopen(path, "w");
    ck_assert(out != NULL && fclose(out) == 0);
}

START_TEST(set_waits_when_its_folder_cannot_be_assembled)
{
    static const char text[] =
        "pipelines:\n"
        "  set:\n"
        "    input: {group: '(?<scene>s\\d)_R.tif', files: {R: '{scene}_R.tif'}}\n"
        "    products: [statistics: {}]\n";
    struct pb_adopted adopted;
    struct pb_err_list errors = {0};
    struct pb_config *groups = NULL;
    struct pb_job job;

    ck_assert_int_eq(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &groups), 0);
    pb_intake_set_config(&intake, groups);
    make_set();
    pb_arena_fail_after(0);
    pb_adopt_work(&intake, true, &adopted);
    pb_arena_fail_after(-1);
    ck_assert(adopted.left == 1 && adopted.adopted == 0);
    ck_assert_int_eq(adopted.first.code, PB_E_MEMORY);
    ck_assert(there("work/" FIRST "/s1/s1_R.tif"));

    pb_adopt_work(&intake, false, &adopted);
    ck_assert(adopted.left == 0 && adopted.adopted == 1);
    ck_assert_int_eq(pb_job_store_find(intake.store, FIRST, NULL, &job), 0);
    ck_assert_str_eq(job.pipeline, "set");
    pb_job_fini(&job);
    pb_intake_set_config(&intake, &config);
    pb_config_destroy(groups);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("adopt");
    TCase *tests = tcase_create("adopt");

    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, claims_of_another_node_become_jobs_once);
    tcase_add_test(tests, claims_that_are_not_taken_over_stay);
    tcase_add_test(tests, part_read_by_a_running_job_is_kept_until_it_ends);
    tcase_add_test(tests, set_waits_when_its_folder_cannot_be_assembled);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
