/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: threads
 *
 * Behaviour of the job store that only PostgreSQL has: its tables, connections and numbers. */
#include "config/base/clock.h"
#include "database_fixture.h"
#include "service/jobs/journal.h"
#include "service/jobs/kept.h"
#include "service/jobs/schema_postgres.h"

#include <pthread.h>

#define TEXT_OF(number) #number
#define AS_TEXT(macro)  TEXT_OF(macro)

/* --- tables ---------------------------------------------------------------------------------- */

/* Appends "table.column type;" of each row. */
static void add_column(char *list, const char *table, const char *column, const char *type)
{
    const char *const kind = strcmp(type, "bigint") == 0 || strcmp(type, "INTEGER") == 0 ? "integer"
                             : strcmp(type, "bytea") == 0 || strcmp(type, "BLOB") == 0   ? "blob"
                                                                                         : "text";
    const size_t n = strlen(list);
    (void)snprintf(list + n, 16384 - n, "%s.%s %s;\n", table, column, kind);
}

static const char *columns_of_file(void)
{
    static char list[16384];
    char path[PB_FILES_PATH_BYTES];
    sqlite3 *file = NULL;
    sqlite3_stmt *s = NULL;
    struct pb_job_store *of_file = NULL;
    const struct pb_store_place there = {.directory = directory};
    ck_assert_int_eq(pb_job_store_open(&there, NULL, moved, &of_file), 0);
    pb_job_store_close(of_file);
    ck_assert_int_eq(pb_files_join(path, directory, "jobs.db"), 0);
    ck_assert_int_eq(sqlite3_open(path, &file), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(file,
                                        "SELECT m.name, c.name, c.type FROM sqlite_master m JOIN"
                                        " pragma_table_info(m.name) c WHERE m.type = 'table' AND"
                                        " m.name NOT LIKE 'sqlite%' ORDER BY 1, 2",
                                        -1, &s, NULL),
                     SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
        add_column(list, (const char *)sqlite3_column_text(s, 0),
                   (const char *)sqlite3_column_text(s, 1),
                   (const char *)sqlite3_column_text(s, 2));
    (void)sqlite3_finalize(s);
    (void)sqlite3_close(file);
    return list;
}

static const char *columns_of_database(void)
{
    static char list[16384];
    struct pb_sql_statement *s = pb_sql_prepare(
        db,
        "SELECT table_name::text COLLATE \"C\", column_name::text COLLATE \"C\", data_type::text"
        " FROM information_schema.columns WHERE table_schema = 'pushbroom' AND table_name NOT IN"
        " ('store', 'job_changes', 'last_event', 'nodes', 'requests', 'pulse', 'inboxes')"
        " AND column_name NOT IN ('rowid', 'number')"
        " ORDER BY 1, 2",
        false);
    enum pb_sql_result result;
    while ((result = pb_sql_step(s)) == PB_SQL_ROW)
        add_column(list, pb_sql_text(s, 0), pb_sql_text(s, 1), pb_sql_text(s, 2));
    ck_assert_msg(result == PB_SQL_DONE, "%s", pb_sql_message(db));
    pb_sql_finalize(s);
    return list;
}

START_TEST(test_columns_are_those_of_sqlite)
{
    ck_assert_str_eq(columns_of_database(), columns_of_file());
}
END_TEST

START_TEST(test_tables_of_a_newer_service_are_refused)
{
    struct pb_err err = {0};
    struct pb_job_store *late = NULL;
    execute("UPDATE store SET version = 99, program = '7.8.9'");
    ck_assert_int_lt(pb_job_store_open(&place, &err, moved, &late), 0);
    ck_assert_msg(strstr(err.msg, "newer pushbroomd 7.8.9") != NULL, "%s", err.msg);
    ck_assert_int_eq(query("SELECT version FROM store"), 99);
}
END_TEST

START_TEST(test_tables_of_the_version_before_are_upgraded)
{
    insert(A, PB_JOB_ACCEPTED);
    close_store();
    execute("DROP TABLE gaps; DROP FUNCTION note_generation; ALTER TABLE jobs DROP needs_gpu,"
            " DROP error_memory, DROP shunned; ALTER TABLE nodes DROP has_gpu, DROP memory; ALTER "
            "TABLE store"
            " DROP generation; ALTER TABLE nodes DROP products, DROP address;"
            " UPDATE store SET version = 5");
    open_store();
    ck_assert_int_eq(query("SELECT count(*) FROM jobs WHERE needs_gpu = 0 AND shunned = ''"), 1);
    ck_assert_int_eq(query("SELECT count(*) FROM store WHERE generation <> ''"), 1);
    ck_assert_int_eq(query("SELECT count(*) FROM gaps"), 0);
    /* A node of the version before is still connected. */
    execute("INSERT INTO nodes (node, session, place, work, archive, quarantine, lease_ms,"
            " started_ms, seen_ms) VALUES ('n', 7, '', '', '', '', 1, 1, 1)");
    ck_assert_int_eq(query("SELECT has_gpu FROM nodes"), -1);
}
END_TEST

/* The server is replaced by a standby that lacks the last events. */
START_TEST(test_numbers_of_lost_events_are_not_used_again)
{
    struct pb_err err = {0};
    insert(A, PB_JOB_ACCEPTED);
    const int64_t last = query("SELECT seq FROM last_event");
    close_store();
    open_store(); /* the same server */
    ck_assert_int_eq(query("SELECT seq FROM last_event"), last);
    close_store();
    execute("UPDATE store SET generation = '1/00000001'");
    open_store();
    ck_assert_int_gt(query("SELECT seq FROM last_event"), last + 1);
    insert(B, PB_JOB_ACCEPTED);
    const int64_t next = query("SELECT seq FROM last_event");
    ck_assert_int_eq(pb_journal_is_lost(store, last, &err), 0);
    ck_assert_int_eq(pb_journal_is_lost(store, last + 1, &err), 1);
    ck_assert_int_eq(pb_journal_is_lost(store, next - 2, &err), 1);
    ck_assert_int_eq(pb_journal_is_lost(store, next - 1, &err), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM gaps"), 1);
}
END_TEST

START_TEST(test_numbers_that_were_left_out_age_no_event)
{
    struct pb_err err = {0};
    struct pb_subscriber all = {
        .name = "x", .events = "[\"*\"]", .pipelines = "[]", .expire_ms = 3600000};
    ck_assert_int_eq(pb_subscribers_set(store, &all, 1, &err), 0);
    insert(A, PB_JOB_ACCEPTED);
    execute("UPDATE events SET seq = seq - 2000000; UPDATE subscribers SET seq = seq - 2000000;"
            "UPDATE last_event SET seq = seq - 2000000");
    close_store();
    execute("UPDATE store SET generation = '1/00000001'");
    open_store();
    insert(B, PB_JOB_ACCEPTED);
    ck_assert_int_gt(query("SELECT max(seq) - min(seq) FROM events"), PB_JOURNAL_MAX);
    ck_assert_int_eq(pb_journal_trim(store, pb_clock_wall_ms(), &err), 0);
    ck_assert_int_eq(query("SELECT expired FROM subscribers"), 0);
    ck_assert_int_eq(pb_subscribers_set(store, NULL, 0, &err), 1);
    ck_assert_int_eq(pb_journal_trim(store, pb_clock_wall_ms(), &err), 0);
    ck_assert_int_eq(query("SELECT count(*) FROM events"), 2);
}
END_TEST

START_TEST(test_gap_before_the_first_row_is_in_range)
{
    struct pb_err err = {0};
    int64_t first = 0, last = 0;
    execute("UPDATE last_event SET seq = seq - 5000");
    const int64_t before = query("SELECT seq FROM last_event");
    close_store();
    execute("UPDATE store SET generation = '1/00000001'");
    open_store();
    ck_assert_int_eq(pb_journal_range(store, &first, &last, &err), 0);
    ck_assert_int_eq(first, before + 1);
    insert(B, PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_journal_range(store, &first, &last, &err), 0);
    ck_assert_int_eq(first, before + 1);
    ck_assert_int_gt(last, before + 5000);
    close_store();
    execute("UPDATE store SET generation = '1/00000001'");
    open_store();
    ck_assert_int_eq(pb_journal_range(store, &first, &last, &err), 0);
    ck_assert_int_eq(first, before + 1);
}
END_TEST

START_TEST(test_tables_need_no_right_to_create)
{
    struct pb_err err = {0};
    struct pb_job job;
    char as_node[POSTGRES_CONNINFO_BYTES + 16];
    execute("CREATE ROLE node LOGIN; GRANT USAGE ON SCHEMA pushbroom TO node;"
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pushbroom TO node");
    close_store();
    (void)snprintf(as_node, sizeof as_node, "%s user=node", conninfo);
    place.postgresql = as_node;
    ck_assert_msg(pb_job_store_open(&place, &err, moved, &store) == 0, "%s", err.msg);
    insert(A, PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_find(store, A, NULL, &job), 0);
    job.owned = true;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, "/work/a"), 0);
    job.status = PB_JOB_SUCCESSFUL;
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    ck_assert_int_eq(pb_job_store_prune(store, 0, NULL), 1);
    ck_assert_int_eq(query("SELECT count(*) FROM kept"), 1);
    ck_assert_int_eq(query("SELECT count(seq) FROM events"), 2);
    pb_job_fini(&job);
    close_store();
    change_rows("DROP SCHEMA pushbroom CASCADE");
    ck_assert_int_lt(pb_job_store_open(&place, &err, moved, &store), 0);
    store = NULL;
    ck_assert_msg(strstr(err.msg, "permission denied") != NULL, "%s", err.msg);
    execute("DROP OWNED BY node; DROP ROLE node");
}
END_TEST

/* Any file name is a name of a job and of an input. */
START_TEST(test_texts_may_be_any_bytes)
{
    static const char name[] = "\xff\xfe caf\xc3\xa9 \xc3 \xf4\x8f\xbe\x80 \xf4\x8f\xbe";
    static const char path[] = "/done/\x80\xf4\x8f\xbf\xbf";
    struct pb_kept kept;
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, A);
    (void)snprintf(job.name, sizeof job.name, "%s", name);
    (void)snprintf(job.scene, sizeof job.scene, "%s", name);
    job.owned = true;
    ck_assert_int_eq(pb_scene_manifest_set_input(&job.manifest, path), 0);
    ck_assert_int_eq(pb_store_offer(store, &job, NULL), 0);
    job.status = PB_JOB_FAILED;
    ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
    pb_job_fini(&job);
    ck_assert_int_eq(pb_job_store_find(store, A, NULL, &job), 0);
    ck_assert_str_eq(job.name, name);
    ck_assert_str_eq(job.scene, name);
    ck_assert_str_eq(job.manifest.input, path);
    ck_assert_int_eq(pb_kept_find(store, path, NULL, &kept), 1);
    ck_assert_str_eq(kept.path, path);
    pb_job_fini(&job);
}
END_TEST

