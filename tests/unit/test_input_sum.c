/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include "pipeline/raster/input_pass.h"
#include "pipeline/raster/input_sum.h"

#include "run_suite.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 3, BYTES = 24 << 20 };

static char directory[] = "/tmp/pb-sum-XXXXXX";
static char path[FILES][64];
static const char *const names[FILES] = {"B02.tif", "B03.tif", "B04.tif"};
static char wanted[PB_CHECKSUM_KINDS][FILES][PB_CHECKSUM_TEXT_BYTES];
static struct pb_raster_file file[FILES];

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void sum_of(const char *data, size_t bytes, enum pb_checksum kind,
                   char out[PB_CHECKSUM_TEXT_BYTES])
{
    struct pb_sum *sum = pb_sum_create(kind);
    pb_sum_add(sum, data, bytes);
    must(pb_sum_text(sum, out) == 0);
    pb_sum_destroy(sum);
}

static void make_files(void)
{
    char *data = malloc(BYTES);
    struct pb_err err = {0};
    must(data != NULL);
    for (int i = 0; i < FILES; i++) {
        size_t bytes = BYTES / 4 * (size_t)(i + 2) - (size_t)(1000 * i + 1);
        for (size_t b = 0; b < bytes; b++)
            data[b] = (char)(b * (size_t)(i + 1) >> 7);
        (void)snprintf(path[i], sizeof path[i], "%s/%s", directory, names[i]);
        FILE *out = fopen(path[i], "wb");
        must(out != NULL && fwrite(data, 1, bytes, out) == bytes && fclose(out) == 0);
        for (int kind = 0; kind < PB_CHECKSUM_KINDS; kind++)
            sum_of(data, bytes, (enum pb_checksum)kind, wanted[kind][i]);
        must(pb_raster_file_open(&file[i], path[i], &err) == 0);
    }
    free(data);
}

static struct pb_input_sum *create(size_t n, bool whole, enum pb_checksum kind)
{
    struct pb_input_part part[FILES];
    struct pb_input_sum *sum;
    struct pb_err err = {0};
    for (size_t i = 0; i < n; i++)
        part[i] = (struct pb_input_part){.file = &file[i], .name = whole ? NULL : names[i]};
    ck_assert_int_eq(pb_input_sum_create(part, n, kind, &err, &sum), 0);
    return sum;
}

/* Compares the sum of all files with the lines that sha256sum(1) and b3sum(1) print. */
static void check_all(struct pb_input_sum *sum, enum pb_checksum kind)
{
    char lines[FILES * 80] = "", text[PB_CHECKSUM_TEXT_BYTES], all[PB_CHECKSUM_TEXT_BYTES];
    struct pb_err err = {0};
    for (int i = 0; i < FILES; i++)
        (void)snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s  %s\n",
                       strchr(wanted[kind][i], ':') + 1, names[i]);
    sum_of(lines, strlen(lines), kind, all);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(pb_input_sum_get(sum, kind, &err, text), 0);
        ck_assert_str_eq(text, all);
    }
}

/* Returns the scheduling of the hashing thread; -1 if it does not exist. */
static int policy(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int found = -1;
    for (const struct dirent *e; (e = readdir(tasks)) != NULL;) {
        char name[300], comm[32] = "";
        (void)snprintf(name, sizeof name, "/proc/self/task/%s/comm", e->d_name);
        FILE *in = fopen(name, "r");
        if (in == NULL || fgets(comm, sizeof comm, in) == NULL)
            comm[0] = '\0';
        if (in != NULL)
            fclose(in);
        if (strcmp(comm, "pb-sum\n") == 0)
            found = sched_getscheduler(atoi(e->d_name));
    }
    closedir(tasks);
    return found;
}

/* A sparse file that takes seconds to read. */
START_TEST(what_may_be_left_waits_for_idle_cores)
{
    char name[64];
    struct pb_raster_file long_file;
    struct pb_err err = {0};
    (void)snprintf(name, sizeof name, "%s/long", directory);
    FILE *out = fopen(name, "wb");
    ck_assert(out != NULL && ftruncate(fileno(out), (off_t)1 << 36) == 0);
    fclose(out);
    ck_assert_int_eq(pb_raster_file_open(&long_file, name, &err), 0);
    for (int idle = 0; idle < 2; idle++) {
        const struct pb_input_part part = {.file = &long_file};
        const struct timespec pause = {0, 1000000};
        struct pb_input_sum *sum;
        ck_assert_int_eq(pb_input_sum_create(&part, 1, PB_CHECKSUM_SHA2_256, &err, &sum), 0);
        ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
        while (policy() != SCHED_OTHER)
            (void)nanosleep(&pause, NULL);
        pb_input_sum_leave(sum, idle ? UINT64_MAX : 1000);
        while (idle && policy() != SCHED_IDLE)
            (void)nanosleep(&pause, NULL);
        ck_assert_int_eq(policy(), idle ? SCHED_IDLE : SCHED_OTHER);
        pb_input_sum_destroy(sum);
    }
    pb_raster_file_close(&long_file);
    ck_assert_int_eq(unlink(name), 0);
}
END_TEST

