/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/pages.h"

#include "run_suite.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static const size_t sizes[] = {1, 5000, 64 << 10, MIB, MIB + 1, 2 * MIB, 5 * MIB};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static bool is_filled(const unsigned char *memory, size_t bytes, unsigned char value)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value)
            return false;
    return true;
}

static bool is_mapped(void *memory)
{
    unsigned char core;
    return mincore(memory, 1, &core) == 0;
}

START_TEST(buffers_are_zeroed_aligned_and_apart)
{
    for (int round = 0; round < 3; round++) {
        unsigned char *memory[SIZES];
        for (int i = 0; i < SIZES; i++) {
            memory[i] = pb_pages_alloc(sizes[i]);
            ck_assert_ptr_nonnull(memory[i]);
            ck_assert_uint_eq((uintptr_t)memory[i] % 4096, 0);
            ck_assert(is_filled(memory[i], sizes[i], 0));
            memset(memory[i], i + 1, sizes[i]);
        }
        for (int i = 0; i < SIZES; i++)
            ck_assert(is_filled(memory[i], sizes[i], (unsigned char)(i + 1)));
        for (int i = 0; i < SIZES; i++)
            pb_pages_free(memory[(i * 3) % SIZES], sizes[(i * 3) % SIZES]);
    }
}
END_TEST

START_TEST(chunk_is_unmapped_with_its_last_buffer)
{
    unsigned char *a = pb_pages_alloc(512 << 10), *b = pb_pages_alloc(512 << 10);
    ck_assert(a != NULL && b != NULL);
    memset(a, 1, 512 << 10);
    memset(b, 2, 512 << 10);
    pb_pages_free(a, 512 << 10);
    ck_assert(is_mapped(b) && is_filled(b, 512 << 10, 2));
    pb_pages_free(b, 512 << 10);
    ck_assert(!is_mapped(b));
}
END_TEST

START_TEST(fork_finds_zeros)
{
    unsigned char *memory = pb_pages_alloc(MIB);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 7, MIB);
    pid_t pid = fork();
    if (pid == 0)
        _exit(is_filled(memory, MIB, 0) ? 0 : 1);
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert(is_filled(memory, MIB, 7));
    pb_pages_free(memory, MIB);
}
END_TEST

START_TEST(too_many_bytes_are_an_error)
{
    errno = 0;
    ck_assert_ptr_null(pb_pages_alloc(SIZE_MAX));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_ptr_null(pb_pages_alloc(SIZE_MAX / 2));
    ck_assert_int_eq(errno, ENOMEM);
    pb_pages_free(NULL, MIB);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pages");
    TCase *all = tcase_create("all");
    tcase_add_test(all, buffers_are_zeroed_aligned_and_apart);
    tcase_add_test(all, chunk_is_unmapped_with_its_last_buffer);
    tcase_add_test(all, fork_finds_zeros);
    tcase_add_test(all, too_many_bytes_are_an_error);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