START_TEST(test_patterns_are_those_of_sqlite)
{
    static const char *const patterns[] = {
        "*",     "job.*", "j?b", "[a-c]x", "[^a]x", "[]x]",  "[^]x]", "a[",    "a.b+c",  "a\\b",
        "(a|b)", "{1}",   "^a$", "a]",     "[a^]",  "[\\a]", "",      "a*b*c", "job.*.*"};
    static const char *const texts[] = {"job.failed", "job", "jb",  "ax",   "bx",  "]",    "x",
                                        "a.b+c",      "a[",  "a]",  "a\\b", "a",   "^",    "\\",
                                        "(a|b)",      "{1}", "^a$", "",     "abc", "a.b.c"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            struct pb_sql_statement *s = pb_sql_prepare(
                db, "SELECT pb_wants(pattern_of(?1), ''::text, ?2, ''::text)", false);
            pb_sql_set_text(s, 1, patterns[i]);
            pb_sql_set_text(s, 2, texts[k]);
            ck_assert_msg(pb_sql_step(s) == PB_SQL_ROW, "%s", pb_sql_message(db));
            ck_assert_msg((pb_sql_int(s, 0) != 0) == (sqlite3_strglob(patterns[i], texts[k]) == 0),
                          "'%s' for '%s'", patterns[i], texts[k]);
            pb_sql_finalize(s);
        }
}
END_TEST

