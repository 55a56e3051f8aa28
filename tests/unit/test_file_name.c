/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_name.h"

#include "run_suite.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

START_TEST(names_become_valid_and_short_with_their_suffix)
{
    char out[256], again[256], flood[256];
    pb_file_name_clean("a b-\xc3\xa9.tif", out);
    ck_assert_str_eq(out, "a b-\xc3\xa9.tif");
    pb_file_name_clean("a\nb\xff/\x7f\xc3.tif", out);
    ck_assert_int_eq(strncmp(out, "a_b____-", 8), 0);
    ck_assert_str_eq(out + strlen(out) - 4, ".tif");
    memset(flood, 'x', 250);
    (void)snprintf(flood + 250, 6, ".tif");
    pb_file_name_clean(flood, out);
    ck_assert_uint_eq(strlen(out), PB_FILE_NAME_BYTES_MAX);
    ck_assert_str_eq(out + PB_FILE_NAME_BYTES_MAX - 4, ".tif");
    for (int i = 0; i < 250; i += 2)
        (void)memcpy(flood + i, "\xc3\xa9", 2);
    pb_file_name_clean(flood, out);
    ck_assert_uint_le(strlen(out), PB_FILE_NAME_BYTES_MAX);
    ck_assert(pb_file_name_is_utf8(out));
    pb_file_name_clean(out, again);
    ck_assert_str_eq(out, again); /* valid: nothing left to clean */
}
END_TEST

/* A xorshift generator: the same names in every run. */
static uint32_t any_number(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

START_TEST(cleaned_names_of_any_bytes_are_clean)
{
    static const char *const parts[] = {" ",
                                        "a",
                                        ".",
                                        "/",
                                        "\xc2\x85",
                                        "\xc2\xa0",
                                        "\xe2\x80\xa8",
                                        "\xe2\x80\xae",
                                        "\xe2\x81\xa6",
                                        "\xe3\x80\x80",
                                        "\xff",
                                        "\xc3",
                                        "\x7f",
                                        "\x1b",
                                        "\xf0\x9f\x9b\xb0",
                                        "\xed\xa0\x80",
                                        ".tif"};
    uint32_t state = 26;
    for (int n = 0; n < 20000; n++) {
        char name[256] = "", clean[256], again[256], scene[256], file[512];
        for (uint32_t i = any_number(&state) % 20 + 1; i > 0; i--)
            strcat(name, parts[any_number(&state) % (sizeof parts / sizeof *parts)]);
        pb_file_name_clean(name, clean);
        pb_file_name_clean(clean, again);
        ck_assert_str_eq(clean, again);
        pb_file_name_scene(name, scene, sizeof scene);
        (void)snprintf(file, sizeof file, "%s.tif", scene);
        ck_assert_msg(pb_file_name_is_clean(file), "'%s' of '%s'", file, name);
    }
}
END_TEST

START_TEST(only_names_without_controls_are_clean)
{
    static const char *const wrong[] = {"",          ".x",           "a/b",          "a\nb",
                                        "a\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa9",
                                        "a\xff",     "\xc0\x80",     "\x7f"};
    static const char *const right[] = {" lead",        "trail ", " ", "a\xc2\xa0",
                                        "\xe2\x80\xa7", "-",      "~2"};
    char flood[300];
    memset(flood, 'x', sizeof flood);
    flood[256] = '\0';
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!pb_file_name_is_clean(wrong[i]), "%zu", i);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        ck_assert_msg(pb_file_name_is_clean(right[i]), "%zu", i);
    ck_assert(!pb_file_name_is_clean(flood));
    flood[255] = '\0';
    ck_assert(pb_file_name_is_clean(flood));
}
END_TEST

START_TEST(names_that_differ_stay_different)
{
    char a[256], b[256], flood[256];
    pb_file_name_clean("a\x01.tif", a);
    pb_file_name_clean("a\x02.tif", b);
    ck_assert_str_ne(a, b);
    pb_file_name_clean("a_.tif", b);
    ck_assert_str_ne(a, b);
    memset(flood, 'x', 251);
    (void)snprintf(flood + 251, 5, ".tif");
    pb_file_name_clean(flood, a);
    flood[230] = 'y'; /* after the cut */
    pb_file_name_clean(flood, b);
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(scene_is_the_name_without_suffix_and_never_hidden)
{
    static const char *const cases[][2] = {{"/a/b/x.tif", "x"},
                                           {"x.y.tif", "x.y"},
                                           {".hidden", "_hidden"},
                                           {".x.tif", "_x"},
                                           {"x", "x"},
                                           {"..", "_"},
                                           {"/", "scene"},
                                           {"", "scene"},
                                           {"a/b.tif", "b"},
                                           {"a.b.tiff", "a.b"},
                                           {".hidden", "_hidden"},
                                           {"...tif", "_."},
                                           {"/in/a.tar.gz", "a"},
                                           {"a.TGZ", "a"},
                                           {"a.b.zip", "a.b"},
                                           {"S2A_x.SAFE.zip", "S2A_x"},
                                           {"a.safe.tar", "a"},
                                           {".zip", "_zip"},
                                           {"x.tif.zip", "x.tif"}};
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb_file_name_scene(cases[i][0], out, sizeof out);
        ck_assert_str_eq(out, cases[i][1]);
    }
}
END_TEST

START_TEST(places_are_numbered_and_recognised)
{
    char out[256], flood[256];
    pb_file_name_place("a", 1, out);
    ck_assert_str_eq(out, "a");
    pb_file_name_place("a", 2, out);
    ck_assert_str_eq(out, "a~2");
    memset(flood, 'x', 255);
    flood[255] = '\0';
    pb_file_name_place(flood, 12, out);
    ck_assert_uint_eq(strlen(out), 255);
    ck_assert_str_eq(out + 252, "~12");
    ck_assert(pb_file_name_is_place(out, flood));
    ck_assert(pb_file_name_is_place("a", "a") && pb_file_name_is_place("a~2", "a"));
    ck_assert(pb_file_name_is_place("a~2", "a~2") && pb_file_name_is_place("a~2~3", "a~2"));
    static const char *const others[] = {"b", "a~", "a~x", "a~2x", "a~02", "ab~2", ".a~2", "a~1"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!pb_file_name_is_place(others[i], "a"), "%s", others[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_name");
    TCase *tc = tcase_create("file_name");
    tcase_add_test(tc, names_become_valid_and_short_with_their_suffix);
    tcase_add_test(tc, cleaned_names_of_any_bytes_are_clean);
    tcase_add_test(tc, only_names_without_controls_are_clean);
    tcase_add_test(tc, names_that_differ_stay_different);
    tcase_add_test(tc, scene_is_the_name_without_suffix_and_never_hidden);
    tcase_add_test(tc, places_are_numbered_and_recognised);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
