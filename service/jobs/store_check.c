/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each point is read by a query of its own, because a role may not see everything, and an old
 * server may not know everything. Settings are those of a new session (reset_val). This connection
 * has set some of its own. */
#include "service/jobs/store_check.h"

#include "config/base/clock.h"
#include "service/jobs/schema_postgres.h"
#include "service/jobs/sql.h"
#include "service/jobs/sql_postgres.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM          "pushbroom store"
#define SERVER_TESTED    15 /* the oldest server that works, and the one of the tests */
#define NODE_CONNECTIONS 5  /* writer, listener; readers of the loop, its chores and the status */
#define OLD_S            300
#define DEAD_ROWS        10000
#define TRIPS            51
#define SLOW_US          10000

struct check {
    struct pb_sql *db;
    const char *conninfo;
    void (*visit)(void *user, const struct pb_store_point *point);
    void *user;
    bool takes_changes;
    int to_mend;
};

static void report(struct check *check, enum pb_store_grade grade, const char *name,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
static void report(struct check *check, enum pb_store_grade grade, const char *name,
                   const char *format, ...)
{
    char text[600];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    check->to_mend += grade == PB_STORE_MEND;
    check->visit(check->user, &(struct pb_store_point){name, grade, text});
}

/* Runs a query and reads its first row; NULL after a report, also if there is no row. */
static struct pb_sql_statement *read_row(struct check *check, const char *name, const char *query)
{
    struct pb_sql_statement *s = pb_sql_prepare(check->db, query, false);
    const enum pb_sql_result result = s != NULL ? pb_sql_step(s) : PB_SQL_FAILED;
    if (result == PB_SQL_ROW)
        return s;
    report(check, PB_STORE_MEND, name, "cannot be read: %.300s",
           result == PB_SQL_FAILED ? pb_sql_message(check->db) : "the server gives no row");
    pb_sql_finalize(s);
    return NULL;
}

static const char *text_at(struct pb_sql_statement *s, int at)
{
    const char *text = pb_sql_text(s, at);
    return text != NULL ? text : "";
}

/* --- server ---------------------------------------------------------------------------------- */

static void check_server(struct check *check)
{
    struct pb_sql_statement *s =
        read_row(check, "server",
                 "SELECT current_setting('server_version_num')::bigint,"
                 " current_setting('server_version'), current_setting('server_encoding')");
    if (s == NULL)
        return;
    const int64_t number = pb_sql_int(s, 0) / 10000;
    if (number < SERVER_TESTED)
        report(check, PB_STORE_MEND, "server", "PostgreSQL %.40s: use %d or later", text_at(s, 1),
               SERVER_TESTED);
    else
        report(check, number == SERVER_TESTED ? PB_STORE_FINE : PB_STORE_NOTE, "server",
               "PostgreSQL %.40s; pushbroom was tested with %d", text_at(s, 1), SERVER_TESTED);
    if (strcmp(text_at(s, 2), "UTF8") != 0)
        report(check, PB_STORE_MEND, "encoding",
               "%.40s, which cannot store all names of files: make another database with createdb "
               "-E UTF8 -T template0",
               text_at(s, 2));
    pb_sql_finalize(s);
}

static void check_changes(struct check *check)
{
    struct pb_sql_statement *s =
        read_row(check, "changes",
                 "SELECT pg_is_in_recovery(), (SELECT reset_val FROM pg_settings"
                 " WHERE name = 'default_transaction_read_only') = 'on'");
    if (s == NULL)
        return;
    const bool is_copy = pb_sql_int(s, 0) != 0, is_read_only = pb_sql_int(s, 1) != 0;
    check->takes_changes = !is_copy && !is_read_only;
    if (is_copy)
        report(check, PB_STORE_MEND, "changes",
               "the server is a read-only copy (a standby): name the one that takes changes as "
               "well, host=A,B, or promote this one");
    else if (is_read_only)
        report(check, PB_STORE_MEND, "changes",
               "default_transaction_read_only is on: set it to off for this role and database");
    else
        report(check, PB_STORE_FINE, "changes", "the server takes changes");
    pb_sql_finalize(s);
}

static void check_password(struct check *check)
{
    if (pb_postgres_used_password(check->db))
        report(check, PB_STORE_NOTE, "password",
               "the server wants one, and one was found for the user of this command: the user of "
               "the service needs it as well (passfile=FILE, which that user can read)");
    else
        report(check, PB_STORE_FINE, "password", "none is needed");
}

/* --- safety of stored changes ---------------------------------------------------------------- */

static void check_switch(struct check *check, const char *name, const char *loss)
{
    char query[64];
    (void)snprintf(query, sizeof query, "SELECT current_setting('%s')", name);
    struct pb_sql_statement *s = read_row(check, name, query);
    if (s == NULL)
        return;
    if (strcmp(text_at(s, 0), "on") == 0)
        report(check, PB_STORE_FINE, name, "on");
    else
        report(check, PB_STORE_MEND, name, "%.40s: %s; set it to on and reload the server",
               text_at(s, 0), loss);
    pb_sql_finalize(s);
}

static void check_standby(struct check *check, const char *commits)
{
    struct pb_sql_statement *s =
        read_row(check, "standby",
                 "SELECT current_setting('synchronous_standby_names'), count(pid),"
                 " count(pid) FILTER (WHERE sync_state IN ('sync', 'quorum')),"
                 " count(pid) FILTER (WHERE sync_state IS NULL) FROM pg_stat_replication");
    if (s == NULL)
        return;
    const char *names = text_at(s, 0);
    const long long n = pb_sql_int(s, 1), n_sync = pb_sql_int(s, 2), n_hidden = pb_sql_int(s, 3);
    const bool waits = strcmp(commits, "off") != 0 && strcmp(commits, "local") != 0;
    if (names[0] == '\0' && n == 0)
        report(check, PB_STORE_NOTE, "standby",
               "none: jobs are lost with the disk of this server, and wait while it is away");
    else if (names[0] == '\0')
        report(check, PB_STORE_NOTE, "standby",
               "%lld, none of them synchronous: if one is promoted, the last jobs may be lost; "
               "synchronous_standby_names prevents that",
               n);
    else if (n_sync > 0)
        report(check, PB_STORE_FINE, "standby",
               "%lld of %lld synchronous: a failed server loses no confirmed change", n_sync, n);
    else if (n_hidden > 0)
        report(check, PB_STORE_NOTE, "standby",
               "synchronous_standby_names is '%.80s', but this role may not see whether one is "
               "there: grant it pg_monitor",
               names);
    else
        report(check, PB_STORE_MEND, "standby",
               "synchronous_standby_names is '%.80s', but no such standby is connected%s: start "
               "it, or make the setting empty and reload the server",
               names, waits ? ", and every change waits for one" : "");
    pb_sql_finalize(s);
}

static void check_commits(struct check *check)
{
    static const char name[] = "synchronous_commit";
    struct pb_sql_statement *s =
        read_row(check, name,
                 "SELECT reset_val, current_setting('synchronous_standby_names') <> ''"
                 " FROM pg_settings WHERE pg_settings.name = 'synchronous_commit'");
    if (s == NULL)
        return;
    char commits[40];
    pb_sql_read_text(s, 0, commits, sizeof commits);
    const bool has_names = pb_sql_int(s, 1) != 0;
    pb_sql_finalize(s);
    if (strcmp(commits, "off") == 0)
        report(check, PB_STORE_NOTE, name, "off; sessions of pushbroom set it to on");
    else if (strcmp(commits, "local") == 0 && has_names)
        report(check, PB_STORE_MEND, name,
               "local: changes do not wait for the standby, and are lost if it is promoted; set it "
               "to on and reload the server");
    else if (strcmp(commits, "remote_write") == 0 && has_names)
        report(check, PB_STORE_NOTE, name,
               "remote_write: the standby confirms before its disk has the change");
    else
        report(check, PB_STORE_FINE, name, "%s", commits);
    check_standby(check, commits);
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Reports tables and functions that the role may not use. */
static void check_rights(struct check *check)
{
    struct pb_sql_statement *s =
        read_row(check, "rights",
                 "SELECT current_user::text, has_schema_privilege(n.oid, 'USAGE'),"
                 " (SELECT coalesce(string_agg(c.relname, ', ' ORDER BY c.relname), '')"
                 "  FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'v')"
                 "  AND NOT (has_table_privilege(c.oid, 'SELECT') AND (c.relkind = 'v' OR"
                 "  has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE')"
                 "  AND has_table_privilege(c.oid, 'DELETE')))),"
                 " (SELECT count(*) FROM pg_proc p WHERE p.pronamespace = n.oid"
                 "  AND NOT has_function_privilege(p.oid, 'EXECUTE')),"
                 " pg_has_role(n.nspowner, 'USAGE'), pg_get_userbyid(n.nspowner)::text"
                 " FROM pg_namespace n WHERE n.nspname = 'pushbroom'");
    if (s == NULL)
        return;
    const char *role = text_at(s, 0), *tables = text_at(s, 2);
    if (pb_sql_int(s, 1) == 0 || tables[0] != '\0' || pb_sql_int(s, 3) > 0)
        report(check, PB_STORE_MEND, "rights",
               "role '%.60s' may not use all of the schema pushbroom (%.80s%s): GRANT USAGE of it, "
               "SELECT, INSERT, UPDATE, DELETE of its tables and EXECUTE of its functions",
               role, tables,
               pb_sql_int(s, 1) == 0   ? "USAGE is missing"
               : pb_sql_int(s, 3) == 0 ? ""
                                       : " functions");
    else if (pb_sql_int(s, 4) == 0)
        report(check, PB_STORE_NOTE, "rights",
               "role '%.60s' may use the tables; only '%.60s' can upgrade them, by 'pushbroom "
               "store init'",
               role, text_at(s, 5));
    else
        report(check, PB_STORE_FINE, "rights", "role '%.60s' owns the tables", role);
    pb_sql_finalize(s);
}

static void check_right_to_make(struct check *check)
{
    struct pb_sql_statement *s =
        read_row(check, "rights",
                 "SELECT current_user::text,"
                 " has_database_privilege(current_database(), 'CREATE'), current_database()::text");
    if (s != NULL && pb_sql_int(s, 1) == 0)
        report(check, PB_STORE_MEND, "rights",
               "role '%.60s' may not make the schema pushbroom: ALTER DATABASE \"%.60s\" OWNER TO "
               "\"%.60s\"",
               text_at(s, 0), text_at(s, 2), text_at(s, 0));
    pb_sql_finalize(s);
}

static void check_tables(struct check *check)
{
    static const char name[] = "tables";
    char program[32] = "";
    const int version = pb_postgres_schema_version(check->db, program, sizeof program);
    if (version < 0)
        report(check, PB_STORE_MEND, name, "cannot be read: %.300s", pb_sql_message(check->db));
    else if (version == 0)
        report(check, PB_STORE_MEND, name, "absent: 'pushbroom store init' makes them");
    else if (version < PB_POSTGRES_SCHEMA_VERSION)
        report(check, PB_STORE_MEND, name,
               "version %d of pushbroom %.20s; this is %s, which needs %d: 'pushbroom store init' "
               "or the next service upgrades them",
               version, program, PB_VERSION, PB_POSTGRES_SCHEMA_VERSION);
    else if (version > PB_POSTGRES_SCHEMA_VERSION)
        report(check, PB_STORE_MEND, name,
               "version %d of pushbroom %.20s; this is %s, which knows %d: install that version "
               "here",
               version, program, PB_VERSION, PB_POSTGRES_SCHEMA_VERSION);
    else
        report(check, PB_STORE_FINE, name, "version %d, the one of this program", version);
    if (version != 0)
        check_rights(check);
    else
        check_right_to_make(check);
}

static void check_vacuum(struct check *check)
{
    static const char name[] = "autovacuum";
    struct pb_sql_statement *s = read_row(
        check, name,
        "SELECT current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on'"
        " AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace ="
        "  (SELECT oid FROM pg_namespace WHERE nspname = 'pushbroom')"
        "  AND c.reloptions && '{autovacuum_enabled=false,autovacuum_enabled=off}'::text[]),"
        " coalesce(max(n_live_tup), 0), coalesce(max(n_dead_tup), 0)"
        " FROM pg_stat_user_tables WHERE schemaname = 'pushbroom' AND relname = 'jobs'");
    if (s == NULL)
        return;
    const long long live = pb_sql_int(s, 1), dead = pb_sql_int(s, 2);
    if (pb_sql_int(s, 0) == 0)
        report(check, PB_STORE_MEND, name,
               "off, with %lld dead rows of jobs: the store becomes slower with every job; set "
               "autovacuum and track_counts to on",
               dead);
    else if (dead > DEAD_ROWS + live / 5)
        report(check, PB_STORE_MEND, name,
               "on, but the table of jobs has %lld dead rows and %lld others: end the oldest "
               "transaction, or run VACUUM pushbroom.jobs",
               dead, live);
    else
        report(check, PB_STORE_FINE, name, "on; %lld dead rows of jobs, %lld others", dead, live);
    pb_sql_finalize(s);
}

/* --- other sessions -------------------------------------------------------------------------- */

/* An old transaction keeps the dead rows of all tables of its database. */
static void check_oldest(struct check *check)
{
    static const char name[] = "oldest transaction";
    struct pb_sql_statement *s = read_row(
        check, name,
        "SELECT o.who, coalesce(extract(epoch FROM clock_timestamp() - o.since)::bigint, 0),"
        " (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        "  AND query = '<insufficient privilege>')"
        " FROM (SELECT 'process ' || pid || ' (' || coalesce(application_name, '') || ', ' ||"
        "  coalesce(usename, '') || ', ' || coalesce(state, '') || '): end it, or'"
        "  || ' pg_terminate_backend(' || pid || ')' AS who, xact_start AS since"
        "  FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        "  AND backend_type = 'client backend' AND xact_start IS NOT NULL"
        " UNION ALL SELECT 'prepared transaction ' || quote_literal(gid) || ': COMMIT PREPARED or'"
        "  || ' ROLLBACK PREPARED', prepared FROM pg_prepared_xacts"
        "  WHERE database = current_database()"
        " UNION ALL SELECT NULL, NULL ORDER BY 2 NULLS LAST LIMIT 1) o");
    if (s == NULL)
        return;
    const long long age_s = pb_sql_int(s, 1), n_hidden = pb_sql_int(s, 2);
    if (age_s >= OLD_S)
        report(check, PB_STORE_MEND, name,
               "%lld s, which keeps dead rows and makes the store slow: %.300s", age_s,
               text_at(s, 0));
    else if (n_hidden > 0)
        report(check, PB_STORE_NOTE, name,
               "%lld s; this role may not see those of %lld other sessions: grant it pg_monitor",
               age_s, n_hidden);
    else
        report(check, PB_STORE_FINE, name, "%lld s", age_s);
    pb_sql_finalize(s);
}

static void check_connections(struct check *check)
{
    static const char name[] = "connections";
    struct pb_sql_statement *s =
        read_row(check, name,
                 "SELECT least(current_setting('max_connections')::bigint"
                 "  - current_setting('superuser_reserved_connections')::bigint"
                 "  - (SELECT sum(numbackends) FROM pg_stat_database)::bigint,"
                 " (SELECT rolconnlimit - (SELECT count(*) FROM pg_stat_activity a"
                 "   WHERE a.usesysid = r.oid) FROM pg_roles r"
                 "   WHERE r.rolname = current_user AND rolconnlimit >= 0),"
                 " (SELECT datconnlimit - (SELECT count(*) FROM pg_stat_activity a"
                 "   WHERE a.datid = d.oid) FROM pg_database d"
                 "   WHERE d.datname = current_database() AND datconnlimit >= 0)),"
                 " current_setting('max_connections')");
    if (s == NULL)
        return;
    const long long left = pb_sql_int(s, 0);
    if (left < NODE_CONNECTIONS)
        report(check, PB_STORE_MEND, name,
               "%lld left, a node needs %d: raise max_connections (%.20s) or the limit of the role "
               "or database",
               left < 0 ? 0 : left, NODE_CONNECTIONS, text_at(s, 1));
    else
        report(check, PB_STORE_FINE, name, "%lld left, a node needs %d", left, NODE_CONNECTIONS);
    pb_sql_finalize(s);
}

/* --- way to the server ----------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_trips(struct check *check)
{
    static const char name[] = "round trip";
    uint64_t us[TRIPS];
    for (int i = 0; i < TRIPS; i++) {
        const uint64_t begin_ns = pb_clock_mono_ns();
        struct pb_sql_statement *s = read_row(check, name, "SELECT 1");
        if (s == NULL)
            return;
        pb_sql_finalize(s);
        us[i] = (pb_clock_mono_ns() - begin_ns) / 1000;
    }
    qsort(us, TRIPS, sizeof us[0], compare_times);
    const uint64_t p50 = us[TRIPS / 2];
    report(check, p50 > SLOW_US ? PB_STORE_NOTE : PB_STORE_FINE, name, "%.2f ms (p50 of %d)%s",
           (double)p50 / 1000.0, TRIPS,
           p50 > SLOW_US ? ": each job waits for several; a server near the nodes is faster" : "");
}

static int open_as(const char *conninfo, bool takes_any, struct pb_err *err, struct pb_sql **out)
{
    const struct pb_postgres_options options = {
        .conninfo = conninfo, .program = PROGRAM, .is_reader = true, .takes_any = takes_any};
    return pb_postgres_open(&options, err, out);
}

/* Closes a connection. The settings of this session would stay in that of a pool. */
static void close_as_found(struct pb_sql *db)
{
    (void)pb_postgres_execute(db, "RESET ALL");
    pb_sql_close(db);
}

/* A pool that gives a connection of the server to another client after each transaction loses the
 * settings, prepared statements and locks of a node. It is seen by a setting of another client. */
static void check_pool(struct check *check)
{
    static const char name[] = "sessions";
    struct pb_sql *other = NULL;
    struct pb_err err = {0};
    char query[100], mark[40];
    (void)snprintf(mark, sizeof mark, "%ld.%llu", (long)getpid(),
                   (unsigned long long)pb_clock_mono_ns());
    (void)snprintf(query, sizeof query, "SELECT set_config('pushbroom.mark', '%s', false)", mark);
    struct pb_sql_statement *s = read_row(check, name, query);
    if (s == NULL)
        return;
    pb_sql_finalize(s);
    if (open_as(check->conninfo, !check->takes_changes, &err, &other) < 0) {
        report(check, PB_STORE_MEND, name,
               "a second connection is refused, a node needs %d: %.200s", NODE_CONNECTIONS,
               err.msg);
        return;
    }
    struct check second = *check;
    second.db = other;
    second.to_mend = 0;
    s = read_row(&second, name, "SELECT coalesce(current_setting('pushbroom.mark', true), '')");
    check->to_mend += second.to_mend;
    if (s != NULL && strcmp(text_at(s, 0), mark) == 0)
        report(check, PB_STORE_MEND, name,
               "a pool gives one connection to several clients: set pool_mode = session in "
               "pgbouncer");
    else if (s != NULL)
        report(check, PB_STORE_FINE, name, "each client has a connection of its own");
    pb_sql_finalize(s);
    close_as_found(other);
}

int pb_store_check(const char *conninfo,
                   void (*visit)(void *user, const struct pb_store_point *point), void *user,
                   struct pb_err *err)
{
    struct check check = {.conninfo = conninfo, .visit = visit, .user = user};
    struct pb_err any_err = {0};
    int rc = open_as(conninfo, false, err, &check.db);
    if (rc < 0 && open_as(conninfo, true, &any_err, &check.db) < 0)
        return rc;
    report(&check, PB_STORE_FINE, "database", "%s", pb_postgres_place(check.db));
    check_server(&check);
    check_password(&check);
    check_changes(&check);
    check_switch(&check, "fsync", "a power cut damages the database and loses jobs");
    check_switch(&check, "full_page_writes", "a power cut may damage the database");
    check_commits(&check);
    check_tables(&check);
    check_vacuum(&check);
    check_oldest(&check);
    check_connections(&check);
    check_pool(&check);
    check_trips(&check);
    close_as_found(check.db);
    return check.to_mend;
}

int pb_store_init(const char *conninfo, char out_place[256], int *out_version, struct pb_err *err)
{
    const struct pb_postgres_options options = {.conninfo = conninfo, .program = PROGRAM};
    struct pb_sql *db = NULL;
    int rc = pb_postgres_open(&options, err, &db);
    if (rc < 0)
        return rc;
    (void)snprintf(out_place, 256, "%s", pb_postgres_place(db));
    *out_version = PB_POSTGRES_SCHEMA_VERSION;
    if (!pb_postgres_schema(db))
        *out_version = pb_fail(err, PB_E_SERVICE_STATE, "%s", pb_sql_message(db));
    pb_sql_close(db);
    return 0;
}
