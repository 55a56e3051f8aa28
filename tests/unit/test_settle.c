/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/settle.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WALL   INT64_C(1000000000000) /* ms */
#define SETTLE 2000

static struct pb_settle *settle;
static int64_t ctime_ns; /* ctime of the files that are looked at */
static int64_t step_ms;  /* step of the wall clock */

static void make(void)
{
    settle = pb_settle_create();
}

static void end(void)
{
    pb_settle_destroy(settle);
}

static struct pb_settle_file file_of(const char *name, uint64_t size, int64_t mtime_ms)
{
    return (struct pb_settle_file){.name = name,
                                   .size = size,
                                   .inode = 1,
                                   .mtime_ns = mtime_ms * 1000000,
                                   .ctime_ns = ctime_ns};
}

/* One look at one file `at` ms after the start; whether it is complete. */
static bool look(const char *name, uint64_t size, int64_t mtime_ms, int64_t at)
{
    struct pb_settle_file file = file_of(name, size, mtime_ms);
    pb_settle_begin(settle);
    ck_assert_int_eq(pb_settle_add(settle, &file), 0);
    pb_settle_end(settle, SETTLE, at, WALL + at + step_ms, at);
    return pb_settle_next(settle) != NULL;
}

START_TEST(a_rewrite_with_its_old_mtime_shows_in_the_ctime)
{
    ck_assert(!look("a", 5, WALL, 0));
    ctime_ns = 7;
    ck_assert(!look("a", 5, WALL, 1000));
    ck_assert(!look("a", 5, WALL, SETTLE));
    ck_assert(look("a", 5, WALL, 1000 + SETTLE));
}
END_TEST

START_TEST(an_mtime_counts_at_the_first_sight_only)
{
    ck_assert(!look("a", 5, WALL, 0));
    ck_assert(!look("a", 6, WALL - 10 * SETTLE, 100)); /* grew, and its mtime was set back */
    ck_assert(!look("a", 6, WALL - 10 * SETTLE, SETTLE));
    ck_assert(look("a", 6, WALL - 10 * SETTLE, SETTLE + 100));
}
END_TEST

START_TEST(a_file_by_age_is_told_from_one_that_held_still)
{
    struct pb_settle_file file = file_of("a", 5, WALL - SETTLE);
    for (int i = 0; i < 2; i++) {
        pb_settle_begin(settle);
        ck_assert_int_eq(pb_settle_add(settle, &file), 0);
        pb_settle_end(settle, SETTLE, i * SETTLE, WALL + i * SETTLE, i * SETTLE);
        const struct pb_settle_file *complete = pb_settle_next(settle);
        ck_assert_ptr_nonnull(complete);
        ck_assert_int_eq(complete->by_age, i == 0);
    }
}
END_TEST

START_TEST(a_step_of_the_clock_takes_no_file_that_grows)
{
    ck_assert(!look("a", 5, WALL, 0));
    step_ms = 3600000;
    ck_assert(!look("b", 5, WALL + 90, 100)); /* written before the step, seen after it */
    ck_assert(!look("b", 6, WALL + 200 + step_ms, 300));
    ck_assert(!look("b", 6, WALL + 200 + step_ms, 1000));
    ck_assert(look("b", 6, WALL + 200 + step_ms, 300 + SETTLE));
    step_ms = 0; /* back again */
    ck_assert(!look("c", 5, WALL + 400, 3000));
    ck_assert(look("c", 5, WALL + 400, 3000 + SETTLE));
}
END_TEST

START_TEST(mtimes_count_again_a_while_after_a_step)
{
    ck_assert(!look("a", 5, WALL, 0));
    step_ms = 3600000;
    ck_assert(!look("b", 5, WALL - SETTLE, 100));
    int64_t later = 200 + PB_SETTLE_DISTRUST_MS;
    ck_assert(look("c", 5, WALL + step_ms + later - SETTLE, later));
}
END_TEST

START_TEST(a_new_file_is_complete_once_it_held_still)
{
    ck_assert(!look("a", 5, WALL, 0));
    ck_assert_int_eq(pb_settle_due_ms(settle, 0), SETTLE);
    ck_assert(!look("a", 5, WALL, SETTLE - 1));
    ck_assert(look("a", 5, WALL, SETTLE));
}
END_TEST

START_TEST(growth_and_a_new_mtime_start_the_wait_again)
{
    ck_assert(!look("a", 5, WALL, 0));
    ck_assert(!look("a", 6, WALL + 1900, 1900));
    ck_assert(!look("a", 6, WALL + 1900, 3899));
    ck_assert(!look("a", 6, WALL + 3900, 3950)); /* same size, written again */
    ck_assert(look("a", 6, WALL + 3900, 5950));
}
END_TEST

