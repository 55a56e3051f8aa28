/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Cursors of the subscribers, and the tasks that limit the size of the journal. */
#include "service/jobs/journal.h"

#include "service/jobs/job_store_sql.h"
#include "service/jobs/journal_sql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DELETE_AT_ONCE 1024
#define STR_(x)        #x
#define STR(x)         STR_(x)

static int db_fail(struct pb_job_store *store, struct pb_err *err, const char *what)
{
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: %s: %s", what, sqlite3_errmsg(store->db));
}

/* Runs a rarely used statement with a text (NULL: without) and then a number, if it takes one.
 * Returns the number of changed rows, or a negative value. */
static int execute(struct pb_job_store *store, const char *sql, const char *text, int64_t number,
                   struct pb_err *err)
{
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &s, NULL) != SQLITE_OK)
        return db_fail(store, err, "subscribers");
    int n = sqlite3_bind_parameter_count(s);
    if (text != NULL)
        (void)sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC);
    if (n > (text != NULL))
        (void)sqlite3_bind_int64(s, n, number);
    int result =
        sqlite3_step(s) == SQLITE_DONE ? sqlite3_changes(store->db) : db_fail(store, err, "change");
    (void)sqlite3_finalize(s);
    return result;
}

static int put(struct pb_job_store *store, const struct pb_subscriber *subscriber,
               struct pb_err *err)
{
    static const char sql[] =
        "INSERT INTO subscribers (name, seq, events, pipelines, expire_ms) VALUES"
        " (?1, (SELECT seq FROM sqlite_sequence WHERE name = 'events'), ?2, ?3, ?4)"
        " ON CONFLICT (name) DO UPDATE SET events = ?2, pipelines = ?3, expire_ms = ?4";
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &s, NULL) != SQLITE_OK)
        return db_fail(store, err, "subscribers");
    (void)sqlite3_bind_text(s, 1, subscriber->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 2, subscriber->events, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(s, 3, subscriber->pipelines, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 4, subscriber->expire_ms);
    int result = sqlite3_step(s) == SQLITE_DONE ? 0 : db_fail(store, err, "subscribers");
    (void)sqlite3_finalize(s);
    return result;
}

/* Deletes subscribers whose names are not in the JSON array. Returns how many of them had waiting
 * events. */
static int forget_others(struct pb_job_store *store, const char *names, struct pb_err *err)
{
    static const char waiting[] =
        "UPDATE subscribers AS s SET seq = seq WHERE name NOT IN (SELECT value FROM json_each(?1))"
        " AND EXISTS (SELECT 1 FROM events e WHERE e.seq > s.seq AND " PB_SUBSCRIBER_WANTS ")";
    int n = execute(store, waiting, names, 0, err);
    int rc = n < 0 ? n
                   : execute(store,
                             "DELETE FROM subscribers"
                             " WHERE name NOT IN (SELECT value FROM json_each(?1))",
                             names, 0, err);
    return rc < 0 ? rc : n;
}

static int apply_set(struct pb_job_store *store, struct pb_job_change *change)
{
    struct pb_json *names = pb_json_create(false);
    int rc = 0;
    pb_json_array(names, NULL);
    for (size_t i = 0; i < change->n && rc == 0; i++) {
        pb_json_string(names, NULL, change->subscribers[i].name);
        rc = put(store, &change->subscribers[i], &change->err);
    }
    pb_json_end(names);
    const char *text = pb_json_text(names, NULL);
    if (rc == 0)
        rc = text ? forget_others(store, text, &change->err)
                  : pb_fail(&change->err, PB_E_MEMORY, "out of memory");
    pb_json_destroy(names);
    return rc;
}

int pb_subscribers_set(struct pb_job_store *store, const struct pb_subscriber *all, size_t n,
                       struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_set, .subscribers = all, .n = n};
    return pb_job_store_commit(store, &change, err);
}

static int need(struct pb_job_store *store, const char *name, struct pb_err *err)
{
    sqlite3_stmt *s = pb_job_row_begin(store, PB_SUBSCRIBER_FIND, err);
    if (s == NULL)
        return -EIO;
    (void)sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(s);
    int result = rc == SQLITE_ROW ? 0
                 : rc == SQLITE_DONE
                     ? pb_fail(err, PB_E_NOTIFY_UNKNOWN,
                               "the service has no entry '%.63s' under notify", name)
                     : db_fail(store, err, "subscribers");
    pb_job_row_end(store, s);
    return result;
}

static int apply_ack(struct pb_job_store *store, struct pb_job_change *change)
{
    const char *name = change->subscribers[0].name;
    int rc = need(store, name, &change->err);
    sqlite3_stmt *s = rc == 0 ? pb_job_row_begin(store, PB_SUBSCRIBER_ACK, &change->err) : NULL;
    if (s == NULL)
        return rc ? rc : -EIO;
    (void)sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(s, 2, change->number);
    (void)sqlite3_bind_int(s, 3, change->given_up);
    rc = sqlite3_step(s) == SQLITE_DONE ? 0 : db_fail(store, &change->err, "subscribers");
    pb_job_row_end(store, s);
    return rc;
}

int pb_subscribers_ack(struct pb_job_store *store, const char *name, int64_t seq, bool given_up,
                       struct pb_err *err)
{
    const struct pb_subscriber one = {.name = name};
    struct pb_job_change change = {
        .apply = apply_ack, .subscribers = &one, .n = 1, .number = seq, .given_up = given_up};
    return pb_job_store_commit(store, &change, err);
}

