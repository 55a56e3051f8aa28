/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/left.h"

#include "run_suite.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pb_left *left;

static void make(void)
{
    left = pb_left_create();
    ck_assert_ptr_nonnull(left);
}

static void unmake(void)
{
    pb_left_destroy(left);
}

static int add(const char *name, enum pb_settle_reason reason, uint64_t inode)
{
    const struct pb_left_entry entry = {.name = name,
                                        .text = "why",
                                        .inode = inode,
                                        .type = DT_REG,
                                        .is_final = reason != PB_SETTLE_REFUSED,
                                        .reason = reason};
    return pb_left_add(left, &entry);
}

START_TEST(test_known_entry_is_confirmed)
{
    pb_left_begin(left);
    ck_assert_int_eq(add("a", PB_SETTLE_FOREIGN, 1), 1);
    ck_assert_int_eq(add("a", PB_SETTLE_FOREIGN, 1), 0);
    ck_assert(pb_left_confirm(left, "a", DT_REG, 1));
    ck_assert(!pb_left_confirm(left, "a", DT_REG, 2));
    ck_assert(!pb_left_confirm(left, "a", DT_DIR, 1));
    ck_assert(!pb_left_confirm(left, "b", DT_REG, 1));
    ck_assert_int_eq(add("b", PB_SETTLE_REFUSED, 1), 1);
    ck_assert(!pb_left_confirm(left, "b", DT_REG, 1)); /* not final */
}
END_TEST

START_TEST(test_entry_that_a_scan_misses_is_dropped)
{
    pb_left_begin(left);
    (void)add("a", PB_SETTLE_FOREIGN, 1);
    (void)add("b", PB_SETTLE_FOREIGN, 2);
    pb_left_begin(left);
    ck_assert(pb_left_confirm(left, "a", DT_REG, 1));
    pb_left_drop_old(left, "a");
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_FOREIGN), 2);
    pb_left_drop_all_old(left, NULL, NULL);
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_FOREIGN), 1);
    pb_left_begin(left);
    pb_left_drop_old(left, "a");
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_FOREIGN), 0);
}
END_TEST

START_TEST(test_reopened_entries_are_news_by_reason_only)
{
    const char *open[4];
    pb_left_begin(left);
    (void)add("a", PB_SETTLE_FOREIGN, 1);
    (void)add("b", PB_SETTLE_FOREIGN, 2);
    (void)add("c", PB_SETTLE_FOREIGN, 3);
    (void)add("d", PB_SETTLE_REFUSED, 4);
    ck_assert_uint_eq(pb_left_open(left, open, 4), 1);
    pb_left_reopen(left);
    ck_assert_uint_eq(pb_left_open(left, open, 4), 4);
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_FOREIGN), 3);
    pb_left_begin(left);
    ck_assert(!pb_left_confirm(left, "a", DT_REG, 1));
    ck_assert_int_eq(add("a", PB_SETTLE_FOREIGN, 1), 0);
    ck_assert(pb_left_confirm(left, "a", DT_REG, 1));
    ck_assert_int_eq(add("b", PB_SETTLE_IGNORED, 2), 1);
    ck_assert_int_eq(add("d", PB_SETTLE_REFUSED, 4), 0);
    pb_left_drop_all_old(left, NULL, NULL);
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_FOREIGN), 1);
    ck_assert_uint_eq(pb_left_open(left, open, 4), 1);
}
END_TEST

static bool is_in_first_half(const void *user, const char *name)
{
    return strcmp(name, user) < 0;
}

START_TEST(test_many_entries_are_found_after_removals)
{
    enum { N = 5000 };
    char name[32];
    pb_left_begin(left);
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "entry%05d", i);
        ck_assert_int_eq(add(name, i % 2 ? PB_SETTLE_IGNORED : PB_SETTLE_FOREIGN, (uint64_t)i), 1);
    }
    pb_left_begin(left);
    pb_left_drop_all_old(left, is_in_first_half, "entry02500");
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_IGNORED), N / 4);
    ck_assert_uint_eq(pb_left_count(left, PB_SETTLE_FOREIGN), N / 4);
    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof name, "entry%05d", i);
        ck_assert_int_eq(pb_left_confirm(left, name, DT_REG, (uint64_t)i), i >= N / 2);
    }
}
END_TEST

START_TEST(test_first_entries_follow_changes)
{
    const struct pb_left_entry *first[PB_LEFT_FIRST_MAX];
    char name[32];
    pb_left_begin(left);
    for (int i = 200; i > 0; i--) {
        (void)snprintf(name, sizeof name, "e%03d", i);
        (void)add(name, PB_SETTLE_FOREIGN, 1);
    }
    ck_assert_uint_eq(pb_left_first(left, PB_SETTLE_FOREIGN, first), PB_LEFT_FIRST_MAX);
    ck_assert_str_eq(first[0]->name, "e001");
    ck_assert_str_eq(first[PB_LEFT_FIRST_MAX - 1]->name, "e100");
    (void)add("e0000", PB_SETTLE_FOREIGN, 1);
    pb_left_begin(left);
    pb_left_drop_old(left, "e001");
    ck_assert_uint_eq(pb_left_first(left, PB_SETTLE_FOREIGN, first), PB_LEFT_FIRST_MAX);
    ck_assert_str_eq(first[0]->name, "e0000");
    ck_assert_str_eq(first[1]->name, "e002");
    ck_assert_str_eq(first[PB_LEFT_FIRST_MAX - 1]->name, "e100");
    ck_assert_uint_eq(pb_left_first(left, PB_SETTLE_REFUSED, first), 0);
}
END_TEST

