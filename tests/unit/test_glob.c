/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/glob.h"

#include "run_suite.h"

#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ALL = PB_GLOB_ANY_CASE | PB_GLOB_GROUPS | PB_GLOB_PATH };

START_TEST(patterns_fit_as_those_of_a_shell)
{
    static const struct {
        const char *pattern, *name;
        unsigned flags;
        bool fits;
    } cases[] = {
        {"", "", 0, true},
        {"*", "", 0, true},
        {"?", "", 0, false},
        {"*.tif", "a.tif", 0, true},
        {"*.tif", "a.TIF", 0, false},
        {"*.tif", "a.TIF", PB_GLOB_ANY_CASE, true},
        {"a*b*c", "a--b-bc", 0, true},
        {"S2[AB]_*", "s2b_x", PB_GLOB_ANY_CASE, true},
        {"S2[!AB]_*", "s2b_x", PB_GLOB_ANY_CASE, false},
        {"[]x]", "]", 0, true},
        {"[^]x]", "]", 0, false},
        {"[a-c-]", "-", 0, true},
        {"[[:digit:]_]?", "7a", 0, true},
        {"[[:digit:]_]?", "_a", 0, true},
        {"[[:digit:]_]?", ":a", 0, false},
        {"[\\]]", "]", 0, true},
        {"[ab", "[ab", 0, true},
        {"a\\*b", "a*b", 0, true},
        {"a\\*b", "axb", 0, false},
        {"*/b", "a/b", PB_GLOB_PATH, true},
        {"*b", "a/b", PB_GLOB_PATH, false},
        {"a?b", "a/b", PB_GLOB_PATH, false},
        {"a[/]b", "a/b", PB_GLOB_PATH, false},
        {"a[!x]b", "a/b", PB_GLOB_PATH, false},
        {"*b", "a/b", 0, true},
        {"@(a|b).tif", "b.tif", ALL, true},
        {"@(a|b).tif", "ab.tif", ALL, false},
        {"+(a|b).tif", "abba.tif", ALL, true},
        {"+(a|b).tif", ".tif", ALL, false},
        {"*(a|b).tif", ".tif", ALL, true},
        {"?(a)b", "b", ALL, true},
        {"?(a)b", "aab", ALL, false},
        {"!(*_mask).tif", "a.tif", ALL, true},
        {"!(*_mask).tif", "a_mask.tif", ALL, false},
        {"*(a|*(b|+(c)))", "abccba", ALL, true},
        {"@(a|b", "@(a|b", ALL, true},
        {"@(a|b)", "@(a|b)", 0, true},
        {"@(x[)]|y)", "x)", ALL, true},
        {"@(x\\)|y)", "x)", ALL, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(pb_glob_fits(cases[i].pattern, cases[i].name, cases[i].flags) ==
                          cases[i].fits,
                      "'%s' and '%s'", cases[i].pattern, cases[i].name);
}
END_TEST

static uint32_t any_number(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void any_text(uint32_t *state, const char *const *parts, uint32_t n, uint32_t most,
                     char *out)
{
    out[0] = '\0';
    for (uint32_t i = any_number(state) % (most + 1); i > 0; i--)
        strcat(out, parts[any_number(state) % n]);
}

/* fnmatch() of the C library has the same rules, except for groups with slashes. */
START_TEST(patterns_fit_as_fnmatch_says)
{
    static const char *const plain[] = {
        "a", "b", "A",  "*",   "?", "[ab]", "[!a]", "[^b-c]", "\\*", "[[:upper:]c]",
        "c", "/", "**", "[a-", "]", "-"};
    static const char *const groups[] = {"a",    "b",       "*",       "?",
                                         "[ab]", "*(a|b)",  "+(ab|c)", "@(a|*b)",
                                         "?(a)", "*(a?|b)", "c",       "+(*(a)b|c)"};
    static const char *const letters[] = {"a", "b", "c", "A", "B", "ab", "*", "]", "-"};
    static const char *const paths[] = {"a", "b", "c", "A", "/", "ab", "*"};
    char pattern[200], name[100];
    uint32_t state = 2026;
    int fit = 0;
    for (int i = 0; i < 60000; i++) {
        const bool grouped = i % 2 != 0, any_case = i % 4 > 1, path = !grouped && i % 8 > 3;
        const unsigned flags = (grouped ? PB_GLOB_GROUPS : 0u) |
                               (any_case ? PB_GLOB_ANY_CASE : 0u) | (path ? PB_GLOB_PATH : 0u);
        const int as = (grouped ? FNM_EXTMATCH : 0) | (any_case ? FNM_CASEFOLD : 0) |
                       (path ? FNM_PATHNAME : 0);
        any_text(&state, grouped ? groups : plain, grouped ? 12 : 16, 6, pattern);
        any_text(&state, path ? paths : letters, path ? 7 : 9, 6, name);
        const bool right = fnmatch(pattern, name, as) == 0;
        fit += right;
        ck_assert_msg(pb_glob_fits(pattern, name, flags) == right, "'%s' and '%s', flags %u: %d",
                      pattern, name, flags, right);
    }
    ck_assert_int_gt(fit, 3000);
}
END_TEST

/* Each would take fnmatch() years. Each takes some milliseconds of the processor. */
START_TEST(no_pattern_takes_long)
{
    static const char *const patterns[] = {
        "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
        "@(a|aa|aaa)*@(a|aa|aaa)*@(a|aa|aaa)*@(a|aa|aaa)*@(a|aa|aaa)*b.tif",
        "*(a|aa|aaa|aaaa)*(a|aa|aaa)*(a|aa)*(aa|aaa)b",
        "*(*(*(*(a)a|b)a|c)a|d)b",
        "+(+(+(+(a|b)|c)|d)|e)f",
        "!(!(!(!(a*b)*b)*b)*b)*b",
        "*(!(*(!(a)*b)*b)*b)*b",
    };
    char name[PB_GLOB_FITS_MAX + 1];
    struct timespec begin, end;
    for (size_t n = 250; n <= PB_GLOB_FITS_MAX; n *= 4) {
        memset(name, 'a', n);
        name[n] = '\0';
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
            (void)pb_glob_fits(patterns[i], name, ALL);
            (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
            const double s =
                (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
            ck_assert_msg(s < 5, "'%s', %zu bytes: %.1f s", patterns[i], n, s);
        }
    }
}
END_TEST

START_TEST(long_and_deep_patterns_are_wrong)
{
    char text[PB_GLOB_PATTERN_MAX + 2];
    memset(text, '*', sizeof text);
    text[PB_GLOB_PATTERN_MAX] = '\0';
    ck_assert_ptr_null(pb_glob_wrong(text));
    text[PB_GLOB_PATTERN_MAX] = '*';
    text[PB_GLOB_PATTERN_MAX + 1] = '\0';
    ck_assert_ptr_nonnull(pb_glob_wrong(text));
    ck_assert_ptr_null(pb_glob_wrong("@(a|@(b|@(c|@(d)))) @(a)@(b)@(c)@(d)@(e)"));
    ck_assert_ptr_nonnull(pb_glob_wrong("@(a|@(b|@(c|@(d|+(e)))))"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("glob");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, patterns_fit_as_those_of_a_shell);
    tcase_add_test(tests, patterns_fit_as_fnmatch_says);
    tcase_add_test(tests, no_pattern_takes_long);
    tcase_add_test(tests, long_and_deep_patterns_are_wrong);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
