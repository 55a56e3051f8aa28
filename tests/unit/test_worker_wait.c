/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "run_suite.h"
#include "service/processes/worker_wait.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 2000 /* tries of 5 ms */

static char fifo[64];

static void spin(void)
{
    for (volatile unsigned n = 0;; n++)
        continue;
}

static void wait_for_words(void)
{
    (void)poll(NULL, 0, -1);
}

/* Waits for a writer that never opens it, like storage that does not answer: a signal would end it.
 */
static void open_file(void)
{
    (void)open(fifo, O_RDONLY);
}

static void *open_file_here(void *user)
{
    (void)user;
    open_file();
    return NULL;
}

static void wait_for_a_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, open_file_here, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

#ifndef __SANITIZE_THREAD__ /* the sanitizer makes a fork of it */
/* The caller of vfork sleeps uninterruptibly until its child ends. */
static void sleep_deeply(void)
{
    if (vfork() == 0) {
        for (;;)
            (void)pause();
    }
}

static void parent_of_sleeper(void)
{
    if (fork() == 0)
        sleep_deeply();
    (void)poll(NULL, 0, -1);
}
#endif

static pid_t start(void (*body)(void))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)setpgid(0, 0);
        body();
        _exit(0);
    }
    (void)setpgid(pid, pid);
    return pid;
}

static void end(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void expect_words(void (*body)(void), const char *words)
{
    const char *why = NULL;
    pid_t pid = start(body);
    for (int i = 0; i < TRIES && why == NULL; i++) {
        (void)usleep(5000);
        why = pb_worker_wait_why(pid);
    }
    end(pid);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strstr(why, words) != NULL, "%s", why);
}

static char state_of(pid_t pid)
{
    char path[64], state = '?';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d %*s %c", &state), 1);
    (void)fclose(file);
    return state;
}

START_TEST(busy_or_idle_process_is_not_blocked_by_the_machine)
{
    pid_t busy = start(spin), idle = start(wait_for_words);
    while (state_of(idle) != 'S' || state_of(busy) != 'R')
        (void)usleep(1000);
    for (int i = 0; i < 50; i++) {
        ck_assert_ptr_null(pb_worker_wait_why(busy));
        ck_assert_ptr_null(pb_worker_wait_why(idle));
    }
    end(busy);
    end(idle);
    ck_assert_ptr_null(pb_worker_wait_why(busy)); /* is gone */
}
END_TEST

START_TEST(who_waits_for_a_file_is)
{
    (void)snprintf(fifo, sizeof fifo, "/tmp/pb-wait-%d", (int)getpid());
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    expect_words(open_file, "waits for a file");
    expect_words(wait_for_a_thread, "waits for a file");
    (void)unlink(fifo);
}
END_TEST

#ifndef __SANITIZE_THREAD__
START_TEST(who_sleeps_in_the_kernel_is)
{
    expect_words(sleep_deeply, "cannot be woken");
    expect_words(parent_of_sleeper, "cannot be woken");
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("worker_wait");
    TCase *tests = tcase_create("worker_wait");
    tcase_add_test(tests, busy_or_idle_process_is_not_blocked_by_the_machine);
    tcase_add_test(tests, who_waits_for_a_file_is);
#ifndef __SANITIZE_THREAD__
    tcase_add_test(tests, who_sleeps_in_the_kernel_is);
#endif
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
