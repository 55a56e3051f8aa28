/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/io/thread.h"
#include "pipeline/profile/work.h"

#include "run_suite.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static struct pb_work_ledger ledger;
static struct pb_work_times times;

static void clear(void)
{
    memset(&ledger, 0, sizeof ledger);
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Uses the calling thread's CPU, however long a loaded machine takes for it. */
static void burn(uint64_t ns)
{
    for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
        ;
}

static uint64_t sum(const uint64_t *ns)
{
    uint64_t all = 0;
    for (int i = 0; i < PB_WORK_KINDS; i++)
        all += ns[i];
    return all;
}

START_TEST(cpu_time_belongs_to_the_innermost_part)
{
    uint64_t before = cpu_ns();
    pb_work_enter(&ledger);
    pb_work_begin(PB_WORK_FILL, 1);
    burn(4 * MS);
    pb_work_begin(PB_WORK_DECODE, 1);
    burn(20 * MS);
    pb_work_end();
    burn(4 * MS);
    pb_work_end();
    burn(2 * MS);
    pb_work_leave();
    uint64_t used = cpu_ns() - before;
    pb_work_read(&ledger, &times);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_DECODE], 20 * MS);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_FILL], 8 * MS);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_OTHER], 2 * MS);
    ck_assert_uint_le(sum(times.cpu_ns), used);
    ck_assert_uint_ge(sum(times.cpu_ns) + MS, used);
}
END_TEST

START_TEST(sleeping_part_has_wall_time_and_little_cpu_time)
{
    pb_work_enter(&ledger);
    pb_work_begin(PB_WORK_WAIT, 0);
    (void)usleep(30000);
    pb_work_end();
    pb_work_leave();
    pb_work_read(&ledger, &times);
    ck_assert_uint_ge(times.wall_ns[PB_WORK_WAIT], 30 * MS);
    ck_assert_uint_lt(times.cpu_ns[PB_WORK_WAIT], 10 * MS);
    ck_assert_uint_eq(sum(times.storage_ns), 0);
}
END_TEST

/* Returns true if the process is asleep, by /proc. */
static bool is_asleep(pid_t pid)
{
    char path[40], text[200] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(text, sizeof text, file) != NULL;
    if (file != NULL)
        (void)fclose(file);
    const char *name_end = read ? strrchr(text, ')') : NULL;
    return name_end != NULL && name_end[2] == 'S';
}

/* A pipe stands for the storage. */
START_TEST(only_sleeping_calls_are_waits_for_storage)
{
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        while (!is_asleep(getppid()))
            (void)usleep(1000);
        (void)usleep(20000);
        _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
    }
    pb_work_enter(&ledger);
    pb_work_begin(PB_WORK_DECODE, 0);
    pb_work_storage_begin();
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    pb_work_end();
    pb_work_end();
    pb_work_begin(PB_WORK_ENCODE, 0);
    pb_work_storage_begin();
    burn(5 * MS);
    pb_work_end();
    pb_work_end();
    pb_work_leave();
    pb_work_read(&ledger, &times);
    ck_assert_uint_ge(times.storage_ns[PB_WORK_LOAD], 20 * MS);
    ck_assert_uint_eq(times.storage_ns[PB_WORK_LOAD], sum(times.storage_ns));
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_STORE], 5 * MS);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

static void *compute(void *arg)
{
    (void)arg;
    pb_work_begin(PB_WORK_COMPUTE, 7);
    burn(6 * MS);
    pb_work_end();
    return NULL;
}

START_TEST(threads_are_counted_with_the_one_that_starts_them)
{
    pthread_t thread[3];
    pb_work_enter(&ledger);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pb_thread_start(&thread[i], compute, NULL), 0);
    for (int i = 0; i < 3; i++)
        (void)pthread_join(thread[i], NULL);
    pb_work_leave();
    pb_work_read(&ledger, &times);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_COMPUTE], 18 * MS);
}
END_TEST

START_TEST(a_thread_that_takes_no_part_is_not_counted)
{
    pthread_t thread;
    (void)compute(NULL);
    ck_assert_int_eq(pb_thread_start(&thread, compute, NULL), 0);
    (void)pthread_join(thread, NULL);
    pb_work_read(&ledger, &times);
    ck_assert_uint_eq(sum(times.wall_ns), 0);
}
END_TEST

START_TEST(parts_beyond_the_kept_depth_count_as_the_outer)
{
    pb_work_enter(&ledger);
    pb_work_begin(PB_WORK_FILL, 0);
    for (int i = 0; i < 40; i++)
        pb_work_begin(PB_WORK_DECODE, 0);
    burn(3 * MS);
    for (int i = 0; i < 40; i++)
        pb_work_end();
    burn(3 * MS);
    pb_work_end();
    pb_work_begin(PB_WORK_ENCODE, 0);
    burn(2 * MS);
    pb_work_end();
    pb_work_leave();
    pb_work_read(&ledger, &times);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_DECODE], 3 * MS);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_FILL], 3 * MS);
    ck_assert_uint_ge(times.cpu_ns[PB_WORK_ENCODE], 2 * MS);
}
END_TEST

START_TEST(every_kind_has_a_word_of_its_own)
{
    for (int i = 0; i < PB_WORK_KINDS; i++) {
        ck_assert_str_ne(pb_work_name((enum pb_work)i), "");
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(pb_work_name((enum pb_work)i), pb_work_name((enum pb_work)k));
    }
    ck_assert_str_eq(pb_work_name(PB_WORK_KINDS), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("work");
    TCase *tests = tcase_create("work");
    tcase_add_checked_fixture(tests, clear, NULL);
    tcase_add_test(tests, cpu_time_belongs_to_the_innermost_part);
    tcase_add_test(tests, sleeping_part_has_wall_time_and_little_cpu_time);
    tcase_add_test(tests, only_sleeping_calls_are_waits_for_storage);
    tcase_add_test(tests, threads_are_counted_with_the_one_that_starts_them);
    tcase_add_test(tests, a_thread_that_takes_no_part_is_not_counted);
    tcase_add_test(tests, parts_beyond_the_kept_depth_count_as_the_outer);
    tcase_add_test(tests, every_kind_has_a_word_of_its_own);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