/* --- connections ----------------------------------------------------------------------------- */

START_TEST(test_a_second_service_is_refused_by_name)
{
    struct pb_err err = {0};
    struct pb_job_store *second = NULL;
    close_store();
    place.is_shared = false;
    place.node = "hot-1";
    open_store();
    place.node = "hot-2";
    ck_assert_int_lt(pb_job_store_open(&place, &err, moved, &second), 0);
    ck_assert_msg(strstr(err.msg, "'hot-1'") != NULL, "%s", err.msg);
    place.is_shared = true;
    ck_assert_int_lt(pb_job_store_open(&place, NULL, moved, &second), 0);
    close_store();
    ck_assert_int_eq(pb_job_store_open(&place, NULL, moved, &store), 0);
}
END_TEST

START_TEST(test_a_lost_connection_is_made_again)
{
    struct pb_job job;
    struct pb_job_store *reader = NULL;
    close_store();
    place.node = "lost";
    open_store();
    ck_assert_int_eq(pb_job_store_open_reader(&place, NULL, &reader), 0);
    insert(A, PB_JOB_ACCEPTED);
    ck_assert_int_eq(pb_job_store_find(reader, A, NULL, &job), 0);
    pb_job_fini(&job);
    for (int i = 0; i < 2; i++) {
        end_connections_of("lost");
        ck_assert_int_eq(pb_job_store_find(reader, A, NULL, &job), 0);
        job.progress = i;
        ck_assert_int_eq(pb_store_finish(store, &job, NULL), 0);
        pb_job_fini(&job);
    }
    pb_job_store_close(reader);
}
END_TEST

