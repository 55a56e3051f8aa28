/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/input_store.h"
#include "service/base/files.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[64];
static struct pb_dirs dirs;
static int sync_fails; /* the n-th fsync from now on; 0 = none */

int fsync(int fd);
int fsync(int fd)
{
    if (sync_fails > 0 && --sync_fails == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

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
    ck_assert_int_eq(pb_scene_manifest_set_input(&job->manifest, path), 0);
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
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("work/done/x.tif"));
    ck_assert(!there("work/20261121-082850-aaaa"));
    /* A second call changes nothing, even though the archive is in work/ too. */
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("work/done/x.tif") && !there("work/done/x.tif.1"));
    pb_job_fini(&job);
    claim(&job, b, PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("work/done/x.tif.1"));
    ck_assert_ptr_nonnull(strstr(job.manifest.input, "work/done/x.tif.1"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(success_deletes_when_told)
{
    struct pb_job job;
    claim(&job, a, PB_JOB_SUCCESSFUL);
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert(!there("work/done/x.tif") && !there("work/20261121-082850-aaaa"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(failure_quarantines_with_a_record_each)
{
    struct pb_job first, second;
    claim(&first, a, PB_JOB_FAILED);
    claim(&second, b, PB_JOB_DISMISSED);
    ck_assert_int_eq(pb_input_store_put(&first, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert_int_eq(pb_input_store_put(&second, &dirs, PB_INPUT_DELETE, NULL), 0);
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
    (void)snprintf(input, sizeof input, "%s", job.manifest.input);
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    /* State after the record was written and before the move. */
    ck_assert_int_eq(pb_files_make_directory(dirs.work, "work", NULL), 0);
    char claim_path[PB_FILES_PATH_BYTES];
    (void)pb_files_join(claim_path, dirs.work, a);
    ck_assert_int_eq(mkdir(claim_path, 0755), 0);
    ck_assert_int_eq(rename(job.manifest.input, input), 0);
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, input), 0);
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("quarantine/x.tif") && there("quarantine/x.tif.error.json"));
    ck_assert(!there("quarantine/x.tif.1.error.json"));
    pb_job_fini(&job);
}
END_TEST

START_TEST(restore_returns_the_input_and_removes_the_record)
{
    struct pb_job job;
    struct pb_err err = {0};
    claim(&job, a, PB_JOB_FAILED);
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert_int_eq(pb_input_store_restore(&job, &dirs, &err), 0);
    ck_assert(there("work/20261121-082850-aaaa/x.tif"));
    ck_assert(!there("quarantine/x.tif") && !there("quarantine/x.tif.error.json"));
    ck_assert_int_eq(unlink(job.manifest.input), 0);
    ck_assert_int_ne(pb_input_store_restore(&job, &dirs, &err), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_MISSING);
    ck_assert_msg(strstr(err.msg, "/work/20261121-082850-aaaa/x.tif, where it was last") != NULL &&
                      strstr(err.msg, dirs.quarantine) != NULL &&
                      strstr(err.msg, "put it back") != NULL,
                  "%s", err.msg);
    pb_job_fini(&job);
}
END_TEST

START_TEST(restore_finds_an_input_whose_move_was_not_stored)
{
    struct pb_job job;
    struct pb_err err = {0};
    char stale[PB_FILES_PATH_BYTES];
    claim(&job, a, PB_JOB_FAILED);
    put("quarantine/x.tif", "another's");
    (void)snprintf(stale, sizeof stale, "%s", job.manifest.input);
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, NULL), 0);
    ck_assert(there("quarantine/x.tif.1"));
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, stale),
                     0); /* it died before that was stored */
    ck_assert_msg(pb_input_store_restore(&job, &dirs, &err) == 0, "%s", err.msg);
    ck_assert_str_eq(job.manifest.input, stale);
    ck_assert(there("work/20261121-082850-aaaa/x.tif") && there("quarantine/x.tif"));
    ck_assert(!there("quarantine/x.tif.1") && !there("quarantine/x.tif.1.error.json"));
    /* The other way round: it is in work/ again, and the store still has quarantine/. */
    (void)pb_files_join(stale, dirs.quarantine, "gone.tif");
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, stale), 0);
    ck_assert_msg(pb_input_store_restore(&job, &dirs, &err) == 0, "%s", err.msg);
    ck_assert_ptr_nonnull(strstr(job.manifest.input, "work/20261121-082850-aaaa/x.tif"));
    pb_job_fini(&job);
}
END_TEST