/* Checks sizes and checksums of the single files. */
static void check_files(const struct pb_input_sum *sum, enum pb_checksum kind)
{
    ck_assert_uint_eq(pb_input_sum_count(sum), FILES);
    for (size_t i = 0; i < FILES; i++) {
        struct pb_input_sum_file one;
        pb_input_sum_file(sum, i, kind, &one);
        ck_assert_str_eq(one.checksum, wanted[kind][i]);
        ck_assert_uint_eq(one.bytes, file[i].bytes);
    }
}

/* The sum is that of the files, wherever the first thread leaves the rest to the second. */
START_TEST(is_the_same_whenever_it_is_waited_for)
{
    for (long us = 0; us < 40000; us = us * 2 + 100) {
        struct pb_err err = {0};
        struct pb_input_sum *sum = create(FILES, false, PB_CHECKSUM_SHA2_256);
        const struct timespec pause = {0, us * 1000};
        pb_input_sum_leave(sum, 50 << 20); /* a file of 54 MiB */
        ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
        (void)nanosleep(&pause, NULL);
        check_all(sum, PB_CHECKSUM_SHA2_256);
        check_files(sum, PB_CHECKSUM_SHA2_256);
        pb_input_sum_destroy(sum);
    }
}
END_TEST

static enum pb_input_pass_way any_way(void *user)
{
    uint32_t *state = user;
    *state = *state * 1664525 + 1013904223;
    return (enum pb_input_pass_way)(*state >> 24) % 3;
}

/* The sums do not depend on the thread that hashes a chunk, nor on the number of times that the
 * rest is left. */
START_TEST(the_way_of_a_pass_changes_nothing)
{
    struct pb_input_part part[FILES];
    for (size_t i = 0; i < FILES; i++)
        part[i] = (struct pb_input_part){.file = &file[i], .name = names[i]};
    for (uint32_t seed = 1; seed < 6; seed++) {
        static const bool both[PB_CHECKSUM_KINDS] = {true, true};
        struct pb_input_pass pass = {.n = 0};
        struct pb_err err = {0};
        uint32_t state = seed;
        int rc, left = 0;
        ck_assert_int_eq(pb_input_pass_init(&pass, part, FILES, &err), 0);
        pb_input_pass_begin(&pass, both);
        while ((rc = pb_input_pass_run(&pass, any_way, &state)) == 1)
            left++;
        ck_assert_int_eq(rc, 0);
        ck_assert_int_gt(left, 10);
        for (int k = 0; k < PB_CHECKSUM_KINDS; k++)
            for (int i = 0; i < FILES; i++)
                ck_assert_str_eq(pass.file[i].checksum[k], wanted[k][i]);
        pb_input_pass_fini(&pass);
    }
}
END_TEST

START_TEST(of_one_file_it_is_the_files_own)
{
    for (int kind = 0; kind < PB_CHECKSUM_KINDS; kind++) {
        struct pb_err err = {0};
        char text[PB_CHECKSUM_TEXT_BYTES];
        struct pb_input_sum *sum = create(1, true, (enum pb_checksum)kind);
        ck_assert_int_eq(pb_input_sum_get(sum, (enum pb_checksum)kind, &err, text), 0);
        ck_assert_str_eq(text, wanted[kind][0]);
        ck_assert_uint_eq(pb_input_sum_count(sum), 1);
        pb_input_sum_destroy(sum);
    }
}
END_TEST

/* Bytes that this process has read so far. */
static uint64_t bytes_read(void)
{
    unsigned long long n = 0;
    FILE *in = fopen("/proc/self/io", "r");
    ck_assert(in != NULL && fscanf(in, "rchar: %llu", &n) == 1);
    fclose(in);
    return n;
}