START_TEST(test_first_entries_are_removed_with_all_others)
{
    const struct pb_left_entry *first[PB_LEFT_FIRST_MAX];
    char name[32];
    pb_left_begin(left);
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof name, "e%03d", i);
        (void)add(name, PB_SETTLE_FOREIGN, 1);
    }
    ck_assert_uint_eq(pb_left_first(left, PB_SETTLE_FOREIGN, first), PB_LEFT_FIRST_MAX);
    pb_left_begin(left);
    /* the last of the first ones, then names that are compared with it */
    pb_left_drop_old(left, "e099");
    pb_left_drop_old(left, "e000");
    (void)add("e001", PB_SETTLE_IGNORED, 1);
    pb_left_drop_all_old(left, NULL, NULL);
    ck_assert_uint_eq(pb_left_first(left, PB_SETTLE_FOREIGN, first), 0);
    ck_assert_uint_eq(pb_left_first(left, PB_SETTLE_IGNORED, first), 1);
}
END_TEST

/* Expectation of the random test below about a name. */
struct expected {
    bool is_there, is_found; /* is_found: by this scan */
    enum pb_settle_reason reason;
};

enum { NAMES = 400 };

static void name_of(int i, char out[32])
{
    (void)snprintf(out, 32, "e%03d", i);
}

static void check_first(const struct expected *expected, enum pb_settle_reason reason)
{
    const struct pb_left_entry *first[PB_LEFT_FIRST_MAX];
    const size_t n = pb_left_first(left, reason, first);
    size_t at = 0, count = 0;
    char name[32];
    for (int i = 0; i < NAMES; i++) {
        if (!expected[i].is_there || expected[i].reason != reason)
            continue;
        name_of(i, name);
        if (at < PB_LEFT_FIRST_MAX)
            ck_assert_str_eq(first[at++]->name, name);
        count++;
    }
    ck_assert_uint_eq(n, at);
    ck_assert_uint_eq(pb_left_count(left, reason), count);
}

static bool is_even(const void *user, const char *name)
{
    (void)user;
    return (name[3] - '0') % 2 == 0;
}

static void drop(struct expected *expected, bool only_even)
{
    pb_left_drop_all_old(left, only_even ? is_even : NULL, NULL);
    for (int i = 0; i < NAMES; i++)
        if (!expected[i].is_found && (!only_even || i % 2 == 0))
            expected[i].is_there = false;
}

/* Names are added with changing reasons, dropped and found again, and the open and first entries
 * are read in between. */
START_TEST(test_random_scans_keep_what_they_found)
{
    struct expected expected[NAMES] = {{.is_there = false}};
    char name[32];
    srand(7);
    for (int scan = 0; scan < 300; scan++) {
        const char *open[NAMES];
        pb_left_begin(left);
        for (int i = 0; i < NAMES; i++)
            expected[i].is_found = false;
        for (int k = rand() % 200; k > 0; k--) {
            const int i = rand() % NAMES;
            name_of(i, name);
            const enum pb_settle_reason reason =
                (enum pb_settle_reason)(PB_SETTLE_REFUSED + rand() % 3);
            if (rand() % 4 == 0) {
                pb_left_drop_old(left, name);
                expected[i].is_there = expected[i].is_there && expected[i].is_found;
                continue;
            }
            (void)add(name, reason, 1);
            expected[i] = (struct expected){true, true, reason};
            if (rand() % 8 == 0)
                check_first(expected, reason);
        }
        if (rand() % 5 == 0)
            pb_left_reopen(left);
        const size_t n = pb_left_open(left, open, NAMES);
        for (size_t i = 0; i < n; i++)
            ck_assert(expected[atoi(open[i] + 1)].is_there);
        if (rand() % 3 == 0)
            drop(expected, rand() % 2 == 0);
        for (int reason = PB_SETTLE_REFUSED; reason <= PB_SETTLE_IGNORED; reason++)
            check_first(expected, (enum pb_settle_reason)reason);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("left");
    TCase *tcase = tcase_create("left");
    tcase_add_checked_fixture(tcase, make, unmake);
    tcase_add_test(tcase, test_known_entry_is_confirmed);
    tcase_add_test(tcase, test_entry_that_a_scan_misses_is_dropped);
    tcase_add_test(tcase, test_reopened_entries_are_news_by_reason_only);
    tcase_add_test(tcase, test_many_entries_are_found_after_removals);
    tcase_add_test(tcase, test_first_entries_follow_changes);
    tcase_add_test(tcase, test_first_entries_are_removed_with_all_others);
    tcase_add_test(tcase, test_random_scans_keep_what_they_found);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return run_suite(make_suite());
}
