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

#define WHAT           "subscribers"
#define DELETE_AT_ONCE 1024

static int put(struct pb_job_store *store, const struct pb_subscriber *subscriber,
               struct pb_err *err)
{
    static const char sql[] =
        "INSERT INTO subscribers (name, seq, events, pipelines, expire_ms) VALUES"
        " (?1, (SELECT seq FROM last_event), ?2, ?3, ?4)"
        " ON CONFLICT (name) DO UPDATE SET events = ?2, pipelines = ?3, expire_ms = ?4";
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    pb_sql_set_text(s, 1, subscriber->name);
    pb_sql_set_text(s, 2, subscriber->events);
    pb_sql_set_text(s, 3, subscriber->pipelines);
    pb_sql_set_int(s, 4, subscriber->expire_ms);
    int rc = pb_job_store_run(store, WHAT, s, err);
    return rc < 0 ? rc : 0;
}

/* Deletes a subscriber. Returns 1 if events wait for it, otherwise 0. */
static int forget(struct pb_job_store *store, const char *name, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT,
        "SELECT 1 FROM subscribers s WHERE s.name = ?1 AND EXISTS"
        " (SELECT 1 FROM events e WHERE e.seq > s.seq AND " PB_SUBSCRIBER_WANTS ")",
        err);
    pb_sql_set_text(s, 1, name);
    const int waits = pb_job_store_step(store, WHAT, s, err);
    pb_sql_finalize(s);
    if (waits < 0)
        return waits;
    s = pb_job_store_prepare(store, WHAT, "DELETE FROM subscribers WHERE name = ?1", err);
    pb_sql_set_text(s, 1, name);
    const int rc = pb_job_store_run(store, WHAT, s, err);
    return rc < 0 ? rc : waits;
}

/* Replaces a name by that of the next subscriber: 1, 0 if absent. */
static int next_name(struct pb_job_store *store, char name[PB_SUBSCRIBER_NAME_MAX + 1],
                     struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(
        store, WHAT, "SELECT name FROM subscribers WHERE name > ?1 ORDER BY name LIMIT 1", err);
    pb_sql_set_text(s, 1, name);
    const int rc = pb_job_store_step(store, WHAT, s, err);
    if (rc > 0)
        pb_sql_read_text(s, 0, name, PB_SUBSCRIBER_NAME_MAX + 1);
    pb_sql_finalize(s);
    return rc;
}

/* Deletes the subscribers that are not in the change. Returns for how many of them events wait. */
static int forget_others(struct pb_job_store *store, struct pb_job_change *change)
{
    char name[PB_SUBSCRIBER_NAME_MAX + 1] = "";
    int rc, n = 0;
    while ((rc = next_name(store, name, &change->err)) > 0) {
        bool stays = false;
        for (size_t i = 0; i < change->n; i++)
            stays = stays || strcmp(change->subscribers[i].name, name) == 0;
        rc = stays ? 0 : forget(store, name, &change->err);
        if (rc < 0)
            return rc;
        n += rc;
    }
    return rc < 0 ? rc : n;
}

static int apply_set(struct pb_job_store *store, struct pb_job_change *change)
{
    int rc = 0;
    for (size_t i = 0; i < change->n && rc == 0; i++)
        rc = put(store, &change->subscribers[i], &change->err);
    return rc < 0 ? rc : forget_others(store, change);
}

int pb_subscribers_set(struct pb_job_store *store, const struct pb_subscriber *all, size_t n,
                       struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_set, .subscribers = all, .n = n};
    return pb_job_store_commit(store, &change, err);
}

static int need(struct pb_job_store *store, const char *name, struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_SUBSCRIBER_FIND, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_text(s, 1, name);
    int rc = pb_job_store_step(store, WHAT, s, err);
    pb_sql_reset(s);
    if (rc == 0)
        return pb_fail(err, PB_E_NOTIFY_UNKNOWN, "the service has no entry '%.63s' under notify",
                       name);
    return rc < 0 ? rc : 0;
}

