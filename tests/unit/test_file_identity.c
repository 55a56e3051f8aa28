/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_identity.h"
#include "pipeline/raster/raster_file.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64], other[96];

static void make(void)
{
    (void)snprintf(path, sizeof path, "/tmp/pb-identity-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    (void)close(fd);
    (void)snprintf(other, sizeof other, "%s.other", path);
}

static void end(void)
{
    pb_file_identity_expect(NULL);
    (void)unlink(path);
    (void)unlink(other);
}

static enum pb_code open_it(void)
{
    struct pb_raster_file file;
    struct pb_err err = {0};
    int rc = pb_raster_file_open(&file, path, &err);
    pb_raster_file_close(&file);
    return rc == 0 ? PB_OK : err.code;
}

static void expect_it(void)
{
    struct stat st;
    char identity[PB_FILE_IDENTITY_BYTES];
    ck_assert_int_eq(stat(path, &st), 0);
    pb_file_identity_print(&st, identity);
    pb_file_identity_expect(identity);
}

START_TEST(the_expected_file_opens_and_any_file_when_none_is)
{
    ck_assert_int_eq(open_it(), PB_OK);
    expect_it();
    ck_assert_int_eq(open_it(), PB_OK);
    pb_file_identity_expect("1 2 3 4");
    ck_assert_int_eq(open_it(), PB_E_INPUT_CHANGED);
    pb_file_identity_expect("");
    ck_assert_int_eq(open_it(), PB_OK);
}
END_TEST

START_TEST(another_file_of_the_same_bytes_and_time_is_another)
{
    struct stat st;
    expect_it();
    ck_assert_int_eq(stat(path, &st), 0);
    int fd = open(other, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    ck_assert_int_eq(futimens(fd, times), 0);
    (void)close(fd);
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_int_eq(open_it(), PB_E_INPUT_CHANGED);
}
END_TEST

START_TEST(link_that_replaced_the_file_is_not_followed)
{
    expect_it();
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    ck_assert_int_eq(open_it(), PB_E_INPUT_CHANGED);
    (void)unlink(path);
    ck_assert_int_eq(symlink(other, path), 0);
    expect_it(); /* the rename changed its ctime */
    ck_assert_int_eq(open_it(), PB_OK);
}
END_TEST

START_TEST(rewritten_file_with_restored_mtime_is_another)
{
    struct stat st;
    expect_it();
    ck_assert_int_eq(stat(path, &st), 0);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(write(fd, "xyz", 3), 3);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    struct stat now = st;
    /* Times of files move with the kernel's tick. */
    while (now.st_ctim.tv_sec == st.st_ctim.tv_sec && now.st_ctim.tv_nsec == st.st_ctim.tv_nsec) {
        ck_assert_int_eq(futimens(fd, times), 0);
        ck_assert_int_eq(fstat(fd, &now), 0);
    }
    (void)close(fd);
    ck_assert_int_eq(open_it(), PB_E_INPUT_CHANGED);
}
END_TEST

START_TEST(an_identity_without_a_ctime_is_compared_without)
{
    struct stat st;
    char identity[PB_FILE_IDENTITY_BYTES];
    ck_assert_int_eq(stat(path, &st), 0);
    pb_file_identity_print(&st, identity);
    *strrchr(identity, ' ') = '\0';
    pb_file_identity_expect(identity);
    ck_assert_int_eq(open_it(), PB_OK);
    identity[strlen(identity) - 1] = '\0';
    pb_file_identity_expect(identity);
    ck_assert_int_eq(open_it(), PB_E_INPUT_CHANGED);
}
END_TEST

START_TEST(a_file_that_was_written_to_is_another)
{
    expect_it();
    int fd = open(path, O_WRONLY | O_APPEND);
    ck_assert_int_eq(write(fd, "d", 1), 1);
    (void)close(fd);
    ck_assert_int_eq(open_it(), PB_E_INPUT_CHANGED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_identity");
    TCase *tests = tcase_create("file_identity");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, the_expected_file_opens_and_any_file_when_none_is);
    tcase_add_test(tests, another_file_of_the_same_bytes_and_time_is_another);
    tcase_add_test(tests, link_that_replaced_the_file_is_not_followed);
    tcase_add_test(tests, rewritten_file_with_restored_mtime_is_another);
    tcase_add_test(tests, an_identity_without_a_ctime_is_compared_without);
    tcase_add_test(tests, a_file_that_was_written_to_is_another);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