/* The files are read once for both kinds when both are wanted before; else once for each. */
START_TEST(another_kind_is_computed_when_it_is_asked_for)
{
    uint64_t all = 0;
    for (int i = 0; i < FILES; i++)
        all += file[i].bytes;
    for (int before = 0; before < 2; before++) {
        struct pb_err err = {0};
        struct pb_input_sum *sum = create(FILES, false, PB_CHECKSUM_BLAKE3);
        const uint64_t start = bytes_read();
        if (before)
            pb_input_sum_want(sum, PB_CHECKSUM_SHA2_256);
        ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
        check_all(sum, PB_CHECKSUM_BLAKE3);
        check_all(sum, PB_CHECKSUM_SHA2_256);
        ck_assert_uint_eq((bytes_read() - start) / all, before ? 1 : 2);
        check_files(sum, PB_CHECKSUM_BLAKE3);
        check_files(sum, PB_CHECKSUM_SHA2_256);
        pb_input_sum_destroy(sum);
    }
}
END_TEST

/* Both are of the first pass when the other one is requested before the start of the thread. */
START_TEST(the_other_kind_brings_the_inputs_own_along)
{
    struct pb_input_sum *sum = create(FILES, false, PB_CHECKSUM_BLAKE3);
    uint64_t all = 0, start = bytes_read();
    for (int i = 0; i < FILES; i++)
        all += file[i].bytes;
    check_all(sum, PB_CHECKSUM_SHA2_256);
    check_all(sum, PB_CHECKSUM_BLAKE3);
    ck_assert_uint_eq((bytes_read() - start) / all, 1);
    pb_input_sum_destroy(sum);
}
END_TEST

/* A file with a known checksum is read for another kind only. */
START_TEST(test_known_checksum_is_not_computed)
{
    static const char known[] =
        "blake3:5555555555555555555555555555555555555555555555555555555555555555";
    for (int whole = 0; whole < 2; whole++) {
        const size_t n = whole ? 1 : FILES;
        struct pb_input_part part[FILES];
        struct pb_input_sum_file one;
        struct pb_input_sum *sum;
        struct pb_err err = {0};
        char text[PB_CHECKSUM_TEXT_BYTES];
        uint64_t all = 0, start = bytes_read();
        for (size_t i = 0; i < n; i++) {
            part[i] = (struct pb_input_part){.file = &file[i],
                                             .name = whole ? NULL : names[i],
                                             .checksum = i == 0 ? known : NULL};
            all += file[i].bytes;
        }
        ck_assert_int_eq(pb_input_sum_create(part, n, PB_CHECKSUM_BLAKE3, &err, &sum), 0);
        ck_assert(pb_input_sum_at_once(sum) == whole); /* nothing is to be read */
        ck_assert_int_eq(pb_input_sum_get(sum, PB_CHECKSUM_BLAKE3, &err, text), 0);
        ck_assert(!whole || strcmp(text, known) == 0);
        ck_assert_uint_lt(bytes_read() - start, all - file[0].bytes + 100000);
        pb_input_sum_file(sum, 0, PB_CHECKSUM_BLAKE3, &one);
        ck_assert_str_eq(one.checksum, known);
        ck_assert_uint_eq(one.bytes, file[0].bytes);
        ck_assert_int_eq(pb_input_sum_get(sum, PB_CHECKSUM_SHA2_256, &err, text), 0);
        ck_assert(!whole || strcmp(text, wanted[PB_CHECKSUM_SHA2_256][0]) == 0);
        for (size_t i = 0; i < n; i++) {
            pb_input_sum_file(sum, i, PB_CHECKSUM_SHA2_256, &one);
            ck_assert_str_eq(one.checksum, wanted[PB_CHECKSUM_SHA2_256][i]);
        }
        pb_input_sum_destroy(sum);
    }
}
END_TEST

START_TEST(ends_where_nobody_wants_it)
{
    struct pb_err err = {0};
    struct pb_input_sum *sum = create(FILES, false, PB_CHECKSUM_SHA2_256);
    ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
    pb_input_sum_destroy(sum);
    pb_input_sum_destroy(create(FILES, false, PB_CHECKSUM_SHA2_256));
    pb_input_sum_destroy(NULL);
}
END_TEST

