/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Messages of the owner of a device to a parent that reads, that does not, and that is gone. */
#include "service/device/owner_out.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2]; /* the parent's, the owner's */
static struct pb_owner_out out;
static char heard[1 << 20];

static void begin(void)
{
    const int few = 4096;
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    (void)setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few, sizeof few);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(pb_owner_out_init(&out, ends[1]), 0);
}

static void end(void)
{
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(out.wake);
}

/* Reads all that arrived at the parent since the last call. */
static void hear(void)
{
    size_t n = strlen(heard);
    ssize_t more;
    while ((more = read(ends[0], heard + n, sizeof heard - 1 - n)) > 0)
        n += (size_t)more;
    heard[n] = '\0';
}

static const char *last_line(void)
{
    size_t n = strlen(heard);
    ck_assert(n > 0 && heard[n - 1] == '\n');
    heard[n - 1] = '\0';
    const char *before = strrchr(heard, '\n');
    return before != NULL ? before + 1 : heard;
}

/* The owner's thread that polls, until there is nothing to do. */
static int poll_all(void)
{
    int n = 0;
    for (;; n++) {
        struct pollfd watched[PB_OWNER_OUT_WATCHED];
        pb_owner_out_watch(&out, watched);
        if (poll(watched, PB_OWNER_OUT_WATCHED, 0) <= 0)
            return n;
        ck_assert(pb_owner_out_go_on(&out, watched));
    }
}

START_TEST(each_change_is_told_to_a_parent_that_reads)
{
    heard[0] = '\0';
    ck_assert(pb_owner_out_add(&out, 1, 0));
    ck_assert(pb_owner_out_add(&out, 0, 300));
    ck_assert_int_eq(poll_all(), 0);
    hear();
    ck_assert_str_eq(heard, "{\"event\":\"load\",\"sessions\":1,\"bytes\":0}\n"
                            "{\"event\":\"load\",\"sessions\":1,\"bytes\":300}\n");
}
END_TEST

START_TEST(parent_that_reads_late_gets_the_latest_state)
{
    enum { CHANGES = 100000 };
    heard[0] = '\0';
    for (int i = 0; i < CHANGES; i++)
        ck_assert(pb_owner_out_add(&out, 1, 10));
    ck_assert_int_eq(pb_owner_out_load(&out).sessions, CHANGES);
    ck_assert_int_eq(poll_all(), 1); /* first that a message exists, and then that it waits */
    hear();
    ck_assert_int_gt(poll_all(), 0);
    hear();
    size_t lines = 0;
    for (const char *at = heard; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_lt(lines, 1000);
    ck_assert_str_eq(last_line(), "{\"event\":\"load\",\"sessions\":100000,\"bytes\":1000000}");
    ck_assert_int_eq(poll_all(), 0);
}
END_TEST

START_TEST(a_parent_that_is_gone_is_noticed)
{
    (void)close(ends[0]);
    ck_assert(!pb_owner_out_add(&out, 1, 0));
    ends[0] = -1;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("owner_out");
    TCase *tc = tcase_create("owner_out");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, each_change_is_told_to_a_parent_that_reads);
    tcase_add_test(tc, parent_that_reads_late_gets_the_latest_state);
    tcase_add_test(tc, a_parent_that_is_gone_is_noticed);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
