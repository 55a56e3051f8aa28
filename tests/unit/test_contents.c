/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/contents.h"

#include "pipeline/io/checksum.h"

#include "store_suite.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char moved[PB_FILES_PATH_BYTES];
static struct pb_job_store *store;

static void open_store(void)
{
    struct pb_err err = {0};
    int rc = pb_job_store_open(&place, &err, moved, &store);
    ck_assert_msg(rc == 0, "%s", err.msg);
    ck_assert_str_eq(moved, "");
}

static void close_store(void)
{
    pb_job_store_close(store);
}

/* 64 times the digit; of a capital letter the other kind. */
static const char *sum(char digit)
{
    static char texts[128][PB_CHECKSUM_TEXT_BYTES];
    char *text = texts[(int)digit];
    (void)memset(text, digit, PB_CHECKSUM_TEXT_BYTES - 1);
    (void)memcpy(text, digit < 'a' ? "blake3:" : "sha256:", 7);
    return text;
}

static struct pb_content content(const char *pipeline, int64_t bytes, char digit)
{
    return (struct pb_content){pipeline, "", bytes, sum(digit)};
}

static void add(struct pb_content which, const char *job, int64_t time_ms)
{
    struct pb_content_done done = {.time_ms = time_ms};
    struct pb_err err = {0};
    (void)snprintf(done.job, sizeof done.job, "%s", job);
    (void)snprintf(done.directory, sizeof done.directory, "/products/%s", job);
    ck_assert_msg(pb_contents_add(store, &which, &done, &err) == 0, "%s", err.msg);
}

/* The first digits of what is like it; "" = nothing is. */
static const char *like(const char *pipeline, int64_t bytes, int64_t since_ms)
{
    static char digits[16];
    const struct pb_content which = {pipeline, "", bytes, NULL};
    char *sums = NULL;
    size_t n = 0;
    ck_assert_int_eq(pb_contents_like(store, &which, since_ms, NULL, &sums), 0);
    for (const char *at = sums; at != NULL && at[0] != '\0'; at = strchr(at, ' ') + 1) {
        digits[n] = strchr(at, ':')[1];
        ck_assert_int_eq(strncmp(at, sum(digits[n++]), PB_CHECKSUM_TEXT_BYTES - 1), 0);
    }
    digits[n] = '\0';
    free(sums);
    return digits;
}

START_TEST(contents_match_pipeline_size_time_newest_first)
{
    add(content("p", 10, 'a'), "1", 100);
    add(content("p", 10, 'B'), "2", 200);
    add(content("p", 11, 'c'), "3", 300);
    add(content("q", 10, 'd'), "4", 400);
    ck_assert_str_eq(like("p", 10, 0), "Ba");
    ck_assert_str_eq(like("p", 10, 100), "Ba");
    ck_assert_str_eq(like("p", 10, 101), "B");
    ck_assert_str_eq(like("p", 10, 201), "");
    ck_assert_str_eq(like("q", 10, 0), "d");
    ck_assert_str_eq(like("q", 11, 0), "");
}
END_TEST

START_TEST(one_is_found_with_who_did_it_last)
{
    struct pb_content_done done;
    const struct pb_content a = content("p", 10, 'a');
    const struct pb_content no[] = {content("q", 10, 'a'), content("p", 11, 'a'),
                                    content("p", 10, 'b')};
    add(a, "1", 100);
    add(a, "2", 50);
    ck_assert_int_eq(pb_contents_find(store, &a, NULL, &done), 1);
    ck_assert_str_eq(done.job, "2");
    ck_assert_str_eq(done.directory, "/products/2");
    ck_assert_int_eq(done.time_ms, 50);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        ck_assert_int_eq(pb_contents_find(store, &no[i], NULL, &done), 0);
}
END_TEST

START_TEST(what_is_forgotten_or_too_old_is_gone)
{
    struct pb_content_done done;
    const struct pb_content a = content("p", 10, 'a'), b = content("p", 10, 'b');
    add(a, "1", 100);
    add(b, "2", 200);
    add(content("q", 10, 'a'), "3", 300);
    ck_assert_int_eq(pb_contents_forget(store, &a, NULL), 0);
    ck_assert_int_eq(pb_contents_find(store, &a, NULL, &done), 0);
    ck_assert_str_eq(like("p", 10, 0), "b");
    ck_assert_int_eq(pb_contents_trim(store, 200, NULL), 0);
    ck_assert_int_eq(pb_contents_trim(store, 300, NULL), 1);
    ck_assert_str_eq(like("p", 10, 0), "");
    ck_assert_str_eq(like("q", 10, 0), "a");
}
END_TEST