/* The process of the reader's connection is stopped: the reader waits as long as its limit. */
START_TEST(test_a_stopped_server_ends_no_wait)
{
    struct pb_err err = {0};
    struct pb_job job;
    struct pb_job_store *reader = NULL;
    place.node = "stopped";
    ck_assert_int_eq(pb_job_store_open_reader(&place, NULL, &reader), 0);
    const pid_t server =
        (pid_t)query("SELECT pid FROM pg_stat_activity WHERE application_name = 'stopped'");
    ck_assert_int_eq(kill(server, SIGSTOP), 0);
    /* The second try has a new connection. */
    ck_assert_int_eq(pb_job_store_find(reader, A, &err, &job), -ENOENT);
    ck_assert_int_eq(kill(server, SIGCONT), 0);
    pb_job_store_close(reader);
}
END_TEST

START_TEST(test_an_absent_server_is_named)
{
    struct pb_err err = {0};
    struct pb_job_store *none = NULL;
    place.postgresql = "host=/no/such/place dbname=x";
    ck_assert_int_lt(pb_job_store_open(&place, &err, moved, &none), 0);
    ck_assert_msg(strstr(err.msg, "/no/such/place") != NULL, "%s", err.msg);
}
END_TEST

/* --- order and numbers ----------------------------------------------------------------------- */

