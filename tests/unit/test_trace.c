/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/io/thread.h"
#include "pipeline/profile/trace.h"
#include "pipeline/profile/trace_file.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct pb_work_ledger ledger;
static struct pb_err err;
static char path[100];

static void make(void)
{
    memset(&ledger, 0, sizeof ledger);
    memset(&err, 0, sizeof err);
    (void)snprintf(path, sizeof path, "/tmp/pb-test-trace-%d.json", (int)getpid());
    (void)unlink(path);
    ck_assert_int_eq(pb_trace_open(), 0);
}

static void end(void)
{
    pb_work_leave();
    pb_trace_close();
    (void)unlink(path);
}

static size_t events(const struct pb_trace_event **out)
{
    uint64_t left_out;
    size_t n;
    *out = pb_trace_events(&n, &left_out);
    return n;
}

START_TEST(work_parts_are_events_with_inner_after_outer)
{
    const struct pb_trace_event *event;
    pb_work_enter(&ledger);
    pb_work_begin(PB_WORK_FILL, 17);
    pb_work_begin(PB_WORK_DECODE, 5);
    pb_work_end();
    pb_work_end();
    ck_assert_uint_eq(events(&event), 2);
    ck_assert_int_eq(event[0].what, PB_WORK_FILL);
    ck_assert_uint_eq(event[0].number, 17);
    ck_assert_int_eq(event[1].what, PB_WORK_DECODE);
    ck_assert_uint_ge(event[1].start_ns, event[0].start_ns);
    ck_assert_uint_le(event[1].start_ns + event[1].span_ns, event[0].start_ns + event[0].span_ns);
}
END_TEST

static void *work(void *arg)
{
    (void)pthread_setname_np(pthread_self(), "some-name");
    for (int i = 0; i < 1000; i++)
        pb_trace_tile(PB_TRACE_TILE, (uint32_t)i);
    return arg;
}

