/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/inbox.h"

#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE 2000

static const struct pb_companion_rule marker = {PB_COMPANION_MARKER, "{name}.done"},
                                      between = {PB_COMPANION_CHECKSUM, "md5-{name}.txt"},
                                      none = {PB_COMPANION_NONE, ""};

START_TEST(a_companion_has_the_name_of_its_input_in_its_own)
{
    char out[PB_FILES_PATH_BYTES], long_name[300];
    ck_assert(pb_companion_of(&marker, "a/x.tif", out));
    ck_assert_str_eq(out, "a/x.tif.done");
    ck_assert(pb_companion_of(&between, "x.tif", out));
    ck_assert_str_eq(out, "md5-x.tif.txt");
    ck_assert(!pb_companion_of(&none, "x.tif", out));
    (void)memset(long_name, 'n', sizeof long_name);
    long_name[252] = '\0'; /* with .done 257 bytes */
    ck_assert(!pb_companion_of(&marker, long_name, out));
}
END_TEST

START_TEST(input_is_found_by_its_companion_name_only)
{
    char out[PB_FILES_PATH_BYTES];
    ck_assert(pb_companion_input(&marker, "a/x.tif.done", out));
    ck_assert_str_eq(out, "a/x.tif");
    ck_assert(pb_companion_input(&between, "md5-x.tif.txt", out));
    ck_assert_str_eq(out, "x.tif");
    static const char *const others[] = {".done", "x.tif", "x.done.tif", "x.DONE", "done"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!pb_companion_input(&marker, others[i], out), "%s", others[i]);
    ck_assert(!pb_companion_input(&between, "md5-.txt", out));
    ck_assert(!pb_companion_input(&none, "x.tif.done", out));
}
END_TEST

/* One scan `at` ms after the start; the name of the file that may be taken, or "". */
static const char *scan(struct pb_settle *settle, const struct pb_companion_rule *rule,
                        const char *const *names, int64_t at, struct pb_pairing *out)
{
    const struct pb_inbox inbox = {.path = "/inbox", .companion = *rule};
    pb_settle_begin(settle);
    for (size_t i = 0; names[i] != NULL; i++) {
        const struct pb_settle_file file = {
            .name = names[i], .size = 1, .inode = i + 1, .mtime_ns = INT64_C(1) << 62};
        ck_assert_int_eq(pb_settle_add(settle, &file), 0);
    }
    pb_settle_end(settle, SETTLE, at, at, at);
    pb_pairing_sort(&inbox, settle, out);
    const struct pb_settle_file *next = pb_settle_next(settle);
    ck_assert(next == NULL || pb_settle_next(settle) == NULL);
    return next != NULL ? next->name : "";
}

START_TEST(marked_file_is_taken_at_once_and_unmarked_never)
{
    static const char *const both[] = {"x", "x.done", NULL}, *const bare[] = {"x", NULL};
    struct pb_settle *settle = pb_settle_create();
    struct pb_pairing pairing;
    ck_assert_str_eq(scan(settle, &marker, bare, 0, &pairing), "");
    ck_assert_str_eq(scan(settle, &marker, bare, 10 * SETTLE, &pairing), "");
    ck_assert_uint_eq(pb_settle_waiting(settle), 1);
    ck_assert_str_eq(scan(settle, &marker, both, 10 * SETTLE + 1, &pairing), "x");
    ck_assert_uint_eq(pairing.n_alone, 0);
    pb_settle_destroy(settle);
}
END_TEST

START_TEST(with_a_checksum_both_have_to_settle)
{
    static const char *const both[] = {"a", "md5-a.txt", NULL}, *const bare[] = {"a", NULL};
    struct pb_settle *settle = pb_settle_create();
    struct pb_pairing pairing;
    ck_assert_str_eq(scan(settle, &between, bare, 0, &pairing), "");
    ck_assert_str_eq(scan(settle, &between, bare, 2 * SETTLE, &pairing), "");
    ck_assert_str_eq(scan(settle, &between, both, 2 * SETTLE + 1, &pairing), "");
    ck_assert_int_ge(pb_settle_due_ms(settle, 2 * SETTLE + 1), 0);
    ck_assert_str_eq(scan(settle, &between, both, 3 * SETTLE + 1, &pairing), "a");
    ck_assert_uint_eq(pairing.n_alone, 0);
    pb_settle_destroy(settle);
}
END_TEST

START_TEST(settled_lone_marker_is_counted_but_never_taken)
{
    static const char *const alone[] = {"d/x.done", "y.done", NULL};
    struct pb_settle *settle = pb_settle_create();
    struct pb_pairing pairing;
    ck_assert_str_eq(scan(settle, &marker, alone, 0, &pairing), "");
    ck_assert_uint_eq(pairing.n_alone, 0);
    ck_assert_str_eq(scan(settle, &marker, alone, SETTLE, &pairing), "");
    ck_assert_uint_eq(pairing.n_alone, 2);
    ck_assert_str_eq(pairing.first, "d/x.done");
    ck_assert_uint_eq(pb_settle_waiting(settle), 0);
    pb_settle_destroy(settle);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("companion");
    TCase *t = tcase_create("companion");
    tcase_add_test(t, a_companion_has_the_name_of_its_input_in_its_own);
    tcase_add_test(t, input_is_found_by_its_companion_name_only);
    tcase_add_test(t, marked_file_is_taken_at_once_and_unmarked_never);
    tcase_add_test(t, with_a_checksum_both_have_to_settle);
    tcase_add_test(t, settled_lone_marker_is_counted_but_never_taken);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
