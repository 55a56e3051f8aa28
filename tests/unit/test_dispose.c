/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/dispose.h"
#include "service/files.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static struct pb_dirs dirs;

static void make(void)
{
    (void)snprintf(root, sizeof root, "/tmp/pb-dispose-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(dirs.work, sizeof dirs.work, "%s/work", root);
    (void)snprintf(dirs.archive, sizeof dirs.archive, "%s/work/done", root);
    (void)snprintf(dirs.quarantine, sizeof dirs.quarantine, "%s/quarantine", root);
    ck_assert_int_eq(pb_files_make_directory(dirs.archive, "archive", NULL), 0);
    ck_assert_int_eq(pb_files_make_directory(dirs.quarantine, "quarantine", NULL), 0);
}

static void end(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

static bool there(const char *name)
{
    char path[PB_FILES_PATH_BYTES];
    return pb_files_join(path, root, name) == 0 && access(path, F_OK) == 0;
}

static void put(const char *name, const char *text)
{
    char path[PB_FILES_PATH_BYTES];
    (void)pb_files_join(path, root, name);
    ck_assert_int_eq(pb_files_write(path, text, strlen(text), NULL), 0);
}

/* A job that ended so, its input claimed. */
static void claim(struct pb_job *job, const char *id, enum pb_job_status status)
{
    char path[PB_FILES_PATH_BYTES], name[100];
    pb_job_init(job);
    (void)snprintf(job->id, sizeof job->id, "%s", id);
    (void)snprintf(job->name, sizeof job->name, "x.tif");
    job->owned = true;
    (void)pb_files_join(path, dirs.work, id);
    ck_assert_int_eq(pb_files_make_directory(path, "claim", NULL), 0);
    (void)snprintf(name, sizeof name, "work/%s/x.tif", id);
    put(name, id);
    (void)pb_files_join(path, root, name);
    ck_assert_int_eq(pb_job_set(&job->input, path), 0);
    (void)pb_job_move(job, PB_JOB_RUNNING, 1);
    if (status != PB_JOB_SUCCESSFUL)
        pb_job_fail(job, PB_E_INPUT_DAMAGED, "tile 3 does not decode");
    (void)pb_job_move(job, status, 2);
}

static const char a[] = "20261121-082850-aaaa", b[] = "20261121-082850-bbbb";

START_TEST(success_archives_and_never_overwrites)
{
    struct pb_job job;
    claim(&job, a, PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("work/done/x.tif"));
    ck_assert(!there("work/20261121-082850-aaaa"));
    /* Once more changes nothing, though the archive lies in work/ too. */
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("work/done/x.tif") && !there("work/done/x.tif.1"));
    pb_job_fini(&job);
    claim(&job, b, PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("work/done/x.tif.1"));
    ck_assert_ptr_nonnull(strstr(job.input, "work/done/x.tif.1"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(success_deletes_when_told)
{
    struct pb_job job;
    claim(&job, a, PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert(!there("work/done/x.tif") && !there("work/20261121-082850-aaaa"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(failure_quarantines_with_a_record_each)
{
    struct pb_job first, second;
    claim(&first, a, PB_JOB_FAILED);
    claim(&second, b, PB_JOB_DISMISSED);
    ck_assert_int_eq(pb_dispose(&first, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert_int_eq(pb_dispose(&second, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert(there("quarantine/x.tif") && there("quarantine/x.tif.error.json"));
    ck_assert(there("quarantine/x.tif.1") && there("quarantine/x.tif.1.error.json"));
    pb_job_fini(&first);
    pb_job_fini(&second);
}
END_TEST

START_TEST(a_repetition_after_a_crash_uses_the_same_name)
{
    struct pb_job job;
    char input[PB_FILES_PATH_BYTES];
    claim(&job, a, PB_JOB_FAILED);
    (void)snprintf(input, sizeof input, "%s", job.input);
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    /* As if the record had been written and the move had not happened. */
    ck_assert_int_eq(pb_files_make_directory(dirs.work, "work", NULL), 0);
    char claim_path[PB_FILES_PATH_BYTES];
    (void)pb_files_join(claim_path, dirs.work, a);
    ck_assert_int_eq(mkdir(claim_path, 0755), 0);
    ck_assert_int_eq(rename(job.input, input), 0);
    ck_assert_int_eq(pb_job_set(&job.input, input), 0);
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("quarantine/x.tif") && there("quarantine/x.tif.error.json"));
    ck_assert(!there("quarantine/x.tif.1.error.json"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(restore_brings_the_input_back_and_removes_the_record)
{
    struct pb_job job;
    struct pb_err err = {0};
    claim(&job, a, PB_JOB_FAILED);
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert_int_eq(pb_dispose_restore(&job, &dirs, &err), 0);
    ck_assert(there("work/20261121-082850-aaaa/x.tif"));
    ck_assert(!there("quarantine/x.tif") && !there("quarantine/x.tif.error.json"));
    ck_assert_int_eq(unlink(job.input), 0);
    ck_assert_int_ne(pb_dispose_restore(&job, &dirs, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_MISSING);
    pb_job_fini(&job);
}
END_TEST

START_TEST(a_submitted_input_is_not_touched)
{
    struct pb_job job;
    claim(&job, a, PB_JOB_FAILED);
    job.owned = false;
    ck_assert_int_eq(pb_dispose(&job, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert(there("work/20261121-082850-aaaa/x.tif"));
    ck_assert(there("quarantine/x.tif.error.json") && !there("quarantine/x.tif"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(directories_that_cannot_be_made_are_named)
{
    struct pb_err err = {0};
    char path[PB_FILES_PATH_BYTES];
    put("file", "x");
    (void)pb_files_join(path, root, "file/below");
    ck_assert_int_ne(pb_files_make_directory(path, "inbox", &err), 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "inbox"));
    ck_assert_ptr_nonnull(strstr(err.msg, path));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dispose");
    TCase *tests = tcase_create("dispose");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, success_archives_and_never_overwrites);
    tcase_add_test(tests, success_deletes_when_told);
    tcase_add_test(tests, failure_quarantines_with_a_record_each);
    tcase_add_test(tests, a_repetition_after_a_crash_uses_the_same_name);
    tcase_add_test(tests, restore_brings_the_input_back_and_removes_the_record);
    tcase_add_test(tests, a_submitted_input_is_not_touched);
    tcase_add_test(tests, directories_that_cannot_be_made_are_named);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