START_TEST(threads_have_their_names_and_lose_no_event)
{
    const struct pb_trace_event *event;
    pthread_t thread[4];
    size_t n;
    uint32_t seen[4] = {0};
    pb_work_enter(&ledger);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pb_thread_start(&thread[i], work, NULL), 0);
    for (int i = 0; i < 4; i++)
        (void)pthread_join(thread[i], NULL);
    ck_assert_uint_eq(events(&event), 4000);
    const struct pb_trace_thread *threads = pb_trace_threads(&n);
    ck_assert_uint_eq(n, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(threads[i].name, "some-name");
    for (size_t i = 0; i < 4000; i++) {
        ck_assert(i == 0 || event[i].start_ns >= event[i - 1].start_ns);
        seen[event[i].thread]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(seen[i], 1000);
}
END_TEST

START_TEST(a_process_that_crashes_leaves_its_events)
{
    const struct pb_trace_event *event;
    size_t n;
    int status;
    pb_work_enter(&ledger);
    pb_trace_tile(PB_TRACE_TILE, 1);
    pid_t child = fork();
    if (child == 0) {
        pb_trace_become(PB_TRACE_CHILD);
        pb_trace_tile(PB_TRACE_TILE, 2);
        (void)signal(SIGKILL, SIG_DFL);
        (void)raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    pb_trace_tile(PB_TRACE_TILE, 3);
    ck_assert_uint_eq(events(&event), 3);
    const struct pb_trace_thread *threads = pb_trace_threads(&n);
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(threads[event[1].thread].process, child);
    ck_assert_int_eq(threads[event[1].thread].role, PB_TRACE_CHILD);
    ck_assert_int_eq(threads[event[2].thread].process, getpid());
}
END_TEST

START_TEST(full_memory_drops_and_counts_the_last_events)
{
    const struct pb_trace_event *event;
    const uint32_t all = PB_TRACE_BYTES / sizeof *event + 5000;
    uint64_t left_out;
    size_t n;
    pb_work_enter(&ledger);
    for (uint32_t i = 0; i < all; i++)
        pb_trace_tile(PB_TRACE_TILE, i);
    event = pb_trace_events(&n, &left_out);
    ck_assert_uint_eq(n + left_out, all);
    ck_assert_uint_ge(left_out, 5000);
    ck_assert_uint_le(left_out, 6000);
    ck_assert_uint_eq(event[n - 1].number, n - 1);
    pb_trace_clear();
    pb_trace_tile(PB_TRACE_TILE, 7);
    event = pb_trace_events(&n, &left_out);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(left_out, 0);
    ck_assert_uint_eq(event->number, 7);
}
END_TEST

START_TEST(a_counter_is_told_when_it_changes)
{
    const struct pb_trace_event *event;
    pb_work_enter(&ledger);
    pb_trace_set(PB_TRACE_IN_SLOTS, 3);
    pb_trace_set(PB_TRACE_IN_SLOTS, 3);
    pb_trace_add(PB_TRACE_WRITTEN, 100);
    pb_trace_add(PB_TRACE_WRITTEN, 50);
    ck_assert_uint_eq(events(&event), 3);
    ck_assert_uint_eq(event[0].span_ns, 3);
    ck_assert_uint_eq(event[2].span_ns, 150);
}
END_TEST

START_TEST(threads_that_take_no_part_record_nothing)
{
    const struct pb_trace_event *event;
    pb_trace_tile(PB_TRACE_TILE, 1);
    pb_work_begin(PB_WORK_DECODE, 1);
    pb_work_end();
    pb_trace_add(PB_TRACE_WRITTEN, 1);
    ck_assert_uint_eq(events(&event), 0);
}
END_TEST

/* --- the file --- */

START_TEST(a_file_that_is_there_is_refused_and_kept)
{
    struct pb_trace_file *file;
    struct stat st;
    FILE *there = fopen(path, "w");
    ck_assert_int_eq(fputs("mine", there) < 0 || fclose(there) != 0, 0);
    ck_assert_int_lt(pb_trace_file_open(path, &err, &file), 0);
    ck_assert_int_eq(err.code, PB_E_USAGE);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 4);
}
END_TEST

START_TEST(a_file_without_events_is_removed)
{
    struct pb_trace_file *file;
    uint64_t left_out;
    ck_assert_int_eq(pb_trace_file_open(path, &err, &file), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(pb_trace_file_close(file, &err, &left_out), 0);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_removed_and_told)
{
    struct pb_trace_file *file;
    uint64_t left_out;
    struct rlimit most = {.rlim_cur = 5000, .rlim_max = RLIM_INFINITY};
    ck_assert_int_eq(pb_trace_file_open(path, &err, &file), 0);
    pb_work_enter(&ledger);
    (void)work(NULL);
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &most), 0);
    pb_trace_file_add(file, "x.tif");
    ck_assert_int_lt(pb_trace_file_close(file, &err, &left_out), 0);
    ck_assert_int_eq(err.code, PB_E_OUTPUT_WRITE);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(what_no_process_should_write_does_no_harm)
{
    struct pb_trace_file *file;
    uint64_t left_out;
    char text[4000] = "";
    ck_assert_int_eq(pb_trace_file_open(path, &err, &file), 0);
    pb_work_enter(&ledger);
    pb_trace_become(PB_TRACE_CHILD);
    (void)pthread_setname_np(pthread_self(), "\"},\n\xff");
    pb_trace_part((enum pb_work)200, UINT32_MAX, 5, 3);
    pb_trace_tile((enum pb_trace_kind)77, UINT32_MAX);
    pb_trace_file_add(file, "a\"b\\c.tif");
    ck_assert_int_eq(pb_trace_file_close(file, &err, &left_out), 0);
    FILE *in = fopen(path, "r");
    size_t n = fread(text, 1, sizeof text - 1, in);
    (void)fclose(in);
    ck_assert_uint_gt(n, 0);
    ck_assert_ptr_nonnull(strstr(text, "a\\\"b\\\\c.tif"));
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"\\\"},\\n"));
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"other\""));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *tests = tcase_create("trace"), *files = tcase_create("file");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, work_parts_are_events_with_inner_after_outer);
    tcase_add_test(tests, threads_have_their_names_and_lose_no_event);
    tcase_add_test(tests, a_process_that_crashes_leaves_its_events);
    tcase_add_test(tests, full_memory_drops_and_counts_the_last_events);
    tcase_add_test(tests, a_counter_is_told_when_it_changes);
    tcase_add_test(tests, threads_that_take_no_part_record_nothing);
    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(files, make, end);
    tcase_add_test(files, a_file_that_is_there_is_refused_and_kept);
    tcase_add_test(files, a_file_without_events_is_removed);
    tcase_add_test(files, a_file_that_cannot_be_written_is_removed_and_told);
    tcase_add_test(files, what_no_process_should_write_does_no_harm);
    suite_add_tcase(suite, files);
    return run_suite(suite);
}