static int read_next(struct pb_job_store *store, const char *name, int limit,
                     void (*visit)(void *user, const struct pb_event *event), void *user,
                     struct pb_err *err)
{
    struct pb_event event;
    int rc = need(store, name, err), n = 0;
    sqlite3_stmt *s = rc == 0 ? pb_job_row_begin(store, PB_SUBSCRIBER_NEXT, err) : NULL;
    if (s == NULL)
        return rc ? rc : -EIO;
    (void)sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int(s, 2, limit);
    for (; (rc = sqlite3_step(s)) == SQLITE_ROW; n++) {
        pb_journal_take(s, &event);
        visit(user, &event);
    }
    int result = rc == SQLITE_DONE ? n : db_fail(store, err, "events");
    pb_job_row_end(store, s);
    return result;
}

int pb_subscribers_next(struct pb_job_store *store, const char *name, int limit,
                        void (*visit)(void *user, const struct pb_event *event), void *user,
                        struct pb_err *err)
{
    pb_job_store_lock(store);
    int rc = read_next(store, name, limit, visit, user, err);
    pb_job_store_unlock(store);
    return rc;
}

static int read_states(struct pb_job_store *store,
                       struct pb_subscriber_state out[PB_SUBSCRIBERS_MAX], struct pb_err *err)
{
    int rc, n = 0;
    sqlite3_stmt *s = pb_job_row_begin(store, PB_SUBSCRIBER_STATES, err);
    if (s == NULL)
        return -EIO;
    (void)sqlite3_bind_int(s, 1, PB_JOURNAL_WAITING_MAX);
    for (; (rc = sqlite3_step(s)) == SQLITE_ROW && n < PB_SUBSCRIBERS_MAX; n++) {
        struct pb_subscriber_state *state = &out[n];
        pb_job_read_text(s, 0, state->name, sizeof state->name);
        state->seq = sqlite3_column_int64(s, 1);
        state->delivered = sqlite3_column_int64(s, 2);
        state->given_up = sqlite3_column_int64(s, 3);
        state->expired = state->expired_before = sqlite3_column_int64(s, 4);
        state->waiting = sqlite3_column_int64(s, 5);
        state->oldest_ms = sqlite3_column_int64(s, 6);
    }
    int result = rc == SQLITE_DONE || rc == SQLITE_ROW ? n : db_fail(store, err, "subscribers");
    pb_job_row_end(store, s);
    return result;
}

int pb_subscribers_states(struct pb_job_store *store,
                          struct pb_subscriber_state out[PB_SUBSCRIBERS_MAX], struct pb_err *err)
{
    pb_job_store_lock(store);
    int rc = read_states(store, out, err);
    pb_job_store_unlock(store);
    return rc;
}

/* --- limits of the journal --- */

/* Expires events. Rows are ordered by time: the first that is young enough ends the search,
 * therefore its cost does not grow with the backlog. After a step back of the wall clock some
 * events expire later. */
static int expire(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
#define LIMIT                                                                                      \
    "max(s.seq, coalesce((SELECT e.seq - 1 FROM events e WHERE e.seq > s.seq AND"                  \
    " e.time_ms >= ?1 - s.expire_ms AND"                                                           \
    " e.seq > (SELECT max(seq) FROM events) - " STR(                                               \
        PB_JOURNAL_MAX) " ORDER BY e.seq LIMIT 1),"                                                \
                        " (SELECT max(seq) FROM events), s.seq))"
    static const char sql[] =
        "UPDATE subscribers AS s SET expired = expired +"
        " (SELECT count(*) FROM events e WHERE e.seq > s.seq AND e.seq <= " LIMIT
        " AND " PB_SUBSCRIBER_WANTS "), seq = " LIMIT " WHERE " LIMIT " > s.seq";
    return execute(store, sql, NULL, wall_ms, err);
#undef LIMIT
}

/* Moves cursors over events that the subscriber does not want. */
static int move_on(struct pb_job_store *store, struct pb_err *err)
{
    static const char sql[] =
        "UPDATE subscribers AS s SET seq = max(seq, coalesce("
        "(SELECT e.seq - 1 FROM events e WHERE e.seq > s.seq AND " PB_SUBSCRIBER_WANTS
        " ORDER BY e.seq LIMIT 1),"
        "(SELECT max(seq) FROM events), seq))";
    return execute(store, sql, NULL, 0, err);
}

static int apply_trim(struct pb_job_store *store, struct pb_job_change *change)
{
    static const char rest[] = "DELETE FROM events WHERE seq IN (SELECT seq FROM events"
                               " WHERE seq <= (SELECT max(seq) FROM events) - " STR(
                                   PB_JOURNAL_KEEP) " AND"
                                                    " seq <= coalesce((SELECT min(seq) FROM "
                                                    "subscribers), 9223372036854775807)"
                                                    " ORDER BY seq LIMIT ?1)";
    int rc = expire(store, change->number, &change->err);
    rc = rc < 0 ? rc : move_on(store, &change->err);
    return rc < 0 ? rc : execute(store, rest, NULL, DELETE_AT_ONCE, &change->err);
}

int pb_journal_trim(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_trim, .number = wall_ms, .bulk = true};
    return pb_job_store_commit(store, &change, err);
}
