/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_STORE_SUITE_H
#define PB_TEST_STORE_SUITE_H
/* Runs the same tests over each kind of job store. Each test has an empty store at `place`, in its
 * scratch directory or in a database of its own of the scratch server, and the directory. */
#include "service/base/files.h"
#include "service/jobs/job_store.h"

#include "postgres_fixture.h"
#include "run_suite.h"

#include <sqlite3.h>

static char directory[64];
static char conninfo[POSTGRES_CONNINFO_BYTES];
static struct pb_store_place place;

static inline void place_in_directory(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/pb-store-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    place = (struct pb_store_place){.directory = directory};
}

static inline void remove_directory(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* Changes rows of the store past its functions. */
static inline void change_rows(const char *texts)
{
    char path[PB_FILES_PATH_BYTES], name[32];
    sqlite3 *db = NULL;
    if (place.postgresql != NULL) {
        (void)snprintf(name, sizeof name, "test_%d", (int)getpid());
        postgres_run(name, texts);
        return;
    }
    ck_assert_int_eq(pb_files_join(path, directory, "jobs.db"), 0);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, texts, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* Makes the closed store as new. */
static inline void remove_store(void)
{
    char command[128];
    if (place.postgresql != NULL) {
        change_rows("DROP SCHEMA pushbroom CASCADE");
        return;
    }
    (void)snprintf(command, sizeof command, "rm %s/jobs.db*", directory);
    ck_assert_int_eq(system(command), 0);
}

/* Makes a database for the test, from one that has the tables already. */
static inline void place_in_database(void)
{
    char name[32], texts[96];
    place_in_directory();
    (void)snprintf(name, sizeof name, "test_%d", (int)getpid());
    (void)snprintf(texts, sizeof texts, "CREATE DATABASE %s TEMPLATE empty", name);
    postgres_run("postgres", texts);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=pushbroom dbname=%s",
                   postgres_directory, name);
    place = (struct pb_store_place){.postgresql = conninfo, .node = "test", .is_shared = true};
}

static inline void remove_database(void)
{
    char texts[64];
    remove_directory();
    (void)snprintf(texts, sizeof texts, "DROP DATABASE test_%d WITH (FORCE)", (int)getpid());
    postgres_run("postgres", texts);
}

/* Starts the server and makes the database that the others are copies of. */
static inline bool start_server(void)
{
    struct pb_err err = {0};
    char moved[4096];
    struct pb_job_store *store = NULL;
    if (!postgres_start())
        return false;
    if (postgres_try("postgres", "CREATE DATABASE empty", &err) != 0)
        return postgres_fail(err.msg);
    (void)snprintf(conninfo, sizeof conninfo, "host=%s user=pushbroom dbname=empty",
                   postgres_directory);
    const struct pb_store_place empty = {.postgresql = conninfo, .node = "test"};
    if (pb_job_store_open(&empty, &err, moved, &store) != 0)
        return postgres_fail(err.msg);
    pb_job_store_close(store);
    return true;
}

/* Runs a suite over PostgreSQL only, with a fixture of the program after `place` is set. Returns
 * the exit status of main. */
static inline int run_over_database(const char *name, void (*setup)(void), void (*teardown)(void),
                                    void (*add)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create("postgresql");
    tcase_add_checked_fixture(tests, place_in_database, remove_database);
    tcase_add_checked_fixture(tests, setup, teardown);
    add(tests);
    suite_add_tcase(suite, tests);
    if (!start_server())
        return 77; /* skipped */
    return postgres_stop(run_suite(suite));
}

/* Runs a suite: the tests that `add` adds, over each kind of store, with a fixture of the program
 * after `place` is set; add_of_file adds tests for SQLite only (NULL: none). Returns the exit
 * status of main. */
static inline int run_over_stores(const char *name, void (*setup)(void), void (*teardown)(void),
                                  void (*add)(TCase *tests), void (*add_of_file)(TCase *tests))
{
    Suite *suite = suite_create(name);
    TCase *file = tcase_create("sqlite"), *database = tcase_create("postgresql");
    tcase_add_checked_fixture(file, place_in_directory, remove_directory);
    tcase_add_checked_fixture(database, place_in_database, remove_database);
    tcase_add_checked_fixture(file, setup, teardown);
    tcase_add_checked_fixture(database, setup, teardown);
    add(file);
    if (add_of_file != NULL)
        add_of_file(file);
    add(database);
    suite_add_tcase(suite, file);
    if (start_server())
        suite_add_tcase(suite, database);
    return postgres_stop(run_suite(suite));
}
#endif
