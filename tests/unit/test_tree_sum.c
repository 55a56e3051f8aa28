/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * BLAKE3 of granules in any order against that of the whole file from its first byte to its last.
 */
#include "pipeline/io/tree_sum.h"

#include "run_suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { G = PB_TREE_GRANULE, MOST = 9 * G + 1 };

static uint8_t data[MOST];

static void fill(void)
{
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof data; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint8_t)(x >> 24);
    }
}

static void expected(size_t bytes, char out[PB_CHECKSUM_TEXT_BYTES])
{
    struct pb_sum *sum = pb_sum_create(PB_CHECKSUM_BLAKE3);
    ck_assert_ptr_nonnull(sum);
    pb_sum_add(sum, data, bytes);
    ck_assert_int_eq(pb_sum_text(sum, out), 0);
    pb_sum_destroy(sum);
}

static void compare(size_t bytes)
{
    char wanted[PB_CHECKSUM_TEXT_BYTES], text[PB_CHECKSUM_TEXT_BYTES];
    struct pb_tree_sum *tree = pb_tree_sum_create(bytes);
    ck_assert_ptr_nonnull(tree);
    const uint64_t n = pb_tree_sum_granules(tree);
    for (uint64_t i = 0; i < n; i++) { /* the last one first, then every second */
        const uint64_t g = (n - 1 + 2 * i) % n, at = n % 2 ? g : n - 1 - i;
        ck_assert(!pb_tree_sum_has(tree, at));
        pb_tree_sum_add(tree, at, data + at * G);
        ck_assert(pb_tree_sum_has(tree, at));
    }
    pb_tree_sum_text(tree, text);
    expected(bytes, wanted);
    ck_assert_msg(strcmp(text, wanted) == 0, "%zu bytes: %s, not %s", bytes, text, wanted);
    pb_tree_sum_destroy(tree);
}

START_TEST(granules_in_any_order_give_the_sum)
{
    static const size_t ends[] = {0,    1,    63,   64,    65,    1023,     1024,  1025,
                                  2048, 2049, 3072, 31744, G / 2, G - 1024, G - 1, G};
    fill();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (size_t before = 0; before <= 8; before++)
            compare(before * G + ends[i]);
    compare(MOST);
}
END_TEST

struct writer {
    struct pb_tree_sum *tree;
    size_t first;
};

enum { PIECE = 1000, WRITERS = 4 };

/* Counts every WRITERSth piece and hashes the granules that it completes. */
static void *count_pieces(void *arg)
{
    const struct writer *w = arg;
    for (size_t at = w->first * PIECE; at < MOST; at += WRITERS * PIECE)
        for (size_t from = at; from < at + PIECE && from < MOST;) {
            const uint64_t g = from / G;
            size_t end = at + PIECE < MOST ? at + PIECE : MOST;
            end = end < (g + 1) * G ? end : (size_t)(g + 1) * G;
            if (pb_tree_sum_count(w->tree, g, end - from))
                pb_tree_sum_add(w->tree, g, data + g * G);
            from = end;
        }
    return NULL;
}

START_TEST(one_thread_completes_each_granule)
{
    char wanted[PB_CHECKSUM_TEXT_BYTES], text[PB_CHECKSUM_TEXT_BYTES];
    struct pb_tree_sum *tree = pb_tree_sum_create(MOST);
    struct writer writer[WRITERS];
    pthread_t thread[WRITERS];
    fill();
    for (size_t i = 0; i < WRITERS; i++) {
        writer[i] = (struct writer){tree, i};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, count_pieces, &writer[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
    for (uint64_t g = 0; g < pb_tree_sum_granules(tree); g++)
        ck_assert(pb_tree_sum_has(tree, g));
    pb_tree_sum_text(tree, text);
    expected(MOST, wanted);
    ck_assert_str_eq(text, wanted);
    pb_tree_sum_destroy(tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tree_sum");
    TCase *tests = tcase_create("tree_sum");
    tcase_add_test(tests, granules_in_any_order_give_the_sum);
    tcase_add_test(tests, one_thread_completes_each_granule);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