/* From here on the system calls fail, as those of filesystems do that do not have them. */
static void fail_calls(int renameat2_error, int link_error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)renameat2_error),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 1, 0),
#ifdef SYS_link
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_link, 0, 1),
#else
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
#endif
        BPF_STMT(BPF_RET | BPF_K,
                 link_error ? SECCOMP_RET_ERRNO | (unsigned)link_error : SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void moves_without_overwriting(void)
{
    char from[PB_FILES_PATH_BYTES], moved[PB_FILES_PATH_BYTES];
    struct pb_err err = {0};
    struct stat before, after;
    put("quarantine/x.tif", "older");
    put("work/x.tif", "newer");
    (void)pb_files_join(from, dirs.work, "x.tif");
    ck_assert_int_eq(stat(from, &before), 0);
    ck_assert_msg(pb_files_move(from, dirs.quarantine, "x.tif", moved, &err) == 0, "%s", err.msg);
    ck_assert(there("quarantine/x.tif.1") && !there("work/x.tif"));
    ck_assert_int_eq(stat(moved, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(after.st_nlink, 1);
    (void)pb_files_join(from, dirs.quarantine, "x.tif");
    ck_assert_int_eq(stat(from, &after), 0);
    ck_assert_int_eq(after.st_size, 5);
}

START_TEST(a_filesystem_whose_rename_may_replace_gets_links)
{
    fail_calls(EINVAL, 0);
    moves_without_overwriting();
}
END_TEST

START_TEST(filesystem_without_links_reserves_the_name_first)
{
    fail_calls(EINVAL, EPERM);
    moves_without_overwriting();
    char from[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
    (void)pb_files_join(from, dirs.quarantine, "x.tif");
    (void)pb_files_join(to, dirs.work, "back.tif");
    ck_assert_int_eq(pb_files_rename_new(from, to, PB_FILES_LINK_ONLY), -EPERM);
    ck_assert(there("quarantine/x.tif") && !there("work/back.tif"));
}
END_TEST

START_TEST(a_submitted_input_is_not_touched)
{
    struct pb_job job;
    claim(&job, a, PB_JOB_FAILED);
    job.owned = false;
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_DELETE, NULL), 0);
    ck_assert(there("work/20261121-082850-aaaa/x.tif"));
    ck_assert(there("quarantine/x.tif.error.json") && !there("quarantine/x.tif"));
    pb_job_fini(&job);
}
END_TEST

/* The record itself, and its directory. */
START_TEST(record_missing_from_the_disk_is_a_clear_error)
{
    struct pb_err err = {0};
    struct pb_job job;
    claim(&job, a, PB_JOB_FAILED);
    sync_fails = _i;
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, &err), -EIO);
    ck_assert_int_eq(sync_fails, 0);
    ck_assert_int_eq(err.code, PB_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(err.msg, "x.tif.error.json: Input/output error"));
    ck_assert(there("work/20261121-082850-aaaa/x.tif") && !there("quarantine/x.tif"));
    ck_assert_int_eq(pb_input_store_put(&job, &dirs, PB_INPUT_ARCHIVE, &err), 0);
    ck_assert(there("quarantine/x.tif") && !there("quarantine/x.tif.1"));
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
    tcase_add_test(tests, restore_returns_the_input_and_removes_the_record);
    tcase_add_test(tests, restore_finds_an_input_whose_move_was_not_stored);
    tcase_add_test(tests, a_filesystem_whose_rename_may_replace_gets_links);
    tcase_add_test(tests, filesystem_without_links_reserves_the_name_first);
    tcase_add_test(tests, a_submitted_input_is_not_touched);
    tcase_add_loop_test(tests, record_missing_from_the_disk_is_a_clear_error, 1, 3);
    tcase_add_test(tests, directories_that_cannot_be_made_are_named);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
