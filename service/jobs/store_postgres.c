/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The connection that writes holds an advisory lock of the database as long as it lives. It is
 * locked again after each connect, because another service may have taken it meanwhile. */
#include "config/base/clock.h"
#include "service/jobs/libpq.h"
#include "service/jobs/nodes.h"
#include "service/jobs/schema_postgres.h"
#include "service/jobs/sql_engine.h"
#include "service/jobs/sql_postgres.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITER  PB_POSTGRES_LOCKS ", 2"
#define CHANNEL "pushbroom" /* text of a notification: name of the node that made the change */

/* Reads which connection holds the lock of the writer: program and address. */
static void find_writer(struct pb_sql *db, char *out_program, char *out_address, size_t bytes)
{
    out_program[0] = out_address[0] = '\0';
    struct pb_sql_statement *s = pb_sql_prepare(
        db,
        "SELECT a.application_name, coalesce(host(a.client_addr), 'the socket of the server')"
        " FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = " PB_POSTGRES_LOCKS
        " AND l.objid = 2 AND a.datname = current_database()",
        false);
    if (s != NULL && pb_sql_step(s) == PB_SQL_ROW) {
        pb_sql_read_text(s, 0, out_program, bytes);
        pb_sql_read_text(s, 1, out_address, bytes);
    }
    pb_sql_finalize(s);
}

/* Takes the lock of the writer: alone, or with other services that share the store. A service that
 * ended just now may still have it for a moment. */
static bool lock_writer(struct pb_sql *db, bool is_shared)
{
    char program[64], address[64];
    if (pb_postgres_execute(
            db, is_shared ? "SET LOCAL lock_timeout = 2000; SELECT pg_advisory_lock_shared(" WRITER
                            ")"
                          : "SET LOCAL lock_timeout = 2000; SELECT pg_advisory_lock(" WRITER ")"))
        return true;
    find_writer(db, program, address, sizeof program);
    return program[0] == '\0'
               ? false
               : pb_postgres_refuse(
                     db,
                     "%.100s is used by another service, '%s' from %s: stop that one, or give "
                     "this one a database of its own",
                     pb_postgres_place(db), program, address);
}

static bool greet_writer(struct pb_sql *db, void *user)
{
    const struct pb_job_store *store = user;
    return pb_postgres_schema(db) && lock_writer(db, store->is_shared) &&
           pb_postgres_execute(db, "SELECT note_generation()");
}

static int open_postgres(struct pb_job_store *store, bool is_reader, struct pb_err *err,
                         struct pb_sql **out)
{
    const struct pb_postgres_options options = {.conninfo = store->place,
                                                .program = store->node,
                                                .is_reader = is_reader,
                                                .greet = is_reader ? NULL : greet_writer,
                                                .user = store};
    return pb_postgres_open(&options, err, out);
}

static int open_writer(struct pb_job_store *store, struct pb_err *err, char out_moved[4096],
                       struct pb_sql **out)
{
    (void)out_moved;
    return open_postgres(store, false, err, out);
}

static int open_reader(struct pb_job_store *store, struct pb_err *err, struct pb_sql **out)
{
    return open_postgres(store, true, err, out);
}

static bool run(struct pb_job_store *store, const char *text)
{
    struct pb_sql_statement *s = pb_sql_prepare(store->db, text, false);
    const bool ok = s != NULL && pb_sql_step(s) != PB_SQL_FAILED;
    pb_sql_finalize(s);
    return ok;
}

#define LOCK_OF_SETTLE PB_POSTGRES_LOCKS ", 3" /* the one that settle() takes */

/* Numbers the events of the last commit. If there are many nodes, one does it at a time, because
 * they would wait for each other most of the time: it has the events of others as well, or these do
 * it with their next commit or look. */
static bool number_events(struct pb_job_store *store)
{
    if (!store->is_shared)
        return run(store, "SELECT set_config('synchronous_commit', 'off', true), settle()");
    store->is_unsettled = false;
    if (pb_nodes_reporting(store) <= PB_NODES_FEW)
        return run(store, "SELECT settle()");
    struct pb_sql_statement *s = pb_sql_prepare(
        store->db,
        "SELECT CASE WHEN pg_try_advisory_xact_lock(" LOCK_OF_SETTLE ") THEN settle()::text END",
        false);
    const bool ok = s != NULL && pb_sql_step(s) == PB_SQL_ROW;
    store->is_unsettled = !ok || pb_sql_is_null(s, 0);
    pb_sql_finalize(s);
    return ok;
}

