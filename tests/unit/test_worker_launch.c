/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/worker_launch.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program with no handlers of its own, as a worker is before it has set its own. */
START_TEST(test_signals_of_group_do_not_end_new_process)
{
    static const char *const none[] = {NULL};
    const struct pb_worker_program cat = {.path = "/bin/cat", .arguments = none};
    struct pb_worker_pipes pipes;
    pid_t pid;
    ck_assert_int_eq(pb_worker_launch(&cat, &pid, &pipes), 0);
    ck_assert_int_eq(kill(pid, SIGHUP), 0);
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(write(pipes.in, "x", 1), 1);
    char byte = 0;
    ck_assert_int_eq(read(pipes.out, &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    ck_assert_int_eq(close(pipes.in), 0);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    (void)close(pipes.out);
    (void)close(pipes.log);
}
END_TEST

START_TEST(test_missing_program_is_reported)
{
    const struct pb_worker_program none = {.path = "/nonexistent/program"};
    struct pb_worker_pipes pipes;
    pid_t pid;
    ck_assert_int_eq(pb_worker_launch(&none, &pid, &pipes), -ENOENT);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no process remains */
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker_launch");
    TCase *launch = tcase_create("launch");
    tcase_add_test(launch, test_signals_of_group_do_not_end_new_process);
    tcase_add_test(launch, test_missing_program_is_reported);
    suite_add_tcase(suite, launch);
    return run_suite(suite);
}