START_TEST(a_file_that_was_changed_meanwhile_fails_it)
{
    struct pb_err err = {0};
    char text[PB_CHECKSUM_TEXT_BYTES];
    struct pb_input_sum *sum = create(FILES, false, PB_CHECKSUM_SHA2_256);
    ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
    ck_assert_int_eq(truncate(path[2], 5), 0);
    ck_assert_int_lt(pb_input_sum_get(sum, PB_CHECKSUM_SHA2_256, &err, text), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    pb_input_sum_destroy(sum);
}
END_TEST

/* Makes a file of those bytes, which are in the page cache. */
static struct pb_input_sum *create_of_file(const char *name, size_t bytes, char out_wanted[])
{
    struct pb_raster_file own;
    struct pb_input_sum *sum;
    struct pb_err err = {0};
    char *data = malloc(bytes);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (char)(i * 7 >> 3);
    FILE *out = fopen(name, "wb");
    ck_assert(out != NULL && fwrite(data, 1, bytes, out) == bytes && fclose(out) == 0);
    sum_of(data, bytes, PB_CHECKSUM_BLAKE3, out_wanted);
    free(data);
    ck_assert_int_eq(pb_raster_file_open(&own, name, &err), 0);
    const struct pb_input_part part = {.file = &own};
    ck_assert_int_eq(pb_input_sum_create(&part, 1, PB_CHECKSUM_BLAKE3, &err, &sum), 0);
    pb_raster_file_close(&own);
    return sum;
}

START_TEST(small_inputs_are_summed_at_once)
{
    static const size_t bytes[] = {0, 1, 300000, 4 << 20, (4 << 20) + 1};
    char name[64], text[PB_CHECKSUM_TEXT_BYTES], right[PB_CHECKSUM_TEXT_BYTES];
    struct pb_err err = {0};
    (void)snprintf(name, sizeof name, "%s/small", directory);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        for (int start = 0; start < 2; start++) {
            struct pb_input_sum *sum = create_of_file(name, bytes[i], right);
            if (bytes[i] <= 4 << 20)
                (void)pb_input_sum_at_once(sum); /* false if the system has dropped its cache */
            else
                ck_assert(!pb_input_sum_at_once(sum));
            if (start)
                ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
            ck_assert_int_eq(pb_input_sum_get(sum, PB_CHECKSUM_BLAKE3, &err, text), 0);
            ck_assert_str_eq(text, right);
            ck_assert(pb_input_sum_at_once(sum));
            ck_assert_int_eq(pb_input_sum_unchanged(sum, &err), 0);
            ck_assert_int_eq(truncate(name, 7), 0);
            ck_assert_int_lt(pb_input_sum_unchanged(sum, &err), 0);
            pb_input_sum_destroy(sum);
        }
    ck_assert_int_eq(unlink(name), 0);
}
END_TEST

START_TEST(bytes_outside_the_cache_are_read_by_the_thread)
{
    char name[64], text[PB_CHECKSUM_TEXT_BYTES], right[PB_CHECKSUM_TEXT_BYTES];
    struct pb_err err = {0};
    (void)snprintf(name, sizeof name, "%s/cold", directory);
    struct pb_input_sum *sum = create_of_file(name, 3 << 20, right);
    int fd = open(name, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fsync(fd), 0);
    (void)posix_fadvise(fd, 1 << 20, 1 << 20, POSIX_FADV_DONTNEED); /* the middle, if it can */
    (void)close(fd);
    (void)pb_input_sum_at_once(sum);
    ck_assert_int_eq(pb_input_sum_get(sum, PB_CHECKSUM_BLAKE3, &err, text), 0);
    ck_assert_str_eq(text, right);
    pb_input_sum_destroy(sum);
    ck_assert_int_eq(unlink(name), 0);
}
END_TEST

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 77;
    make_files();
    Suite *suite = suite_create("input_sum");
    TCase *tc = tcase_create("input_sum");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_may_be_left_waits_for_idle_cores);
    tcase_add_test(tc, is_the_same_whenever_it_is_waited_for);
    tcase_add_test(tc, the_way_of_a_pass_changes_nothing);
    tcase_add_test(tc, of_one_file_it_is_the_files_own);
    tcase_add_test(tc, another_kind_is_computed_when_it_is_asked_for);
    tcase_add_test(tc, the_other_kind_brings_the_inputs_own_along);
    tcase_add_test(tc, ends_where_nobody_wants_it);
    tcase_add_test(tc, test_known_checksum_is_not_computed);
    tcase_add_test(tc, a_file_that_was_changed_meanwhile_fails_it);
    tcase_add_test(tc, small_inputs_are_summed_at_once);
    tcase_add_test(tc, bytes_outside_the_cache_are_read_by_the_thread);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    for (int i = 0; i < FILES; i++) {
        pb_raster_file_close(&file[i]);
        (void)unlink(path[i]);
    }
    (void)rmdir(directory);
    return status;
}
