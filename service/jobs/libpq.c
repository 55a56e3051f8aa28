/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Calls of libpq that wait have no limit of time (tcp_user_timeout does not see a stopped server),
 * therefore connections do not block: await() waits for the socket, and closes it at its limit. The
 * server ends a statement before that limit; the limit is for a server that does not answer. */
#include "service/jobs/libpq.h"

#include "config/base/clock.h"
#include "config/base/text_clean.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define RETRY_MS 1000 /* between two tries to connect */

static char load_error[PB_LIBPQ_MESSAGE_BYTES]; /* "" after load(): libpq is there */

struct pb_pq_functions pb_pq;

static void load(void)
{
#define NAME(function)                                                                             \
    {                                                                                              \
#function, (void *)&pb_pq.function                                                         \
    }
    static const struct {
        const char *name;
        void *slot;
    } functions[] = {
        NAME(PQconnectdbParams),
        NAME(PQconnectionNeedsPassword),
        NAME(PQconnectionUsedPassword),
        NAME(PQstatus),
        NAME(PQsocket),
        NAME(PQerrorMessage),
        NAME(PQhost),
        NAME(PQport),
        NAME(PQdb),
        NAME(PQsetNoticeProcessor),
        NAME(PQsetnonblocking),
        NAME(PQsendQuery),
        NAME(PQsendPrepare),
        NAME(PQsendQueryParams),
        NAME(PQsendQueryPrepared),
        NAME(PQenterPipelineMode),
        NAME(PQpipelineSync),
        NAME(PQexitPipelineMode),
        NAME(PQflush),
        NAME(PQconsumeInput),
        NAME(PQisBusy),
        NAME(PQgetResult),
        NAME(PQresultStatus),
        NAME(PQresultErrorField),
        NAME(PQcmdTuples),
        NAME(PQcmdStatus),
        NAME(PQntuples),
        NAME(PQnfields),
        NAME(PQftype),
        NAME(PQgetisnull),
        NAME(PQgetlength),
        NAME(PQgetvalue),
        NAME(PQclear),
        NAME(PQnotifies),
        NAME(PQfreemem),
        NAME(PQfinish),
    };
#undef NAME
    void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)snprintf(load_error, sizeof load_error,
                       "the library of PostgreSQL cannot be loaded (%s): install libpq5",
                       dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *address = dlsym(library, functions[i].name);
        if (address == NULL)
            (void)snprintf(load_error, sizeof load_error,
                           "libpq.so.5 has no function %s: install libpq5 of version 14 or later",
                           functions[i].name);
        (void)memcpy(functions[i].slot, &address, sizeof address);
    }
}

int pb_libpq_load(struct pb_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    return load_error[0] == '\0' ? 0 : pb_fail(err, PB_E_SERVICE_STATE, "%s", load_error);
}

/* --- connection ------------------------------------------------------------------------------ */

struct pb_libpq_limits {
    const char *connect_s;     /* for each host of the conninfo */
    int answer_ms;             /* limit of this process for the answer to a statement */
    int statement_ms, lock_ms; /* limits that the server keeps */
};
static const struct pb_libpq_limits limits_writer = {"4", 20000, 10000, 5000};
static const struct pb_libpq_limits limits_reader = {"2", 5000, 3000, 1000};

bool pb_libpq_fail(struct pb_libpq *db, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(db->message, sizeof db->message, format, list);
    va_end(list);
    return false;
}

/* Makes one line of libpq's message. */
static const char *line_of(const char *message, char out[PB_LIBPQ_MESSAGE_BYTES])
{
    (void)pb_text_clean(message, out, PB_LIBPQ_MESSAGE_BYTES);
    return out[0] != '\0' ? out : "no reason given";
}

static void note_place(struct pb_libpq *db)
{
    const char *host = pb_pq.PQhost(db->conn), *port = pb_pq.PQport(db->conn),
               *name = pb_pq.PQdb(db->conn);
    (void)snprintf(db->place, sizeof db->place, "PostgreSQL at %.100s, port %.10s, database %.60s",
                   host != NULL && host[0] != '\0' ? host : "the default socket",
                   port != NULL ? port : "?", name != NULL ? name : "?");
}

/* A full socket would hold PQfinish. */
void pb_libpq_drop(struct pb_libpq *db)
{
    if (db->conn == NULL)
        return;
    const int fd = pb_pq.PQsocket(db->conn);
    if (fd >= 0 && pb_pq.PQstatus(db->conn) != PB_PQ_CONNECTION_OK)
        (void)shutdown(fd, SHUT_RDWR);
    pb_pq.PQfinish(db->conn);
    db->conn = NULL;
}

static bool lose(struct pb_libpq *db, const char *why)
{
    char line[PB_LIBPQ_MESSAGE_BYTES];
    (void)line_of(why, line);
    if (db->conn != NULL && pb_pq.PQsocket(db->conn) >= 0)
        (void)shutdown(pb_pq.PQsocket(db->conn), SHUT_RDWR);
    pb_libpq_drop(db);
    return pb_libpq_fail(db, "the connection to %s was lost: %.300s", db->place, line);
}