START_TEST(test_events_have_the_order_of_their_commits)
{
    ck_assert(pb_sql_begin(db));
    ck_assert(pb_postgres_execute(
        db,
        "INSERT INTO events (time_ms, kind, job, pipeline, data) VALUES (1, 'k', 'late', '', '')"));
    insert(A, PB_JOB_ACCEPTED); /* inserted later, stored earlier */
    ck_assert(pb_sql_commit(db));
    insert(B, PB_JOB_ACCEPTED);
    ck_assert_int_eq(query("SELECT count(*) FROM events WHERE seq IS NULL"), 0);
    ck_assert_int_eq(query("SELECT (SELECT seq FROM events WHERE job = 'late')"
                           " - (SELECT seq FROM events WHERE job = '" A "')"),
                     1);
    ck_assert_int_eq(query("SELECT (SELECT seq FROM last_event)"
                           " - (SELECT seq FROM events WHERE job = '" B "')"),
                     0);
}
END_TEST

START_TEST(test_counts_are_summed_up)
{
    enum { JOBS = 300 };
    struct pb_job *jobs = calloc(JOBS, sizeof *jobs), *list[JOBS];
    int results[JOBS];
    int64_t counts[PB_JOB_STATUS_COUNT];
    for (int i = 0; i < JOBS; i++) {
        pb_job_init(&jobs[i]);
        (void)snprintf(jobs[i].id, sizeof jobs[i].id, "20261123-000000-%04d", i);
        jobs[i].status = i % 3 == 0 ? PB_JOB_FAILED : PB_JOB_ACCEPTED;
        list[i] = &jobs[i];
    }
    ck_assert_int_eq(pb_store_offer_all(store, list, JOBS, results, NULL), 0);
    ck_assert_int_le(query("SELECT count(*) FROM job_changes"), 2);
    insert(A, PB_JOB_ACCEPTED);
    pb_store_counts(store, counts);
    ck_assert_int_eq(counts[PB_JOB_FAILED], JOBS / 3);
    ck_assert_int_eq(counts[PB_JOB_ACCEPTED], JOBS - JOBS / 3 + 1);
    free(jobs);
}
END_TEST

START_TEST(test_change_before_the_store_is_open_fails)
{
    struct pb_err err = {0};
    struct pb_job_store *closed = NULL;
    struct pb_job job;
    pb_job_init(&job);
    (void)snprintf(job.id, sizeof job.id, A);
    ck_assert_int_eq(pb_job_store_create(&place, NULL, &closed), 0);
    ck_assert_int_lt(pb_store_offer(closed, &job, &err), 0);
    ck_assert_msg(strstr(err.msg, "not open yet") != NULL, "%s", err.msg);
    pb_job_fini(&job);
    pb_job_store_close(closed);
}
END_TEST

