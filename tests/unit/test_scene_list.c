/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_files.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct pb_scene_list list;
static struct pb_err err;

static int read_list(const char *text, size_t bytes)
{
    char path[] = "order.txt";
    struct pb_raster_file file = {
        .fd = memfd_create("list", MFD_CLOEXEC), .bytes = bytes, .path = path};
    pb_scene_list_fini(&list);
    err = (struct pb_err){0};
    ck_assert_int_eq(write(file.fd, text, bytes), (ssize_t)bytes);
    int rc = pb_scene_list_read(&file, &err, &list);
    (void)close(file.fd);
    return rc;
}

static int read_text(const char *text)
{
    return read_list(text, strlen(text));
}

static void check_line(size_t k, int line, const char *name)
{
    ck_assert_uint_lt(k, list.n);
    ck_assert_int_eq(list.one[k].line, line);
    ck_assert_str_eq(list.one[k].name, name);
}

START_TEST(names_are_lines_without_blanks_and_comments)
{
    ck_assert_int_eq(read_text("\xef\xbb\xbf# the clearest first\n b.tif \t\r\n\n./sub/a b.tif\nc"),
                     0);
    ck_assert_uint_eq(list.n, 3);
    check_line(0, 2, "b.tif");
    check_line(1, 4, "sub/a b.tif");
    check_line(2, 5, "c");
}
END_TEST

START_TEST(name_with_a_number_sign_needs_its_folder)
{
    ck_assert_int_eq(read_text("#a.tif\n./#b.tif\n"), 0);
    ck_assert_uint_eq(list.n, 1);
    check_line(0, 2, "#b.tif");
}
END_TEST

START_TEST(name_matches_any_folder_and_path_one_file)
{
    ck_assert_int_eq(read_text("a.tif\nx/a.tif\n"), 0);
    ck_assert(pb_scene_list_means(&list.one[0], "a.tif"));
    ck_assert(pb_scene_list_means(&list.one[0], "y/a.tif"));
    ck_assert(!pb_scene_list_means(&list.one[0], "y/ba.tif"));
    ck_assert(pb_scene_list_means(&list.one[1], "x/a.tif"));
    ck_assert(!pb_scene_list_means(&list.one[1], "a.tif"));
}
END_TEST

static void check_refused(const char *text, size_t bytes, int line, const char *why)
{
    ck_assert_int_ne(read_list(text, bytes), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_METADATA_INVALID);
    ck_assert_int_eq(err.line, line);
    ck_assert_msg(strstr(err.msg, why) != NULL, "%s", err.msg);
}

START_TEST(what_is_no_list_is_refused_in_words)
{
    enum { LARGE = PB_SCENE_LIST_BYTES_MAX + 1 };
    char *large = malloc(LARGE);
    memset(large, 'a', LARGE);
    check_refused("", 0, 0, "it lists no file");
    check_refused("#\n \n", 4, 0, "it lists no file");
    check_refused("a\n./\n", 5, 2, "./, which is no file");
    check_refused("a\0b", 3, 0, "it is no text");
    check_refused(large, LARGE, 0, "larger than 1 MiB");
    for (size_t i = 1; i < LARGE; i += 2)
        large[i] = '\n';
    check_refused(large, LARGE - 1, PB_SCENE_LIST_MAX + 1, "more files than a scene has");
    free(large);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scene_list");
    TCase *tests = tcase_create("scene_list");
    tcase_add_test(tests, names_are_lines_without_blanks_and_comments);
    tcase_add_test(tests, name_with_a_number_sign_needs_its_folder);
    tcase_add_test(tests, name_matches_any_folder_and_path_one_file);
    tcase_add_test(tests, what_is_no_list_is_refused_in_words);
    suite_add_tcase(suite, tests);
    int status = run_suite(suite);
    pb_scene_list_fini(&list);
    return status;
}