/* Waits for the socket. False: the limit has passed. */
static bool wait_for(int fd, short events, int64_t end_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    int64_t left_ms;
    int rc;
    do {
        left_ms = end_ms - pb_clock_mono_ms();
        rc = poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 0);
    } while ((rc < 0 && errno == EINTR) || (rc == 0 && left_ms > 0));
    return rc > 0;
}

/* Waits for the next result of what was sent, NULL at the end of each statement. False: the
 * connection is lost. */
static bool next_result(struct pb_libpq *db, int64_t end_ms, struct pg_result **out)
{
    int left = pb_pq.PQflush(db->conn);
    while (left == 1 || pb_pq.PQisBusy(db->conn) != 0) {
        const short events = (short)(POLLIN | (left == 1 ? POLLOUT : 0));
        if (pb_pq.PQsocket(db->conn) < 0)
            break;
        if (!wait_for(pb_pq.PQsocket(db->conn), events, end_ms))
            return lose(db, "it does not answer");
        if (pb_pq.PQconsumeInput(db->conn) == 0)
            break;
        left = left == 1 ? pb_pq.PQflush(db->conn) : left;
    }
    *out = pb_pq.PQgetResult(db->conn);
    if (*out != NULL || pb_pq.PQstatus(db->conn) == PB_PQ_CONNECTION_OK)
        return true;
    char why[PB_LIBPQ_MESSAGE_BYTES];
    (void)snprintf(why, sizeof why, "%s", pb_pq.PQerrorMessage(db->conn));
    return lose(db, why);
}

static bool is_good(const struct pg_result *result)
{
    const int status = pb_pq.PQresultStatus(result);
    return status == PB_PQ_RESULT_COMMAND_OK || status == PB_PQ_RESULT_TUPLES_OK;
}

/* Waits for the results of what was sent: the first that failed, or the last one, which the caller
 * clears. NULL: the connection is lost. */
static struct pg_result *await(struct pb_libpq *db)
{
    const int64_t end_ms = pb_clock_mono_ms() + db->limits->answer_ms;
    struct pg_result *kept = NULL, *result;
    for (;;) {
        if (!next_result(db, end_ms, &result)) {
            pb_pq.PQclear(kept);
            return NULL;
        }
        if (result == NULL)
            return kept;
        const bool keeps = kept != NULL && !is_good(kept);
        pb_pq.PQclear(keeps ? result : kept);
        kept = keeps ? kept : result;
    }
}

/* Notes a failed result, which is cleared; false. */
static bool note_failure(struct pb_libpq *db, struct pg_result *result)
{
    const char *state = pb_pq.PQresultErrorField(result, PB_PQ_FIELD_SQLSTATE),
               *message = pb_pq.PQresultErrorField(result, PB_PQ_FIELD_MESSAGE),
               *detail = pb_pq.PQresultErrorField(result, PB_PQ_FIELD_DETAIL);
    char line[PB_LIBPQ_MESSAGE_BYTES], more[PB_LIBPQ_MESSAGE_BYTES];
    state = state != NULL ? state : "";
    /* unique_violation, serialization_failure, deadlock_detected */
    db->may_repeat =
        strcmp(state, "23505") == 0 || strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0;
    /* read_only_sql_transaction: this server takes no changes any more, another one may. */
    const bool is_read_only = strcmp(state, "25006") == 0;
    (void)pb_libpq_fail(db, "%.250s%s%.150s [%.5s]",
                        line_of(message != NULL ? message : pb_pq.PQerrorMessage(db->conn), line),
                        detail != NULL ? ": " : "", detail != NULL ? line_of(detail, more) : "",
                        state);
    pb_pq.PQclear(result);
    if (is_read_only && !db->is_reader)
        (void)lose(db, "it became a read-only copy");
    return false;
}

bool pb_libpq_take(struct pb_libpq *db, int was_sent, struct pg_result **out)
{
    if (was_sent == 0)
        return lose(db, pb_pq.PQerrorMessage(db->conn));
    struct pg_result *result = await(db);
    if (result == NULL)
        return false;
    if (!is_good(result))
        return note_failure(db, result);
    if (out != NULL)
        *out = result;
    else
        pb_pq.PQclear(result);
    return true;
}

bool pb_libpq_begin_batch(struct pb_libpq *db)
{
    db->may_repeat = false;
    return pb_pq.PQenterPipelineMode(db->conn) != 0 || lose(db, pb_pq.PQerrorMessage(db->conn));
}

