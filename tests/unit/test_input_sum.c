/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/input_sum.h"
#include "pipeline/io/sha256.h"

#include "run_suite.h"

#include <check.h>
#include <dirent.h>
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
static char wanted[FILES][65];
static struct pb_raster_file file[FILES];

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void hex_of(const char *data, size_t bytes, char out[65])
{
    struct pb_sha256 *sum = pb_sha256_create();
    pb_sha256_add(sum, data, bytes);
    must(pb_sha256_hex(sum, out) == 0);
    pb_sha256_destroy(sum);
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
        hex_of(data, bytes, wanted[i]);
        must(pb_raster_file_open(&file[i], path[i], &err) == 0);
    }
    free(data);
}

static struct pb_input_sum *create(size_t n, bool whole)
{
    struct pb_input_part part[FILES];
    struct pb_input_sum *sum;
    struct pb_err err = {0};
    for (size_t i = 0; i < n; i++)
        part[i] = (struct pb_input_part){.file = &file[i], .name = whole ? NULL : names[i]};
    ck_assert_int_eq(pb_input_sum_create(part, n, &err, &sum), 0);
    return sum;
}

/* Of all files: of the lines that sha256sum(1) prints. */
static void check_all(struct pb_input_sum *sum)
{
    char lines[FILES * 80] = "", hex[65], all[65];
    struct pb_err err = {0};
    for (int i = 0; i < FILES; i++)
        (void)snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s  %s\n", wanted[i],
                       names[i]);
    hex_of(lines, strlen(lines), all);
    ck_assert_int_eq(pb_input_sum_get(sum, &err, hex), 0);
    ck_assert_str_eq(hex, all);
    ck_assert_int_eq(pb_input_sum_get(sum, &err, hex), 0); /* once more */
    ck_assert_str_eq(hex, all);
}

/* The scheduling of the thread that computes it; -1: there is none. */
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
        ck_assert_int_eq(pb_input_sum_create(&part, 1, &err, &sum), 0);
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

/* The sum is that of the files, wherever the first thread leaves the rest to the second. */
START_TEST(is_the_same_whenever_it_is_waited_for)
{
    for (long us = 0; us < 40000; us = us * 2 + 100) {
        struct pb_err err = {0};
        struct pb_input_sum *sum = create(FILES, false);
        const struct timespec pause = {0, us * 1000};
        struct pb_input_files files;
        pb_input_sum_leave(sum, 50 << 20); /* of 54 MiB */
        ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
        (void)nanosleep(&pause, NULL);
        check_all(sum);
        pb_input_sum_files(sum, &files);
        ck_assert_uint_eq(files.n, FILES);
        for (int i = 0; i < FILES; i++) {
            ck_assert_str_eq(files.file[i].sha256, wanted[i]);
            ck_assert_uint_eq(files.file[i].bytes, file[i].bytes);
        }
        pb_input_sum_destroy(sum);
    }
}
END_TEST

START_TEST(of_one_file_it_is_the_files_own)
{
    struct pb_err err = {0};
    char hex[65];
    struct pb_input_sum *sum = create(1, true);
    ck_assert_int_eq(pb_input_sum_get(sum, &err, hex), 0); /* without a start */
    ck_assert_str_eq(hex, wanted[0]);
    ck_assert(pb_input_sum_is_of_one(sum));
    pb_input_sum_destroy(sum);
}
END_TEST

START_TEST(ends_where_nobody_wants_it)
{
    struct pb_err err = {0};
    struct pb_input_sum *sum = create(FILES, false);
    ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
    pb_input_sum_destroy(sum);
    pb_input_sum_destroy(create(FILES, false));
    pb_input_sum_destroy(NULL);
}
END_TEST

START_TEST(a_file_that_was_changed_meanwhile_fails_it)
{
    struct pb_err err = {0};
    char hex[65];
    struct pb_input_sum *sum = create(FILES, false);
    ck_assert_int_eq(pb_input_sum_start(sum, &err), 0);
    ck_assert_int_eq(truncate(path[2], 5), 0);
    ck_assert_int_lt(pb_input_sum_get(sum, &err, hex), 0);
    ck_assert_int_eq(err.code, PB_E_INPUT_CHANGED);
    pb_input_sum_destroy(sum);
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
    tcase_add_test(tc, of_one_file_it_is_the_files_own);
    tcase_add_test(tc, ends_where_nobody_wants_it);
    tcase_add_test(tc, a_file_that_was_changed_meanwhile_fails_it);
    suite_add_tcase(suite, tc);
    int status = run_suite(suite);
    for (int i = 0; i < FILES; i++) {
        pb_raster_file_close(&file[i]);
        (void)unlink(path[i]);
    }
    (void)rmdir(directory);
    return status;
}
