/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "config/yaml/yaml_tree.h"

#include "config/base/arena.h"
#include "config/yaml/report.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct pb_err_list errors;
static struct pb_arena *arena;

static void setup(void)
{
    arena = pb_arena_create();
    memset(&errors, 0, sizeof errors);
}

static void teardown(void)
{
    pb_arena_destroy(arena);
}

static int parse_bytes(const char *text, size_t bytes, const struct pb_yaml **out_root)
{
    struct pb_report report = {.list = &errors, .file = "f"};
    *out_root = NULL;
    return pb_yaml_parse(text, bytes, arena, &report, out_root);
}

static const struct pb_yaml *parse(const char *text)
{
    const struct pb_yaml *root = NULL;
    int rc = parse_bytes(text, strlen(text), &root);
    ck_assert_msg(rc == 0 && errors.n == 0, "%s: %s", text, errors.err[0].msg);
    return root;
}

static void expect_place(const struct pb_yaml *node, int line, int col)
{
    ck_assert_int_eq(node->line, line);
    ck_assert_int_eq(node->col, col);
}

START_TEST(nodes_know_their_places)
{
    const struct pb_yaml *root = parse("a: 1\nb:\n  - x\n  - {c: 'd', e: \"\xC3\xB6\", f: g}\n");
    ck_assert_int_eq(root->kind, PB_YAML_MAP);
    expect_place(root->keys[0], 1, 1);
    expect_place(root->items[0], 1, 4);
    const struct pb_yaml *key = NULL, *list = pb_yaml_find(root, "b", &key);
    expect_place(key, 2, 1);
    expect_place(list->items[0], 3, 5);
    const struct pb_yaml *map = list->items[1];
    expect_place(pb_yaml_find(map, "c", NULL), 4, 9);
    ck_assert_int_eq(pb_yaml_find(map, "c", NULL)->text_col, 10);
    ck_assert(!pb_yaml_find(map, "c", NULL)->plain);
    /* A letter of two bytes is one column. */
    expect_place(pb_yaml_find(map, "f", NULL), 4, 25);
    ck_assert_ptr_null(pb_yaml_find(map, "z", NULL));
    ck_assert_ptr_null(pb_yaml_find(list, "z", NULL));
}
END_TEST

START_TEST(block_texts_start_below_their_sign)
{
    const struct pb_yaml *root = parse("a: |\n\n    x +\n    y\nb: >-\n  z\n");
    ck_assert_str_eq(root->items[0]->text, "\nx +\ny\n");
    ck_assert_int_eq(root->items[0]->text_line, 3);
    ck_assert_int_eq(root->items[0]->text_col, 5);
    ck_assert_int_eq(root->items[1]->text_line, 6);
    ck_assert_int_eq(root->items[1]->text_col, 3);
}
END_TEST

START_TEST(a_byte_order_mark_takes_no_column)
{
    const struct pb_yaml *root = parse("\xEF\xBB\xBF"
                                       "a: |\n  b\n");
    expect_place(root->keys[0], 1, 1);
    expect_place(root->items[0], 1, 4);
    ck_assert_int_eq(root->items[0]->text_line, 2);
}
END_TEST

START_TEST(other_encodings_than_utf8_are_refused)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {{"\xFF\xFE"
                 "a\0:\0 \0"
                 "1\0",
                 10},
                {"\xFE\xFF\0a\0:\0 \0"
                 "1",
                 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pb_yaml *root = NULL;
        memset(&errors, 0, sizeof errors);
        ck_assert_int_lt(parse_bytes(rows[i].text, rows[i].bytes, &root), 0);
        ck_assert_str_eq(errors.err[0].msg, "this is not UTF-8; save the file as UTF-8 text");
        ck_assert_int_eq(errors.err[0].line, 1);
    }
}
END_TEST

START_TEST(nothing_is_told_from_empty_text)
{
    const struct pb_yaml *root = parse("a:\nb: ~\nc: null\nd: ''\ne: 'null'\nf: !!str null\n");
    for (size_t i = 0; i < 3; i++)
        ck_assert(pb_yaml_is_null(root->items[i]));
    for (size_t i = 3; i < 6; i++)
        ck_assert(!pb_yaml_is_null(root->items[i]));
    ck_assert_ptr_null(parse(""));
    ck_assert_ptr_null(parse("# a comment\n"));
}
END_TEST

START_TEST(aliases_share_their_node)
{
    const struct pb_yaml *root = parse("a: &x [1, 2]\nb: *x\nc: [*x, *x]\nd: &k key\n*k : 1\n");
    ck_assert_ptr_eq(root->items[0], root->items[1]);
    ck_assert_uint_eq(root->items[0]->nodes, 3);
    ck_assert_uint_eq(root->items[2]->nodes, 7);
    ck_assert_uint_eq(root->items[2]->height, 2);
    ck_assert_ptr_nonnull(pb_yaml_find(root, "key", NULL));
}
END_TEST

