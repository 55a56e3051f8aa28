/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/log.h"

#include "run_suite.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char text[1 << 20];
static char path[32];

/* Redirects stderr into a file; every test runs in a process of its own. */
static void begin(bool journal)
{
    struct stat st;
    char stream[64];
    (void)snprintf(path, sizeof path, "/tmp/pb-log-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)dup2(fd, STDERR_FILENO);
    (void)fstat(fd, &st);
    (void)close(fd);
    (void)snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    (void)unsetenv("JOURNAL_STREAM");
    if (journal)
        (void)setenv("JOURNAL_STREAM", stream, 1);
    pb_log_init(PB_LOG_INFO);
}

static const char *written(void)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(fd);
    (void)unlink(path);
    return text;
}

START_TEST(a_journal_gets_levels_as_prefixes)
{
    begin(true);
    pb_log(PB_LOG_WARNING, "job %d", 7);
    ck_assert_str_eq(written(), "<4>job 7\n");
}
END_TEST

START_TEST(a_file_gets_time_and_level_in_words)
{
    begin(false);
    pb_log(PB_LOG_ERROR, "x");
    const char *line = written();
    ck_assert_ptr_nonnull(strstr(line, "Z error   x\n"));
    ck_assert_int_eq(line[4], '-');
}
END_TEST

START_TEST(a_journal_elsewhere_is_not_ours)
{
    ck_assert(!pb_log_is_journal("1:1", STDERR_FILENO));
    ck_assert(!pb_log_is_journal("rubbish", STDERR_FILENO));
    ck_assert(!pb_log_is_journal(NULL, STDERR_FILENO));
}
END_TEST

START_TEST(a_line_stays_one_line_and_is_cut)
{
    static char flood[5000];
    begin(true);
    memset(flood, 'x', sizeof flood - 1);
    pb_log(PB_LOG_INFO, "a\n<0>b\x1b[2J");
    pb_log(PB_LOG_INFO, "%s", flood);
    const char *line = written();
    ck_assert_ptr_nonnull(strstr(line, "<6>a\\x0a<0>b\\x1b[2J\n<6>xxx"));
    ck_assert_uint_lt(strlen(line), 2400);
}
END_TEST