/* Returns true if other nodes are notified now. Each notification costs the server a message to
 * every node: of changes that wake none of many nodes they learn when they look. */
static bool may_notify(const struct pb_job_store *store)
{
    const int64_t n = (int64_t)pb_nodes_reporting(store),
                  pause_ms = n > PB_NODES_FEW ? 2 * n * n : 0;
    return store->is_shared && store->has_news &&
           (store->wakes || pb_clock_mono_ms() - store->notified_ms >= pause_ms);
}

/* Notifications are a hint: a node also looks every second. They are sent by a transaction of their
 * own, because the server sends those of one transaction at a time, and that one waits for no disk
 * and no standby.
 *
 * Failures are left to the next commit. If one service writes, no other order of the numbers is
 * possible: after a crash of the server the events would get the same ones, and the disk need not
 * have them yet. */
static void settle(struct pb_job_store *store)
{
    if (!number_events(store) || !may_notify(store))
        return;
    store->has_news = store->wakes = false;
    store->notified_ms = pb_clock_mono_ms();
    (void)run(store, "SELECT set_config('synchronous_commit', 'off', true), pg_notify('" CHANNEL
                     "', current_setting('application_name'))");
}

/* The time of the server, because the services of several machines share the store. */
static int read_time(struct pb_job_store *store, struct pb_err *err, int64_t *out_ms)
{
    struct pb_sql_statement *s =
        pb_job_store_prepare(store, "service time", "SELECT pb_now_ms()", err);
    const int rc = pb_job_store_step(store, "service time", s, err);
    *out_ms = rc > 0 ? pb_sql_int(s, 0) : 0;
    pb_sql_finalize(s);
    return rc < 0 ? rc : 0;
}

/* --- notifications --------------------------------------------------------------------------- */

struct pb_nodes_listener {
    struct pb_libpq db;
    char conninfo[sizeof((struct pb_job_store *)0)->place];
    char node[PB_JOB_NODE_BYTES];
    bool was_notified;
};

int pb_nodes_listen(const struct pb_job_store *store, struct pb_err *err,
                    struct pb_nodes_listener **out)
{
    struct pb_nodes_listener *listener = NULL;
    int rc = pb_libpq_load(err);
    if (rc != 0)
        return rc;
    if ((listener = calloc(1, sizeof *listener)) == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    (void)snprintf(listener->conninfo, sizeof listener->conninfo, "%s", store->place);
    (void)snprintf(listener->node, sizeof listener->node, "%s", store->node);
    listener->db.conninfo = listener->conninfo;
    listener->db.program = listener->node;
    listener->db.is_reader = true;
    if (pb_libpq_connect(&listener->db) && pb_libpq_run(&listener->db, "LISTEN " CHANNEL)) {
        *out = listener;
        return 0;
    }
    rc = pb_fail(err, PB_E_SERVICE_STATE, "job store: %s", listener->db.message);
    pb_nodes_listener_close(listener);
    return rc;
}

int pb_nodes_listener_fd(const struct pb_nodes_listener *listener)
{
    return pb_pq.PQsocket(listener->db.conn);
}

static void on_notified(void *user, const char *node)
{
    struct pb_nodes_listener *listener = user;
    listener->was_notified = listener->was_notified || strcmp(node, listener->node) != 0;
}

int pb_nodes_listener_read(struct pb_nodes_listener *listener)
{
    listener->was_notified = false;
    if (!pb_libpq_notified(&listener->db, on_notified, listener))
        return -EPIPE;
    return listener->was_notified;
}

void pb_nodes_listener_close(struct pb_nodes_listener *listener)
{
    if (listener != NULL)
        pb_libpq_drop(&listener->db);
    free(listener);
}

const struct pb_store_kind pb_store_postgres = {
    .open = open_writer,
    .open_reader = open_reader,
    .settle = settle,
    .read_time = read_time,
};
