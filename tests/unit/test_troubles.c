/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/troubles.h"

#include "run_suite.h"
#include "service/base/log.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char logged[1 << 16];
static char path[32];
static struct pb_troubles board;
static int changes;

static void count_change(void *user)
{
    ck_assert_ptr_eq(user, &changes);
    changes++;
}

static void begin(void)
{
    (void)snprintf(path, sizeof path, "/tmp/pb-trouble-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)dup2(fd, STDERR_FILENO);
    (void)close(fd);
    pb_log_init(PB_LOG_INFO);
    memset(&board, 0, sizeof board);
    board.on_change = count_change;
    board.user = &changes;
}

static const char *log_text(void)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, logged, sizeof logged - 1);
    logged[n > 0 ? n : 0] = '\0';
    (void)close(fd);
    (void)unlink(path);
    return logged;
}

static int times(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

START_TEST(a_trouble_is_logged_once_a_change)
{
    begin();
    for (int i = 0; i < 5; i++)
        pb_trouble_raise(&board, "store", PB_E_SERVICE_STATE, "jobs.db: disk full");
    ck_assert_uint_eq(board.n, 1);
    ck_assert_int_eq(changes, 1);
    pb_trouble_raise(&board, "store", PB_E_SYSTEM_FILES, "jobs.db: too many open files");
    ck_assert_uint_eq(board.n, 1);
    ck_assert_int_eq(changes, 2);
    pb_trouble_clear(&board, "store");
    pb_trouble_clear(&board, "store");
    ck_assert_uint_eq(board.n, 0);
    ck_assert_int_eq(changes, 3);
    const char *text = log_text();
    ck_assert_int_eq(times(text, "disk full"), 1);
    ck_assert_int_eq(times(text, "too many open files"), 2); /* raised, cleared */
    ck_assert_int_eq(times(text, "is over; it was: jobs.db: too many open files"), 1);
    ck_assert_int_eq(times(text, pb_code_hint(PB_E_SERVICE_STATE)), 1);
}
END_TEST

START_TEST(a_text_that_keeps_changing_does_not_flood_the_log)
{
    begin();
    for (int i = 0; i < 1000; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%d files wait", i);
        pb_trouble_raise(&board, "inbox", PB_E_SYSTEM, text);
    }
    ck_assert_str_eq(pb_trouble_find(&board, "inbox")->text, "999 files wait");
    const char *text = log_text();
    ck_assert_int_eq(times(text, "\n"), 1);
    ck_assert_int_eq(times(text, "(inbox, system): 0 files wait\n"), 1); /* no hint, no ";" */
}
END_TEST

START_TEST(clearing_one_keeps_the_others_in_order)
{
    begin();
    pb_trouble_raise(&board, "a", PB_E_SYSTEM, "first");
    pb_trouble_raise(&board, "b", PB_E_SYSTEM, "second");
    pb_trouble_raise(&board, "c", PB_E_SYSTEM, "third");
    pb_trouble_clear(&board, "b");
    ck_assert_uint_eq(board.n, 2);
    ck_assert_str_eq(board.at[0].text, "first");
    ck_assert_str_eq(board.at[1].text, "third");
    ck_assert_ptr_null(pb_trouble_find(&board, "b"));
    (void)log_text();
}
END_TEST

START_TEST(a_full_board_logs_and_does_not_grow)
{
    begin();
    for (int i = 0; i < PB_TROUBLES_MAX + 3; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", i);
        pb_trouble_raise(&board, key, PB_E_SYSTEM, "x");
    }
    ck_assert_uint_eq(board.n, PB_TROUBLES_MAX);
    ck_assert_int_eq(times(log_text(), "\n"), PB_TROUBLES_MAX + 3);
    for (int i = 0; i < PB_TROUBLES_MAX; i++)
        pb_trouble_clear(&board, board.at[0].key);
    ck_assert_uint_eq(board.n, 0);
}
END_TEST

START_TEST(no_board_is_fine)
{
    char text[8];
    pb_trouble_raise(NULL, "a", PB_E_SYSTEM, "x");
    pb_trouble_clear(NULL, "a");
    ck_assert_ptr_null(pb_trouble_find(NULL, "a"));
    pb_troubles_summary(NULL, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(it_is_shown_everywhere_as_one_line)
{
    begin();
    char *metrics = NULL, summary[400];
    size_t bytes = 0;
    pb_trouble_raise(&board, "inbox", PB_E_SYSTEM, "cannot read a\nREADY=1\x1b[2J\xff");
    pb_trouble_raise(&board, "store", PB_E_SERVICE_STATE, "second");
    pb_troubles_summary(&board, summary, sizeof summary);
    ck_assert_str_eq(summary, "trouble: cannot read a READY=1 [2J? (and 1 more); ");
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_troubles_print(&board, json, "troubles");
    pb_json_end(json);
    const char *text = pb_json_text(json, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"key\":\"store\",\"code\":\"service.state\","
                                       "\"message\":\"second\",\"hint\":\""));
    ck_assert_int_eq(times(text, "\"since\":\"2"), 2);
    pb_json_destroy(json);
    FILE *out = open_memstream(&metrics, &bytes);
    pb_troubles_metrics(&board, out);
    (void)fclose(out);
    ck_assert_ptr_nonnull(
        strstr(metrics, "\npushbroom_trouble{key=\"inbox\",code=\"system\"} 1\n"));
    free(metrics);
    (void)log_text();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("troubles");
    TCase *tc = tcase_create("troubles");
    tcase_add_test(tc, a_trouble_is_logged_once_a_change);
    tcase_add_test(tc, a_text_that_keeps_changing_does_not_flood_the_log);
    tcase_add_test(tc, clearing_one_keeps_the_others_in_order);
    tcase_add_test(tc, a_full_board_logs_and_does_not_grow);
    tcase_add_test(tc, no_board_is_fine);
    tcase_add_test(tc, it_is_shown_everywhere_as_one_line);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