/* Otherwise reads would wait for the end of a transaction that is gone. */
START_TEST(test_locked_tables_leave_no_transaction)
{
    struct pb_err err = {0};
    struct pb_job job;
    char as_node[POSTGRES_CONNINFO_BYTES + 16];
    execute("CREATE ROLE unlocked LOGIN; GRANT USAGE ON SCHEMA pushbroom TO unlocked;"
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pushbroom TO unlocked");
    close_store();
    (void)snprintf(as_node, sizeof as_node, "%s user=unlocked", conninfo);
    place.postgresql = as_node;
    place.node = "unlocked";
    open_store();
    insert(A, PB_JOB_ACCEPTED);
    execute("REVOKE EXECUTE ON FUNCTION pg_advisory_xact_lock(int, int) FROM PUBLIC;"
            "UPDATE store SET version = 0");
    end_connections_of("unlocked");
    ck_assert_int_lt(pb_job_store_find(store, A, &err, &job), 0);
    ck_assert_msg(strstr(err.msg, "cannot be locked") != NULL, "%s", err.msg);
    execute("GRANT EXECUTE ON FUNCTION pg_advisory_xact_lock(int, int) TO PUBLIC;"
            "UPDATE store SET version = " AS_TEXT(PB_POSTGRES_SCHEMA_VERSION));
    int rc;
    do /* the next try to connect is a moment later */
        rc = pb_job_store_find(store, A, &err, &job);
    while (rc != 0 && strstr(err.msg, "cannot be locked") != NULL);
    ck_assert_msg(rc == 0, "%s", err.msg);
    pb_job_fini(&job);
    close_store();
    store = NULL;
    execute("DROP OWNED BY unlocked; DROP ROLE unlocked");
}
END_TEST

enum { WRITERS = 4, EACH = 15 };

/* A thread of a service that stores jobs. */
struct writer {
    pthread_t thread;
    struct pb_job_store *store;
    int number, failures;
};

static void *write_jobs(void *user)
{
    struct writer *writer = user;
    struct pb_job job;
    for (int i = 0; i < EACH; i++) {
        pb_job_init(&job);
        (void)snprintf(job.id, sizeof job.id, "20261123-00000%d-%04d", writer->number, i);
        writer->failures += pb_store_offer(writer->store, &job, NULL) != 0;
        pb_job_fini(&job);
    }
    return NULL;
}

struct follower {
    int64_t last;
    int events;
};

static void follow(void *user, const struct pb_event *event)
{
    struct follower *follower = user;
    ck_assert_int_gt(event->seq, follower->last);
    follower->last = event->seq;
    follower->events++;
}

/* Two services store jobs in two threads each, while a reader reads the events after the last one
 * that it has. */
START_TEST(test_a_reader_misses_no_event)
{
    struct pb_err err = {0};
    struct writer writers[WRITERS] = {{.failures = 0}};
    struct follower follower = {.events = 0};
    struct pb_job_store *second = NULL, *reader = NULL;
    ck_assert_int_eq(pb_job_store_open(&place, NULL, moved, &second), 0);
    ck_assert_int_eq(pb_job_store_open_reader(&place, NULL, &reader), 0);
    for (int i = 0; i < WRITERS; i++) {
        writers[i].number = i;
        writers[i].store = i % 2 == 0 ? store : second;
        ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, write_jobs, &writers[i]), 0);
    }
    while (follower.events < WRITERS * EACH)
        ck_assert_msg(pb_journal_read(reader, follower.last, "", 7, follow, &follower, &err) >= 0,
                      "%s", err.msg);
    for (int i = 0; i < WRITERS; i++) {
        ck_assert_int_eq(pthread_join(writers[i].thread, NULL), 0);
        ck_assert_int_eq(writers[i].failures, 0);
    }
    ck_assert_int_eq(query("SELECT seq FROM last_event"), follower.last);
    pb_job_store_close(reader);
    pb_job_store_close(second);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, test_columns_are_those_of_sqlite);
    tcase_add_test(tests, test_tables_of_a_newer_service_are_refused);
    tcase_add_test(tests, test_tables_of_the_version_before_are_upgraded);
    tcase_add_test(tests, test_numbers_of_lost_events_are_not_used_again);
    tcase_add_test(tests, test_numbers_that_were_left_out_age_no_event);
    tcase_add_test(tests, test_gap_before_the_first_row_is_in_range);
    tcase_add_test(tests, test_tables_need_no_right_to_create);
    tcase_add_test(tests, test_texts_may_be_any_bytes);
    tcase_add_test(tests, test_patterns_are_those_of_sqlite);
    tcase_add_test(tests, test_a_second_service_is_refused_by_name);
    tcase_add_test(tests, test_a_lost_connection_is_made_again);
    tcase_add_test(tests, test_a_stopped_server_ends_no_wait);
    tcase_add_test(tests, test_an_absent_server_is_named);
    tcase_add_test(tests, test_events_have_the_order_of_their_commits);
    tcase_add_test(tests, test_counts_are_summed_up);
    tcase_add_test(tests, test_a_reader_misses_no_event);
    tcase_add_test(tests, test_change_before_the_store_is_open_fails);
    tcase_add_test(tests, test_locked_tables_leave_no_transaction);
}

int main(void)
{
    return run_over_database("store_postgres", connect_database, disconnect_database, add_tests);
}