/* Removes the additions of version 12. */
#define VERSION_11                                                                                 \
    "DROP TRIGGER jobs_of_archive; DROP INDEX jobs_by_archive; DROP INDEX jobs_open_scenes;"       \
    "DROP INDEX jobs_finished; CREATE INDEX jobs_finished ON jobs (seq) WHERE status > 1;"         \
    "DROP VIEW last_event; ALTER TABLE jobs DROP COLUMN bytes;"                                    \
    "DROP TABLE gaps; ALTER TABLE jobs DROP COLUMN needs_gpu;"                                     \
    "ALTER TABLE jobs DROP COLUMN error_memory; ALTER TABLE jobs DROP COLUMN needs;"               \
    "ALTER TABLE jobs DROP COLUMN shunned;"                                                        \
    "ALTER TABLE jobs DROP COLUMN is_long; ALTER TABLE jobs DROP COLUMN node;"                     \
    "DROP INDEX jobs_running; ALTER TABLE jobs DROP COLUMN session;"                               \
    "ALTER TABLE jobs DROP COLUMN epoch; ALTER TABLE jobs DROP COLUMN archive;"                    \
    "ALTER TABLE jobs ADD COLUMN delivered TEXT; "                                                 \
    "ALTER TABLE jobs ADD COLUMN has_checksum INTEGER NOT NULL DEFAULT 0; "                        \
    "DROP TRIGGER jobs_part; ALTER TABLE jobs DROP COLUMN manifest; DROP TABLE set_windows; "      \
    "ALTER TABLE jobs DROP COLUMN delivered_ms; "                                                  \
    "ALTER TABLE jobs DROP COLUMN inbox; DROP "                                                    \
    "TABLE set_parts; DROP INDEX jobs_by_set; DROP INDEX jobs_again; ALTER TABLE jobs DROP "       \
    "COLUMN again; ALTER TABLE jobs DROP COLUMN bbox; ALTER TABLE jobs DROP COLUMN datetime; "     \
    "DROP INDEX jobs_of_sets;"                                                                     \
    "ALTER TABLE jobs DROP COLUMN set_id; ALTER TABLE jobs DROP COLUMN replaces;"

/* Opens the store after that was done to the closed one. */
static void open_again_after(const char *sql)
{
    char path[PB_FILES_PATH_BYTES];
    sqlite3 *db = NULL;
    pb_job_store_close(store);
    store = NULL;
    ck_assert_int_eq(pb_files_join(path, directory, "jobs.db"), 0);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    open_store();
}

START_TEST(version_9_store_gets_the_table_and_keeps_its_jobs)
{
    static const char back[] =
        VERSION_11 "DROP TABLE contents; ALTER TABLE jobs DROP COLUMN anyway;"
                   "PRAGMA user_version = 9;";
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, "20261121-082850-aaaa");
    job.anyway = true;
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, "aaaa", NULL, &job), 0);
    ck_assert(job.anyway);
    pb_job_fini(&job);
    open_again_after(back);
    ck_assert_int_eq(pb_job_store_find(store, "aaaa", NULL, &job), 0);
    ck_assert(!job.anyway);
    pb_job_fini(&job);
    add(content("p", 10, 'a'), "1", 100);
    ck_assert_str_eq(like("p", 10, 0), "a");
}
END_TEST

START_TEST(checksums_of_version_10_are_of_sha256)
{
    struct pb_content_done done;
    const struct pb_content a = content("p", 10, 'a');
    add(a, "1", 100);
    open_again_after(VERSION_11 "ALTER TABLE contents RENAME COLUMN checksum TO sha256;"
                                "UPDATE contents SET sha256 = substr(sha256, 8);"
                                "PRAGMA user_version = 10;");
    ck_assert_int_eq(pb_contents_find(store, &a, NULL, &done), 1);
    ck_assert_str_eq(done.job, "1");
    ck_assert_str_eq(like("p", 10, 0), "a");
}
END_TEST

START_TEST(test_scenes_of_an_archive_differ)
{
    const struct pb_content a = {"p", "A", 10, sum('a')}, b = {"p", "B", 10, sum('a')};
    struct pb_content_done done;
    add(a, "1", 100);
    ck_assert_int_eq(pb_contents_find(store, &b, NULL, &done), 0);
    ck_assert_str_eq(like("p", 10, 0), "");
    add(b, "2", 100);
    ck_assert_int_eq(pb_contents_find(store, &a, NULL, &done), 1);
    ck_assert_str_eq(done.job, "1");
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_scenes_of_an_archive_differ);
    tcase_add_test(tests, contents_match_pipeline_size_time_newest_first);
    tcase_add_test(tests, one_is_found_with_who_did_it_last);
    tcase_add_test(tests, what_is_forgotten_or_too_old_is_gone);
}

static void add_tests_of_file(TCase *tests)
{
    tcase_add_test(tests, version_9_store_gets_the_table_and_keeps_its_jobs);
    tcase_add_test(tests, checksums_of_version_10_are_of_sha256);
}

int main(void)
{
    return run_over_stores("contents", open_store, close_store, add_tests, add_tests_of_file);
}