bool pb_libpq_end_batch(struct pb_libpq *db, int was_sent,
                        void (*take)(void *user, struct pg_result *result), void *user)
{
    struct pg_result *result = NULL;
    bool ok = true, is_end = false;
    if (was_sent == 0 || pb_pq.PQpipelineSync(db->conn) == 0)
        return lose(db, pb_pq.PQerrorMessage(db->conn));
    while (!is_end) {
        if (!next_result(db, pb_clock_mono_ms() + db->limits->answer_ms, &result))
            return false;
        is_end = pb_pq.PQresultStatus(result) == PB_PQ_RESULT_SYNC;
        if (ok && result != NULL && is_good(result))
            take(user, result);
        else if (ok && result != NULL && !is_end)
            ok = note_failure(db, result);
        else
            pb_pq.PQclear(result);
        if (db->conn == NULL)
            return false;
    }
    return pb_pq.PQexitPipelineMode(db->conn) != 0 ? ok : lose(db, pb_pq.PQerrorMessage(db->conn));
}

bool pb_libpq_run(struct pb_libpq *db, const char *texts)
{
    db->may_repeat = false;
    return pb_libpq_take(db, pb_pq.PQsendQuery(db->conn, texts), NULL);
}

bool pb_libpq_notified(struct pb_libpq *db, void (*notified)(void *user, const char *text),
                       void *user)
{
    struct pg_notify *notify;
    const bool is_there = pb_pq.PQconsumeInput(db->conn) != 0;
    while ((notify = pb_pq.PQnotifies(db->conn)) != NULL) {
        notified(user, notify->text);
        pb_pq.PQfreemem(notify);
    }
    return is_there || pb_libpq_fail(db, "the connection to %s was lost", db->place);
}

static void ignore_notice(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* Sets what every connection needs. A server that notices a dead client late would keep its locks;
 * those of a client that sleeps in a transaction are free before others give up waiting. Statements
 * use indexes, and their order: of young tables without statistics the server would read all rows,
 * or sort all that wait. */
static bool set_session(struct pb_libpq *db)
{
    char texts[1024];
    (void)snprintf(
        texts, sizeof texts,
        "SET search_path = pushbroom; SET statement_timeout = %d; SET lock_timeout = %d;"
        " SET idle_in_transaction_session_timeout = 4000; SET tcp_keepalives_idle = 5;"
        " SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
        " SET standard_conforming_strings = on; SET jit = off;"
        " SET enable_seqscan = off; SET enable_hashjoin = off;"
        " SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_sort = off;"
        " SET default_transaction_isolation = 'read committed';"
        " SET default_transaction_read_only = %s;"
        " SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'",
        db->limits->statement_ms, db->limits->lock_ms, db->is_reader ? "on" : "off");
    return pb_libpq_run(db, texts);
}

static bool connect_now(struct pb_libpq *db)
{
    /* The conninfo may change what is before it. */
    const char *const keys[] = {"connect_timeout",
                                "tcp_user_timeout",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "gssencmode",
                                "dbname",
                                "application_name",
                                "target_session_attrs",
                                "client_encoding",
                                NULL};
    const char *const values[] = {db->limits->connect_s,
                                  "10000",
                                  "5",
                                  "2",
                                  "3",
                                  "disable",
                                  db->conninfo,
                                  db->program,
                                  db->takes_any ? "any" : "read-write",
                                  "UTF8",
                                  NULL};
    char line[PB_LIBPQ_MESSAGE_BYTES];
    db->conn = pb_pq.PQconnectdbParams(keys, values, 1);
    if (db->conn == NULL)
        return pb_libpq_fail(db, "out of memory for a connection");
    if (pb_pq.PQstatus(db->conn) != PB_PQ_CONNECTION_OK)
        return pb_libpq_fail(db, "%.300s%s", line_of(pb_pq.PQerrorMessage(db->conn), line),
                             pb_pq.PQconnectionNeedsPassword(db->conn) != 0
                                 ? ": name a file that has the password, passfile=FILE"
                                 : "");
    note_place(db);
    db->connects++;
    (void)pb_pq.PQsetNoticeProcessor(db->conn, ignore_notice, NULL);
    if (pb_pq.PQsetnonblocking(db->conn, 1) != 0)
        return pb_libpq_fail(db, "out of memory for a connection");
    if (!set_session(db))
        return false;
    db->is_greeting = true;
    const bool is_welcome = db->greet == NULL || db->greet(db, db->user);
    db->is_greeting = false;
    return is_welcome && db->conn != NULL;
}

bool pb_libpq_connect(struct pb_libpq *db)
{
    db->limits = db->is_reader ? &limits_reader : &limits_writer;
    if (db->conn != NULL && pb_pq.PQstatus(db->conn) == PB_PQ_CONNECTION_OK)
        return true;
    if (db->is_greeting)
        return false;
    pb_libpq_drop(db);
    if (db->failed_ms != 0 && pb_clock_mono_ms() - db->failed_ms < RETRY_MS)
        return pb_libpq_fail(db, "%s", db->connect_message);
    if (connect_now(db)) {
        db->failed_ms = 0;
        return true;
    }
    (void)memcpy(db->connect_message, db->message, sizeof db->connect_message);
    db->failed_ms = pb_clock_mono_ms();
    pb_libpq_drop(db);
    return false;
}