START_TEST(nesting_is_limited_through_aliases_too)
{
    char text[400] = "";
    const struct pb_yaml *root = NULL;
    for (int i = 0; i < 32; i++)
        strcat(text, "[");
    for (int i = 0; i < 32; i++)
        strcat(text, "]");
    (void)parse(text);
    ck_assert_int_eq(parse_bytes("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 33, &root), -EFBIG);
    ck_assert_int_eq(errors.err[0].col, 33);
    memset(&errors, 0, sizeof errors);
    static const char deep[] =
        "- &a [[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]\n- [[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]\n";
    ck_assert_int_eq(parse_bytes(deep, strlen(deep), &root), -EFBIG);
    ck_assert_int_eq(errors.err[0].line, 2);
}
END_TEST

START_TEST(every_duplicate_key_is_named)
{
    static const char text[] = "a: 1\nb: 2\na: 3\nc: {x: 1, x: 2, x: 3}\n'b': 4\n";
    const struct pb_yaml *root = NULL;
    ck_assert_int_eq(parse_bytes(text, strlen(text), &root), 0);
    ck_assert_ptr_nonnull(root);
    ck_assert_uint_eq(errors.n, 4);
    ck_assert_str_eq(errors.err[0].msg, "the key 'a' is here twice (first in line 1); keep one");
    ck_assert_int_eq(errors.err[3].line, 5);
}
END_TEST

enum bomb { DEEP, MANY_KEYS, ALIASES, ANCHORS, LONG_LIST, BOMBS };

static size_t add_line(char *text, enum bomb kind, int i)
{
    switch (kind) {
    case DEEP:
        return (size_t)sprintf(text, "[");
    case MANY_KEYS:
        return (size_t)sprintf(text, "k%d: 1\n", i);
    case ALIASES:
        if (i == 0)
            return (size_t)sprintf(text, "- &a0 x\n");
        return (size_t)sprintf(text, "- &a%d [*a%d,*a%d,*a%d]\n", i, i - 1, i - 1, i - 1);
    case ANCHORS:
        return (size_t)sprintf(text, "- &a%d x\n- *a0\n", i);
    default:
        return (size_t)sprintf(text, i ? ",x" : "[x");
    }
}

/* Each of these would take minutes or gigabytes if it were expanded or compared naively. */
START_TEST(bombs_end_at_once)
{
    char *text = malloc(PB_CONFIG_BYTES_MAX + 2);
    const struct pb_yaml *root = NULL;
    struct timespec start, end;
    size_t n = 0;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    for (int i = 0; n < PB_CONFIG_BYTES_MAX - 60; i++)
        n += add_line(text + n, (enum bomb)_i, i);
    ck_assert_int_eq(parse_bytes(text, n, &root), -EFBIG);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    ck_assert_int_lt(end.tv_sec - start.tv_sec, 2);
    ck_assert_int_eq(parse_bytes(text, PB_CONFIG_BYTES_MAX + 1, &root), -EFBIG);
    free(text);
}
END_TEST

/* Where each starts must not be looked for from the top of the file every time. */
START_TEST(many_block_texts_are_placed_at_once)
{
    enum { TEXTS = 24000, BLANK = PB_CONFIG_BYTES_MAX / 2 };
    char *text = malloc(PB_CONFIG_BYTES_MAX);
    clock_t start = clock();
    size_t n = BLANK;
    memset(text, '\n', BLANK);
    for (int i = 0; i < TEXTS; i++)
        n += (size_t)sprintf(text + n, "- |\n%*sx\n", i % 3 + 1, "");
    const struct pb_yaml *root = NULL;
    ck_assert_int_eq(parse_bytes(text, n, &root), 0);
    ck_assert_uint_eq(root->n, TEXTS);
    for (int i = 0; i < TEXTS; i++)
        if (root->items[i]->text_line != BLANK + 2 * i + 2 || root->items[i]->text_col != i % 3 + 2)
            ck_abort_msg("text %d is at %d:%d", i, root->items[i]->text_line,
                         root->items[i]->text_col);
    ck_assert_int_lt((clock() - start) / CLOCKS_PER_SEC, 2);
    free(text);
}
END_TEST

START_TEST(nul_and_control_characters_are_refused)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
        {"a: x\0y\n", 7},         {"a: \"\\0\"\n", 8},      {"a: \"\\x1b[2J\"\n", 13},
        {"a: \"\\u2028\"\n", 12}, {"a: \"\\x85\"\n", 10},   {"\"\\e\": 1\n", 8},
        {"a: \xEF\xBF\xBE\n", 7}, {"a: \xED\xA0\x80\n", 7}, {"a: \x7F\n", 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct pb_yaml *root = NULL;
        memset(&errors, 0, sizeof errors);
        (void)parse_bytes(rows[i].text, rows[i].bytes, &root);
        ck_assert_msg(errors.n == 1, "row %zu", i);
        ck_assert_int_eq(errors.err[0].line, 1);
        for (const char *c = errors.err[0].msg; *c; c++)
            ck_assert((unsigned char)*c >= 0x20);
    }
}
END_TEST

START_TEST(running_out_of_memory_is_minus_enomem)
{
    static const char text[] = "a: &x [1, {b: 2}]\nc: *x\n";
    const struct pb_yaml *root = NULL;
    int rc = -ENOMEM;
    for (long good = 0; good < 1000 && rc; good++) {
        pb_arena_fail_after(good);
        rc = parse_bytes(text, strlen(text), &root);
        pb_arena_fail_after(-1);
        ck_assert(rc == 0 || rc == -ENOMEM);
        ck_assert((root != NULL) == (rc == 0));
    }
    ck_assert_int_eq(rc, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("yaml_tree");
    TCase *tc = tcase_create("tree");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, nodes_know_their_places);
    tcase_add_test(tc, block_texts_start_below_their_sign);
    tcase_add_test(tc, a_byte_order_mark_takes_no_column);
    tcase_add_test(tc, other_encodings_than_utf8_are_refused);
    tcase_add_test(tc, many_block_texts_are_placed_at_once);
    tcase_add_test(tc, nothing_is_told_from_empty_text);
    tcase_add_test(tc, aliases_share_their_node);
    tcase_add_test(tc, nesting_is_limited_through_aliases_too);
    tcase_add_test(tc, every_duplicate_key_is_named);
    tcase_add_loop_test(tc, bombs_end_at_once, 0, BOMBS);
    tcase_add_test(tc, nul_and_control_characters_are_refused);
    tcase_add_test(tc, running_out_of_memory_is_minus_enomem);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