static int apply_ack(struct pb_job_store *store, struct pb_job_change *change)
{
    const char *name = change->subscribers[0].name;
    int rc = need(store, name, &change->err);
    struct pb_sql_statement *s =
        rc == 0 ? pb_job_row_begin(store, PB_SUBSCRIBER_ACK, &change->err) : NULL;
    if (s == NULL)
        return rc ? rc : -EIO;
    pb_sql_set_text(s, 1, name);
    pb_sql_set_int(s, 2, change->number);
    pb_sql_set_int(s, 3, change->given_up);
    rc = pb_job_store_step(store, WHAT, s, &change->err);
    pb_sql_reset(s);
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
    struct pb_sql_statement *s = rc == 0 ? pb_job_row_begin(store, PB_SUBSCRIBER_NEXT, err) : NULL;
    if (s == NULL)
        return rc ? rc : -EIO;
    pb_sql_set_text(s, 1, name);
    pb_sql_set_int(s, 2, limit);
    for (; (rc = pb_job_store_step(store, "events", s, err)) > 0; n++) {
        pb_journal_take(s, &event);
        visit(user, &event);
    }
    pb_sql_reset(s);
    return rc < 0 ? rc : n;
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
    int rc = 0, n = 0;
    struct pb_sql_statement *s = pb_job_row_begin(store, PB_SUBSCRIBER_STATES, err);
    if (s == NULL)
        return -EIO;
    pb_sql_set_int(s, 1, PB_JOURNAL_WAITING_MAX);
    for (; n < PB_SUBSCRIBERS_MAX && (rc = pb_job_store_step(store, WHAT, s, err)) > 0; n++) {
        struct pb_subscriber_state *state = &out[n];
        pb_sql_read_text(s, 0, state->name, sizeof state->name);
        state->seq = pb_sql_int(s, 1);
        state->delivered = pb_sql_int(s, 2);
        state->given_up = pb_sql_int(s, 3);
        state->expired = state->expired_before = pb_sql_int(s, 4);
        state->waiting = pb_sql_int(s, 5);
        state->oldest_ms = pb_sql_int(s, 6);
    }
    pb_sql_reset(s);
    return rc < 0 ? rc : n;
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

/* Runs a statement with two integers; returns the number of changed rows. */
static int execute(struct pb_job_store *store, const char *sql, int64_t one, int64_t two,
                   struct pb_err *err)
{
    struct pb_sql_statement *s = pb_job_store_prepare(store, WHAT, sql, err);
    pb_sql_set_int(s, 1, one);
    pb_sql_set_int(s, 2, two);
    return pb_job_store_run(store, WHAT, s, err);
}

/* Expires events. Rows are ordered by time: the first that is young enough ends the search,
 * therefore its cost does not grow with the backlog. After a step back of the wall clock some
 * events expire later. */
static int expire(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
    int64_t after = 0;
#define LIMIT                                                                                      \
    "coalesce((SELECT e.seq - 1 FROM events e WHERE e.seq > s.seq AND"                             \
    " e.time_ms >= ?1 - s.expire_ms AND"                                                           \
    " e.seq > ?2 ORDER BY e.seq LIMIT 1),"                                                         \
    " (SELECT max(e.seq) FROM events e WHERE e.seq > s.seq), s.seq)"
    static const char sql[] =
        "UPDATE subscribers AS s SET expired = expired +"
        " (SELECT count(*) FROM events e WHERE e.seq > s.seq AND e.seq <= " LIMIT
        " AND " PB_SUBSCRIBER_WANTS "), seq = " LIMIT " WHERE " LIMIT " > s.seq";
    const int rc = pb_journal_find_newest(store, PB_JOURNAL_MAX, &after, err);
    return rc < 0 ? rc : execute(store, sql, wall_ms, after, err);
#undef LIMIT
}

/* Moves cursors over events that the subscriber does not want. */
static int move_on(struct pb_job_store *store, struct pb_err *err)
{
    static const char sql[] =
        "UPDATE subscribers AS s SET seq = coalesce("
        "(SELECT e.seq - 1 FROM events e WHERE e.seq > s.seq AND " PB_SUBSCRIBER_WANTS
        " ORDER BY e.seq LIMIT 1),"
        "(SELECT max(e.seq) FROM events e WHERE e.seq > s.seq), s.seq)";
    return pb_job_store_run(store, WHAT, pb_job_store_prepare(store, WHAT, sql, err), err);
}

static int apply_trim(struct pb_job_store *store, struct pb_job_change *change)
{
    static const char rest[] =
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= ?1 AND"
        " seq <= coalesce((SELECT min(seq) FROM subscribers), 9223372036854775807)"
        " ORDER BY seq LIMIT ?2)";
    int64_t after = 0;
    int rc = expire(store, change->number, &change->err);
    rc = rc < 0 ? rc : move_on(store, &change->err);
    rc = rc < 0 ? rc : pb_journal_find_newest(store, PB_JOURNAL_KEEP, &after, &change->err);
    return rc < 0 ? rc : execute(store, rest, after, DELETE_AT_ONCE, &change->err);
}

int pb_journal_trim(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err)
{
    struct pb_job_change change = {.apply = apply_trim, .number = wall_ms, .bulk = true};
    return pb_job_store_commit(store, &change, err);
}
