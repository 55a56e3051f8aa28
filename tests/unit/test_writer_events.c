/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/writers.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char root[64], inside[96], outside[96], second[96];
static struct pb_writers_events *events;

static void make(void)
{
    (void)snprintf(root, sizeof root, "/tmp/pb-events-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    (void)snprintf(outside, sizeof outside, "%s.out", root);
    (void)snprintf(inside, sizeof inside, "%s/x", root);
    (void)snprintf(second, sizeof second, "%s/y", root);
    events = pb_writers_events_create(root);
    ck_assert_ptr_nonnull(events);
}

static void end(void)
{
    pb_writers_events_destroy(events);
    (void)unlink(inside);
    (void)unlink(outside);
    (void)unlink(second);
    ck_assert_int_eq(rmdir(root), 0);
}

/* Returns the file, open for writing. */
static int written(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    return fd;
}

static void renamed_in(void)
{
    ck_assert_int_eq(close(written(outside)), 0);
    ck_assert_int_eq(rename(outside, inside), 0);
}

static bool took_in(const char *name)
{
    pb_writers_events_follow(events, 0);
    return pb_writers_events_took_in(events, name);
}

START_TEST(tells_of_a_rename_once)
{
    renamed_in();
    ck_assert(took_in("x"));
    ck_assert(!took_in("x"));
    ck_assert(!pb_writers_events_is_open(events, "x", 0));
    ck_assert_int_eq(rename(inside, second), 0); /* within the directory, as x.part to x */
    ck_assert(took_in("y"));
}
END_TEST

START_TEST(tells_of_no_rename_of_what_is_copied)
{
    int fd = written(inside);
    ck_assert(!took_in("x"));
    ck_assert(pb_writers_events_is_open(events, "x", 0));
    ck_assert_int_eq(close(fd), 0);
    ck_assert(!took_in("x"));
    ck_assert(!pb_writers_events_is_open(events, "x", 0));
}
END_TEST

START_TEST(a_write_after_the_rename_takes_it_back)
{
    renamed_in();
    int fd = open(inside, O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "y", 1), 1);
    ck_assert(!took_in("x"));
    ck_assert(pb_writers_events_is_open(events, "x", 0));
    ck_assert_int_eq(close(fd), 0);
    ck_assert(!took_in("x"));
}
END_TEST

START_TEST(close_by_the_writer_after_the_rename_revokes_it)
{
    int fd = written(outside);
    ck_assert_int_eq(rename(outside, inside), 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert(!took_in("x"));
}
END_TEST

START_TEST(another_file_of_the_name_takes_it_back)
{
    renamed_in();
    ck_assert_int_eq(unlink(inside), 0);
    ck_assert_int_eq(close(open(inside, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), 0);
    ck_assert(!took_in("x"));
    renamed_in(); /* and a rename onto that gives it again */
    ck_assert(took_in("x"));
}
END_TEST

START_TEST(what_left_again_is_forgotten)
{
    renamed_in();
    ck_assert_int_eq(rename(inside, outside), 0);
    ck_assert(!took_in("x"));
    ck_assert(!pb_writers_events_took_in(NULL, "x"));
    pb_writers_events_follow(NULL, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("writer_events");
    TCase *tcase = tcase_create("events");
    tcase_add_checked_fixture(tcase, make, end);
    tcase_add_test(tcase, tells_of_a_rename_once);
    tcase_add_test(tcase, tells_of_no_rename_of_what_is_copied);
    tcase_add_test(tcase, a_write_after_the_rename_takes_it_back);
    tcase_add_test(tcase, close_by_the_writer_after_the_rename_revokes_it);
    tcase_add_test(tcase, another_file_of_the_name_takes_it_back);
    tcase_add_test(tcase, what_left_again_is_forgotten);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