START_TEST(a_file_older_than_settle_is_complete_at_once)
{
    ck_assert(look("a", 5, WALL - SETTLE, 0));
    ck_assert(look("b", 5, WALL - 86400000, 0));
}
END_TEST

START_TEST(an_mtime_in_the_future_proves_nothing)
{
    ck_assert(!look("a", 5, WALL + 3600000, 0));
    ck_assert(!look("a", 5, WALL + 3600000, 1999));
    ck_assert(look("a", 5, WALL + 3600000, 2000));
}
END_TEST

START_TEST(a_file_that_was_away_or_replaced_waits_anew)
{
    ck_assert(!look("a", 5, WALL + 900000, 0));
    ck_assert(!look("b", 5, WALL + 900000, 1000));
    ck_assert(!look("a", 5, WALL + 900000, 2500));
    struct pb_settle_file file = file_of("a", 5, WALL + 900000);
    file.inode = 2;
    pb_settle_begin(settle);
    ck_assert_int_eq(pb_settle_add(settle, &file), 0);
    pb_settle_end(settle, SETTLE, 4500, WALL + 4500, 4500);
    ck_assert_ptr_null(pb_settle_next(settle));
    ck_assert_uint_eq(pb_settle_waiting(settle), 1);
}
END_TEST

START_TEST(a_file_that_was_not_taken_has_to_hold_still_again)
{
    ck_assert(!look("a", 5, WALL + 900000, 0));
    struct pb_settle_file file = file_of("a", 5, WALL + 900000);
    pb_settle_begin(settle);
    ck_assert_int_eq(pb_settle_add(settle, &file), 0);
    pb_settle_end(settle, SETTLE, 2000, WALL + 2000, 2000);
    const struct pb_settle_file *complete = pb_settle_next(settle);
    ck_assert_ptr_nonnull(complete);
    pb_settle_again(settle, complete);
    ck_assert(!look("a", 5, WALL + 900000, 2100));
    ck_assert(look("a", 5, WALL + 900000, 4100));
}
END_TEST

START_TEST(thousands_of_files_in_any_order_each_come_once)
{
    enum { N = 5000 };
    for (int round = 0; round < 2; round++) {
        pb_settle_begin(settle);
        for (int i = 0; i < N; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "f%d", (i * 7919 + round * 13) % N);
            struct pb_settle_file file = file_of(name, 1, WALL + 900000);
            ck_assert_int_eq(pb_settle_add(settle, &file), 0);
        }
        pb_settle_end(settle, SETTLE, round * SETTLE, WALL + round * SETTLE, round * SETTLE);
        int complete = 0;
        while (pb_settle_next(settle) != NULL)
            complete++;
        ck_assert_int_eq(complete, round ? N : 0);
    }
}
END_TEST

START_TEST(a_held_file_is_still_by_two_looks_never_by_its_age)
{
    ck_assert(look("a", 5, WALL - 2 * SETTLE, 0)); /* alone it would be complete */
    ck_assert(!pb_settle_hold(settle, 0));
    ck_assert_int_eq(pb_settle_due_ms(settle, 0), SETTLE);
    ck_assert_uint_eq(pb_settle_waiting(settle), 1);
    (void)look("a", 5, WALL - 2 * SETTLE, SETTLE);
    ck_assert(pb_settle_hold(settle, 0));
    ck_assert_int_eq(pb_settle_due_ms(settle, SETTLE), -1);
    ck_assert_ptr_null(pb_settle_next(settle));
    ck_assert_uint_eq(pb_settle_waiting(settle), 1);
}
END_TEST

START_TEST(names_in_progress_are_left_alone)
{
    static const char *const left[] = {"",      ".x.tif",           "a.tmp",      "a.tif.part",
                                       "A.TMP", "x.tif.inprogress", "x.filepart", ".tmp"};
    static const char *const taken[] = {"a.tif", "tmp", "part", "a.tmp.tif", "a.parts", "x"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++)
        ck_assert_msg(pb_settle_is_left_alone(left[i]), "%s", left[i]);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        ck_assert_msg(!pb_settle_is_left_alone(taken[i]), "%s", taken[i]);
}
END_TEST

/* The same look, with a rename that was seen. */
static bool look_renamed(uint64_t size, int64_t mtime_ms, int64_t at)
{
    struct pb_settle_file file = file_of("a", size, mtime_ms);
    pb_settle_begin(settle);
    ck_assert_int_eq(pb_settle_add(settle, &file), 0);
    pb_settle_end(settle, SETTLE, at, WALL + at + step_ms, at);
    pb_settle_arrived(settle, 0, at);
    return pb_settle_next(settle) != NULL;
}