START_TEST(levels_over_the_most_wanted_are_dropped)
{
    begin(true);
    pb_log(PB_LOG_DEBUG, "detail");
    ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(a_flood_is_cut_but_errors_pass)
{
    begin(true);
    for (int i = 0; i < 3 * PB_LOG_BURST; i++)
        pb_log(PB_LOG_INFO, "line");
    pb_log(PB_LOG_ERROR, "important");
    int lines = 0;
    const char *all = written();
    for (const char *c = all; *c; c++)
        lines += *c == '\n';
    ck_assert_int_eq(lines, PB_LOG_BURST + 1);
    ck_assert_ptr_nonnull(strstr(all, "<3>important\n"));
}
END_TEST

START_TEST(a_flood_hides_no_line_that_is_always_written)
{
    begin(true);
    for (int i = 0; i < 3 * PB_LOG_BURST; i++)
        pb_log(PB_LOG_NOTICE, "line");
    pb_log_always(PB_LOG_NOTICE, "by %s", "alice");
    pb_log_always(PB_LOG_DEBUG, "detail");
    const char *all = written();
    ck_assert_ptr_nonnull(strstr(all, "<5>by alice\n"));
    ck_assert_ptr_null(strstr(all, "detail"));
}
END_TEST

START_TEST(a_flood_of_notices_leaves_warnings_their_place)
{
    begin(true);
    for (int i = 0; i < 3 * PB_LOG_BURST; i++)
        pb_log(PB_LOG_NOTICE, "taken");
    for (int i = 0; i < PB_LOG_BURST; i++)
        pb_log(PB_LOG_WARNING, "left alone");
    int warnings = 0;
    for (const char *at = written(); (at = strstr(at, "<4>left alone\n")) != NULL; at++)
        warnings++;
    ck_assert_int_eq(warnings, PB_LOG_BURST);
}
END_TEST

START_TEST(what_was_left_out_is_told_without_another_line)
{
    begin(true);
    for (int i = 0; i < PB_LOG_BURST + 7; i++)
        pb_log(PB_LOG_NOTICE, "taken");
    for (int i = 0; i < PB_LOG_BURST + 2; i++)
        pb_log(PB_LOG_WARNING, "left alone");
    pb_log_flush();
    struct timespec window = {PB_LOG_WINDOW_MS / 1000, 100000000};
    while (nanosleep(&window, &window) != 0)
        ;
    pb_log_flush();
    pb_log_flush();
    const char *all = written();
    const char *told = strstr(all, "<4>log: 2 lines (warning) left out, too many at once\n");
    ck_assert_ptr_nonnull(told);
    ck_assert_ptr_null(strstr(strchr(told, '\n'), "(warning)"));
    ck_assert_ptr_nonnull(strstr(all, "<4>log: 7 lines (notice) left out, too many at once\n"));
}
END_TEST

START_TEST(nothing_that_steers_a_terminal_passes)
{
    begin(true);
    /* CSI as C1, a line separator, right-to-left override, no UTF-8; text stays. */
    pb_log(PB_LOG_INFO, "%s", "a\xc2\x9b[\xe2\x80\xa8[\xe2\x80\xae[\xff[\xc3\xa9\xe2\x82\xac\x7f");
    ck_assert_str_eq(written(), "<6>a\\xc2\\x9b[\\xe2\\x80\\xa8[\\xe2\\x80\\xae[\\xff["
                                "\xc3\xa9\xe2\x82\xac\\x7f\n");
}
END_TEST

static char lines[4096];
static int n_lines;

static void add_line(void *user, int64_t wall_ms, enum pb_log_level level, const char *line)
{
    ck_assert_ptr_eq(user, lines);
    ck_assert_int_gt(wall_ms, 0);
    n_lines++;
    (void)snprintf(lines, sizeof lines, "%s: %.300s", pb_log_level_word(level), line);
}

START_TEST(test_lines_of_a_job_are_kept)
{
    begin(true);
    pb_log(PB_LOG_WARNING, "job 1-a: runs on the CPU");
    pb_log(PB_LOG_NOTICE, "job 1-ab: done");
    pb_log(PB_LOG_NOTICE, "job 1-a waits");
    pb_log(PB_LOG_NOTICE, "job ");
    pb_log(PB_LOG_NOTICE, "jo");
    pb_log_lines("1-a", add_line, lines);
    ck_assert_int_eq(n_lines, 1);
    ck_assert_str_eq(lines, "warning: runs on the CPU");
    pb_log_lines("1", add_line, lines);
    ck_assert_int_eq(n_lines, 1);
    for (int i = 0; i < PB_LOG_KEPT; i++)
        pb_log(PB_LOG_NOTICE, "job 2-b: line %d", i);
    pb_log_lines("1-a", add_line, lines);
    ck_assert_int_eq(n_lines, 1); /* newer lines replaced it */
    pb_log_lines("2-b", add_line, lines);
    ck_assert_int_eq(n_lines, 1 + PB_LOG_KEPT);
    ck_assert_str_eq(lines, "notice: line 999");
    pb_log(PB_LOG_ERROR, "job 3-c: %01000d", 7);
    pb_log_lines("3-c", add_line, lines);
    ck_assert_int_eq(n_lines, 2 + PB_LOG_KEPT);
    n_lines = 0;
    pb_log_take("2-b", add_line, lines); /* the newest ones, and the others are given up */
    ck_assert_int_eq(n_lines, PB_LOG_TAKEN);
    ck_assert_str_eq(lines, "notice: line 999");
    pb_log_take("2-b", add_line, lines);
    pb_log_lines("2-b", add_line, lines);
    ck_assert_int_eq(n_lines, PB_LOG_TAKEN);
    pb_log(PB_LOG_NOTICE, "job 2-b: new");
    pb_log_lines("2-b", add_line, lines);
    pb_log_take("2-b", add_line, lines);
    pb_log_take("3-c", add_line, lines);
    ck_assert_int_eq(n_lines, PB_LOG_TAKEN + 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = tcase_create("log");
    tcase_add_test(tests, a_journal_gets_levels_as_prefixes);
    tcase_add_test(tests, a_file_gets_time_and_level_in_words);
    tcase_add_test(tests, a_journal_elsewhere_is_not_ours);
    tcase_add_test(tests, a_line_stays_one_line_and_is_cut);
    tcase_add_test(tests, levels_over_the_most_wanted_are_dropped);
    tcase_add_test(tests, a_flood_is_cut_but_errors_pass);
    tcase_add_test(tests, a_flood_hides_no_line_that_is_always_written);
    tcase_add_test(tests, a_flood_of_notices_leaves_warnings_their_place);
    tcase_add_test(tests, what_was_left_out_is_told_without_another_line);
    tcase_add_test(tests, nothing_that_steers_a_terminal_passes);
    tcase_add_test(tests, test_lines_of_a_job_are_kept);
    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