START_TEST(a_file_that_was_renamed_in_is_complete_at_once)
{
    ck_assert(look_renamed(5, WALL, 0)); /* just written */
    ck_assert(pb_settle_at(settle, 0)->by_age);
    ck_assert(look("a", 5, WALL, 10)); /* and stays so, seen again as it was */
    ck_assert(pb_settle_at(settle, 0)->by_age);
    ck_assert(!look("a", 6, WALL + 20, 20)); /* until it changes */
    ck_assert(look("a", 6, WALL + 20, 20 + SETTLE));
}
END_TEST

START_TEST(renamed_file_that_was_not_taken_has_to_settle)
{
    ck_assert(look_renamed(5, WALL, 0));
    pb_settle_again(settle, pb_settle_at(settle, 0));
    ck_assert(!look("a", 5, WALL, 10));
    ck_assert_int_eq(pb_settle_due_ms(settle, 10), SETTLE);
    ck_assert(look("a", 5, WALL, 10 + SETTLE));
}
END_TEST

START_TEST(test_held_file_waits_until_it_is_taken)
{
    (void)look("a", 5, WALL, 0);
    (void)look("a", 5, WALL, SETTLE);
    (void)pb_settle_hold(settle, 0);
    ck_assert_uint_eq(pb_settle_waiting(settle), 1);
    pb_settle_again(settle, pb_settle_at(settle, 0));
    ck_assert_uint_eq(pb_settle_waiting(settle), 1);
    pb_settle_taken(settle, 0);
    ck_assert_uint_eq(pb_settle_waiting(settle), 0);
}
END_TEST

START_TEST(one_of_a_set_holds_still_even_if_it_was_renamed_in)
{
    (void)look_renamed(5, WALL, 0);
    ck_assert(!pb_settle_hold(settle, 0));
    (void)look("a", 5, WALL, SETTLE);
    ck_assert(pb_settle_hold(settle, 0));
}
END_TEST

START_TEST(a_note_is_kept_until_the_file_changes)
{
    const struct pb_settle_note note = {.reason = PB_SETTLE_REFUSED, .text = "why"};
    int64_t due;
    (void)look("a", 5, WALL, 0);
    ck_assert_uint_eq(pb_settle_settling(settle, &due), 1);
    ck_assert_int_eq(due, SETTLE);
    pb_settle_set_note(settle, 0, &note);
    pb_settle_again(settle, pb_settle_at(settle, 0));
    ck_assert_uint_eq(pb_settle_settling(settle, &due), 0);
    (void)look("a", 5, WALL, 10);
    ck_assert_str_eq(pb_settle_note(settle, 0)->text, "why");
    (void)look("a", 6, WALL, 20);
    ck_assert_ptr_null(pb_settle_note(settle, 0));
    ck_assert_uint_eq(pb_settle_settling(settle, &due), 1);
    pb_settle_set_note(settle, 0, &note);
    pb_settle_set_note(settle, 0, NULL);
    ck_assert_ptr_null(pb_settle_note(settle, 0));
    pb_settle_set_note(settle, 0, &note); /* the end of the suite frees it */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("settle");
    TCase *tests = tcase_create("settle");
    tcase_add_checked_fixture(tests, make, end);
    tcase_add_test(tests, a_new_file_is_complete_once_it_held_still);
    tcase_add_test(tests, a_rewrite_with_its_old_mtime_shows_in_the_ctime);
    tcase_add_test(tests, an_mtime_counts_at_the_first_sight_only);
    tcase_add_test(tests, a_file_by_age_is_told_from_one_that_held_still);
    tcase_add_test(tests, a_step_of_the_clock_takes_no_file_that_grows);
    tcase_add_test(tests, mtimes_count_again_a_while_after_a_step);
    tcase_add_test(tests, growth_and_a_new_mtime_start_the_wait_again);
    tcase_add_test(tests, a_file_older_than_settle_is_complete_at_once);
    tcase_add_test(tests, an_mtime_in_the_future_proves_nothing);
    tcase_add_test(tests, a_file_that_was_away_or_replaced_waits_anew);
    tcase_add_test(tests, a_file_that_was_not_taken_has_to_hold_still_again);
    tcase_add_test(tests, thousands_of_files_in_any_order_each_come_once);
    tcase_add_test(tests, a_held_file_is_still_by_two_looks_never_by_its_age);
    tcase_add_test(tests, a_file_that_was_renamed_in_is_complete_at_once);
    tcase_add_test(tests, renamed_file_that_was_not_taken_has_to_settle);
    tcase_add_test(tests, one_of_a_set_holds_still_even_if_it_was_renamed_in);
    tcase_add_test(tests, a_note_is_kept_until_the_file_changes);
    tcase_add_test(tests, test_held_file_waits_until_it_is_taken);
    tcase_add_test(tests, names_in_progress_are_left_alone);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
