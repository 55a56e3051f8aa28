/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Parameters have types (int8, text, bytea), because they do not always follow from the statement.
 * A kept statement is prepared once for each connection, and again if a parameter has another type
 * than before. Results are binary: integers are read without a text between.
 *
 * Calls of libpq that wait have no limit of time (tcp_user_timeout does not see a stopped server),
 * therefore connections do not block: flush() and await() wait for the socket, and close it at
 * their limit. The server ends a statement before that limit; the limit is for a server that does
 * not answer.
 *
 * Texts of the store may be any bytes, because names of files are; PostgreSQL takes UTF-8 only.
 * Each byte that is not part of it is stored as a character of U+10FF00 to U+10FFFF. */
#include "service/jobs/sql_postgres.h"

#include "config/base/clock.h"
#include "config/base/text_clean.h"
#include "service/jobs/sql_engine.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGE_BYTES 512
#define RETRY_MS      1000 /* between two tries to connect */

/* --- libpq ----------------------------------------------------------------------------------- */

/* The part of libpq-fe.h that is used here: its functions and numbers are the same in all versions
 * of libpq.so.5. */
struct pg_conn;
struct pg_result;
enum { CONNECTION_OK };
enum { RESULT_COMMAND_OK = 1, RESULT_TUPLES_OK = 2 };
enum { FIELD_SQLSTATE = 'C', FIELD_MESSAGE = 'M', FIELD_DETAIL = 'D' };
enum { TYPE_BOOL = 16, TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_INT4 = 23, TYPE_TEXT = 25 };
typedef unsigned type_number; /* Oid */

static struct {
    struct pg_conn *(*PQconnectdbParams)(const char *const *keys, const char *const *values,
                                         int expands_dbname);
    int (*PQstatus)(const struct pg_conn *conn);
    int (*PQsocket)(const struct pg_conn *conn);
    char *(*PQerrorMessage)(const struct pg_conn *conn);
    char *(*PQhost)(const struct pg_conn *conn);
    char *(*PQport)(const struct pg_conn *conn);
    char *(*PQdb)(const struct pg_conn *conn);
    void (*(*PQsetNoticeProcessor)(struct pg_conn *conn, void (*say)(void *, const char *),
                                   void *user))(void *, const char *);
    int (*PQsetnonblocking)(struct pg_conn *conn, int is_on);
    int (*PQsendQuery)(struct pg_conn *conn, const char *text);
    int (*PQsendPrepare)(struct pg_conn *conn, const char *name, const char *text, int n,
                         const type_number *types);
    int (*PQsendQueryParams)(struct pg_conn *conn, const char *text, int n,
                             const type_number *types, const char *const *values,
                             const int *lengths, const int *formats, int result_format);
    int (*PQsendQueryPrepared)(struct pg_conn *conn, const char *name, int n,
                               const char *const *values, const int *lengths, const int *formats,
                               int result_format);
    int (*PQflush)(struct pg_conn *conn);
    int (*PQconsumeInput)(struct pg_conn *conn);
    int (*PQisBusy)(struct pg_conn *conn);
    struct pg_result *(*PQgetResult)(struct pg_conn *conn);
    int (*PQresultStatus)(const struct pg_result *result);
    char *(*PQresultErrorField)(const struct pg_result *result, int field);
    char *(*PQcmdTuples)(struct pg_result *result);
    char *(*PQcmdStatus)(struct pg_result *result);
    int (*PQntuples)(const struct pg_result *result);
    int (*PQnfields)(const struct pg_result *result);
    type_number (*PQftype)(const struct pg_result *result, int column);
    int (*PQgetisnull)(const struct pg_result *result, int row, int column);
    int (*PQgetlength)(const struct pg_result *result, int row, int column);
    char *(*PQgetvalue)(const struct pg_result *result, int row, int column);
    void (*PQclear)(struct pg_result *result);
    void (*PQfinish)(struct pg_conn *conn);
} pq;
static char load_error[MESSAGE_BYTES]; /* "" after load(): libpq is there */

static void load(void)
{
#define NAME(function)                                                                             \
    {                                                                                              \
#function, (void *)&pq.function                                                            \
    }
    static const struct {
        const char *name;
        void *slot;
    } functions[] = {
        NAME(PQconnectdbParams),
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
                           "libpq.so.5 has no function %s: install libpq5 of version 12 or later",
                           functions[i].name);
        (void)memcpy(functions[i].slot, &address, sizeof address);
    }
}

/* --- connection ------------------------------------------------------------------------------ */

struct limits {
    const char *connect_s;     /* for each host of the conninfo */
    int answer_ms;             /* limit of this process for the answer to a statement */
    int statement_ms, lock_ms; /* limits that the server keeps */
};
static const struct limits limits_writer = {"4", 20000, 10000, 5000};
static const struct limits limits_reader = {"2", 5000, 3000, 1000};

struct database {
    struct pb_sql base; /* first member, because sql.c passes it */
    struct pb_postgres_options options;
    const struct limits *limits;
    struct pg_conn *conn; /* NULL: not connected */
    unsigned connects;    /* number of connects: statements of an earlier one are gone */
    unsigned names;       /* number of names of prepared statements */
    bool in_transaction, is_greeting, may_repeat;
    int changes;
    int64_t failed_ms; /* time of the last connect that failed; 0: it did not fail */
    char connect_message[MESSAGE_BYTES];
    char message[MESSAGE_BYTES];
    char place[256];
};

static struct database *of(struct pb_sql *base)
{
    return (struct database *)(void *)base;
}

/* Sets the message. Returns false. */
static bool fail(struct database *db, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail(struct database *db, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(db->message, sizeof db->message, format, list);
    va_end(list);
    return false;
}

bool pb_postgres_refuse(struct pb_sql *base, const char *format, ...)
{
    struct database *db = of(base);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(db->message, sizeof db->message, format, list);
    va_end(list);
    return false;
}

const char *pb_postgres_place(struct pb_sql *base)
{
    return of(base)->place;
}

/* Makes one line of libpq's message. */
static const char *line_of(const char *message, char out[MESSAGE_BYTES])
{
    (void)pb_text_clean(message, out, MESSAGE_BYTES);
    return out[0] != '\0' ? out : "no reason given";
}

static void note_place(struct database *db)
{
    const char *host = pq.PQhost(db->conn), *port = pq.PQport(db->conn), *name = pq.PQdb(db->conn);
    (void)snprintf(db->place, sizeof db->place, "PostgreSQL at %.100s, port %.10s, database %.60s",
                   host != NULL && host[0] != '\0' ? host : "the default socket",
                   port != NULL ? port : "?", name != NULL ? name : "?");
}

/* Closes the connection without a wait: a full socket would hold PQfinish. */
static void drop(struct database *db)
{
    if (db->conn == NULL)
        return;
    const int fd = pq.PQsocket(db->conn);
    if (fd >= 0 && pq.PQstatus(db->conn) != CONNECTION_OK)
        (void)shutdown(fd, SHUT_RDWR);
    pq.PQfinish(db->conn);
    db->conn = NULL;
}

static bool lose(struct database *db, const char *why)
{
    char line[MESSAGE_BYTES];
    (void)line_of(why, line);
    if (db->conn != NULL && pq.PQsocket(db->conn) >= 0)
        (void)shutdown(pq.PQsocket(db->conn), SHUT_RDWR);
    drop(db);
    return fail(db, "the connection to %s was lost: %.300s", db->place, line);
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

/* Waits for the results of what was sent: the first that failed, or the last one, which the caller
 * clears. NULL: the connection is lost. */
static struct pg_result *await(struct database *db)
{
    const int64_t end_ms = pb_clock_mono_ms() + db->limits->answer_ms;
    struct pg_result *kept = NULL, *result;
    for (;;) {
        int left = pq.PQflush(db->conn);
        while (left == 1 || pq.PQisBusy(db->conn) != 0) {
            const short events = (short)(POLLIN | (left == 1 ? POLLOUT : 0));
            if (pq.PQsocket(db->conn) < 0)
                break;
            if (!wait_for(pq.PQsocket(db->conn), events, end_ms)) {
                pq.PQclear(kept);
                (void)lose(db, "it does not answer");
                return NULL;
            }
            if (pq.PQconsumeInput(db->conn) == 0)
                break;
            left = left == 1 ? pq.PQflush(db->conn) : left;
        }
        if ((result = pq.PQgetResult(db->conn)) == NULL)
            break;
        const int status = kept != NULL ? pq.PQresultStatus(kept) : RESULT_COMMAND_OK;
        const bool is_good = status == RESULT_COMMAND_OK || status == RESULT_TUPLES_OK;
        pq.PQclear(is_good ? kept : result);
        kept = is_good ? result : kept;
    }
    if (pq.PQstatus(db->conn) == CONNECTION_OK)
        return kept;
    char why[MESSAGE_BYTES];
    (void)snprintf(why, sizeof why, "%s", pq.PQerrorMessage(db->conn));
    pq.PQclear(kept);
    (void)lose(db, why);
    return NULL;
}

/* Notes a failed result, which is cleared; false. */
static bool note_failure(struct database *db, struct pg_result *result)
{
    const char *state = pq.PQresultErrorField(result, FIELD_SQLSTATE),
               *message = pq.PQresultErrorField(result, FIELD_MESSAGE),
               *detail = pq.PQresultErrorField(result, FIELD_DETAIL);
    char line[MESSAGE_BYTES], more[MESSAGE_BYTES];
    state = state != NULL ? state : "";
    /* unique_violation, serialization_failure, deadlock_detected */
    db->may_repeat =
        strcmp(state, "23505") == 0 || strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0;
    /* read_only_sql_transaction: this server takes no changes any more, another one may. */
    const bool is_read_only = strcmp(state, "25006") == 0;
    (void)fail(db, "%.250s%s%.150s [%.5s]",
               line_of(message != NULL ? message : pq.PQerrorMessage(db->conn), line),
               detail != NULL ? ": " : "", detail != NULL ? line_of(detail, more) : "", state);
    pq.PQclear(result);
    if (is_read_only && !db->options.is_reader)
        (void)lose(db, "it became a read-only copy");
    return false;
}

/* Takes the result of what was sent: true and *out (NULL: cleared), or false and the message. */
static bool take_result(struct database *db, int was_sent, struct pg_result **out)
{
    if (was_sent == 0)
        return lose(db, pq.PQerrorMessage(db->conn));
    struct pg_result *result = await(db);
    if (result == NULL)
        return false;
    const int status = pq.PQresultStatus(result);
    if (status != RESULT_COMMAND_OK && status != RESULT_TUPLES_OK)
        return note_failure(db, result);
    if (out != NULL)
        *out = result;
    else
        pq.PQclear(result);
    return true;
}

static bool run_texts(struct database *db, const char *texts)
{
    db->may_repeat = false;
    return take_result(db, pq.PQsendQuery(db->conn, texts), NULL);
}

static void ignore_notice(void *user, const char *text)
{
    (void)user;
    (void)text;
}

/* Sets what every connection needs. A server that notices a dead client late would keep its locks.
 */
static bool set_session(struct database *db)
{
    char texts[1024];
    (void)snprintf(texts, sizeof texts,
                   "SET search_path = pushbroom; SET statement_timeout = %d; SET lock_timeout = %d;"
                   " SET idle_in_transaction_session_timeout = 20000; SET tcp_keepalives_idle = 5;"
                   " SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
                   " SET standard_conforming_strings = on; SET jit = off;"
                   " SET default_transaction_isolation = 'read committed';"
                   " SET default_transaction_read_only = %s;"
                   " SELECT set_config('synchronous_commit', 'on', false)"
                   " WHERE current_setting('synchronous_commit') = 'off'",
                   db->limits->statement_ms, db->limits->lock_ms,
                   db->options.is_reader ? "on" : "off");
    return run_texts(db, texts);
}

static bool connect_now(struct database *db)
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
    const char *const values[] = {
        db->limits->connect_s, "10000",      "5",    "2", "3", "disable", db->options.conninfo,
        db->options.program,   "read-write", "UTF8", NULL};
    char line[MESSAGE_BYTES];
    db->conn = pq.PQconnectdbParams(keys, values, 1);
    if (db->conn == NULL)
        return fail(db, "out of memory for a connection");
    if (pq.PQstatus(db->conn) != CONNECTION_OK)
        return fail(db, "%.400s", line_of(pq.PQerrorMessage(db->conn), line));
    note_place(db);
    db->connects++;
    (void)pq.PQsetNoticeProcessor(db->conn, ignore_notice, NULL);
    if (pq.PQsetnonblocking(db->conn, 1) != 0)
        return fail(db, "out of memory for a connection");
    if (!set_session(db))
        return false;
    db->is_greeting = true;
    const bool is_welcome =
        db->options.greet == NULL || db->options.greet(&db->base, db->options.user);
    db->is_greeting = false;
    return is_welcome && db->conn != NULL;
}

/* Connects unless that is done. A server that is down is not tried by every call. */
static bool ensure_connected(struct database *db)
{
    if (db->conn != NULL && pq.PQstatus(db->conn) == CONNECTION_OK)
        return true;
    if (db->is_greeting)
        return false;
    drop(db);
    if (db->failed_ms != 0 && pb_clock_mono_ms() - db->failed_ms < RETRY_MS)
        return fail(db, "%s", db->connect_message);
    if (connect_now(db)) {
        db->failed_ms = 0;
        return true;
    }
    (void)memcpy(db->connect_message, db->message, sizeof db->connect_message);
    db->failed_ms = pb_clock_mono_ms();
    drop(db);
    return false;
}

bool pb_postgres_execute(struct pb_sql *base, const char *texts)
{
    struct database *db = of(base);
    return db->conn != NULL ? run_texts(db, texts)
                            : fail(db, "there is no connection to %s", db->place);
}

/* --- texts ----------------------------------------------------------------------------------- */

#define IS_ESCAPE(c)                                                                               \
    ((unsigned char)(c)[0] == 0xf4 && (unsigned char)(c)[1] == 0x8f &&                             \
     ((unsigned char)(c)[2] | 1) == 0xbf)

/* Bytes of the character, which is stored as it is; 0: its first byte is escaped. */
static size_t plain_bytes(const char *text)
{
    uint32_t code;
    if ((unsigned char)text[0] < 0x80)
        return 1;
    const size_t n = pb_text_character(text, &code);
    return n == 4 && IS_ESCAPE(text) ? 0 : n;
}

static bool is_plain(const char *text)
{
    size_t n = 1;
    for (; *text != '\0' && n > 0; text += n)
        n = plain_bytes(text);
    return n > 0;
}

/* Makes a text of UTF-8 of any text, which restore() makes that text again. NULL: out of memory.
 */
static char *escape(const char *text)
{
    char *out = malloc(4 * strlen(text) + 1), *to = out;
    if (out == NULL)
        return NULL;
    while (*text != '\0') {
        size_t n = plain_bytes(text);
        if (n > 0) {
            (void)memcpy(to, text, n);
            to += n;
        } else {
            const unsigned char byte = (unsigned char)*text;
            *to++ = (char)0xf4;
            *to++ = (char)0x8f;
            *to++ = (char)(0xbc | byte >> 6);
            *to++ = (char)(0x80 | (byte & 0x3f));
            n = 1;
        }
        text += n;
    }
    *to = '\0';
    return out;
}

/* Undoes escape() in place. */
static void restore(char *text)
{
    char *to = strchr(text, (char)0xf4);
    for (const char *from = to; from != NULL;) {
        if (IS_ESCAPE(from)) {
            *to++ = (char)(((unsigned char)from[2] & 3) << 6 | ((unsigned char)from[3] & 0x3f));
            from += 4;
        } else if ((*to++ = *from++) == '\0') {
            break;
        }
    }
}

/* --- statements ------------------------------------------------------------------------------ */

struct parameter {
    type_number type; /* 0: it was never set; the server decides */
    const char *value;
    char *copy;
    char number[24];
};

struct statement {
    struct pb_sql_statement base; /* first member, because sql.c passes it */
    struct database *of;
    char *text;
    int n; /* parameters */
    struct parameter *parameter;
    /* Arrays of n for libpq. */
    const char **values;
    int *lengths, *formats;
    type_number *types; /* types of the prepared statement */
    bool is_kept, is_out_of_memory;
    unsigned connect; /* connect that knows the prepared statement; 0: not prepared */
    char name[16];
    struct pg_result *result; /* NULL: not run */
    int row;                  /* present row; -1: before the first */
};

static struct statement *statement_of(struct pb_sql_statement *base)
{
    return (struct statement *)(void *)base;
}

/* Copies a name or a literal with its quotes. */
static const char *copy_quoted(const char *from, char **to)
{
    const char quote = *from;
    do
        *(*to)++ = *from++;
    while (*from != '\0' && *from != quote);
    if (*from != '\0')
        *(*to)++ = *from++;
    return from;
}

/* Writes the statement with $N for ?N and ?, and without INDEXED BY. Returns the number of its
 * parameters. */
static int translate(const char *from, char *to)
{
    static const char indexed[] = " INDEXED BY ";
    int last = 0, most = 0;
    while (*from != '\0') {
        if (*from == '\'' || *from == '"') {
            from = copy_quoted(from, &to);
        } else if (*from == '?') {
            char *end;
            const long number = strtol(from + 1, &end, 10);
            last = end > from + 1 ? (int)number : last + 1;
            most = last > most ? last : most;
            from = end;
            to += sprintf(to, "$%d", last);
        } else if (strncmp(from, indexed, sizeof indexed - 1) == 0) {
            from += sizeof indexed - 1;
            from += strspn(from, "abcdefghijklmnopqrstuvwxyz_0123456789");
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
    return most;
}

static void destroy(struct statement *s)
{
    for (int i = 0; s->parameter != NULL && i < s->n; i++)
        free(s->parameter[i].copy);
    free(s->text);
    free(s->parameter);
    free((void *)s->values);
    free(s->lengths);
    free(s->formats);
    free(s->types);
    free(s);
}

static const struct pb_sql_engine engine;

static struct pb_sql_statement *prepare(struct pb_sql *base, const char *text, bool is_kept)
{
    struct database *db = of(base);
    struct statement *s = calloc(1, sizeof *s);
    if (s != NULL)
        s->text = malloc(4 * strlen(text) + 1); /* "?" becomes at most "$999" */
    if (s == NULL || s->text == NULL) {
        free(s);
        (void)fail(db, "out of memory for a statement");
        return NULL;
    }
    s->base.engine = &engine;
    s->of = db;
    s->is_kept = is_kept;
    s->row = -1;
    s->n = translate(text, s->text);
    const size_t n = s->n > 0 ? (size_t)s->n : 1;
    s->parameter = calloc(n, sizeof *s->parameter);
    s->values = calloc(n, sizeof *s->values);
    s->lengths = calloc(n, sizeof *s->lengths);
    s->formats = calloc(n, sizeof *s->formats);
    s->types = calloc(n, sizeof *s->types);
    if (s->parameter == NULL || s->values == NULL || s->lengths == NULL || s->formats == NULL ||
        s->types == NULL) {
        destroy(s);
        (void)fail(db, "out of memory for a statement");
        return NULL;
    }
    return &s->base;
}

/* Returns the parameter, ready to be set; NULL if the statement has fewer. */
static struct parameter *parameter_of(struct statement *s, int at, type_number type)
{
    if (at < 1 || at > s->n)
        return NULL;
    struct parameter *p = &s->parameter[at - 1];
    free(p->copy);
    p->copy = NULL;
    p->type = type;
    s->values[at - 1] = NULL;
    s->lengths[at - 1] = s->formats[at - 1] = 0;
    return p;
}

static void set_int(struct pb_sql_statement *base, int at, int64_t value)
{
    struct statement *s = statement_of(base);
    struct parameter *p = parameter_of(s, at, TYPE_INT8);
    if (p == NULL)
        return;
    (void)snprintf(p->number, sizeof p->number, "%lld", (long long)value);
    s->values[at - 1] = p->number;
}

static void set_text(struct pb_sql_statement *base, int at, const char *text)
{
    struct statement *s = statement_of(base);
    struct parameter *p = parameter_of(s, at, TYPE_TEXT);
    if (p == NULL || text == NULL)
        return;
    if (!is_plain(text)) {
        p->copy = escape(text);
        s->is_out_of_memory = s->is_out_of_memory || p->copy == NULL;
        text = p->copy;
    }
    s->values[at - 1] = text;
}

static bool copy_text(struct pb_sql_statement *base, int at, const char *text, size_t bytes)
{
    struct statement *s = statement_of(base);
    struct parameter *p = parameter_of(s, at, TYPE_TEXT);
    if (p == NULL || text == NULL)
        return p != NULL;
    p->copy = strndup(text, bytes);
    if (p->copy != NULL && !is_plain(p->copy)) {
        char *escaped = escape(p->copy);
        free(p->copy);
        p->copy = escaped;
    }
    s->values[at - 1] = p->copy;
    return p->copy != NULL;
}

static void set_blob(struct pb_sql_statement *base, int at, const void *data, size_t bytes)
{
    struct statement *s = statement_of(base);
    struct parameter *p = parameter_of(s, at, TYPE_BYTEA);
    if (p == NULL || data == NULL)
        return;
    s->values[at - 1] = data;
    s->lengths[at - 1] = (int)bytes;
    s->formats[at - 1] = 1;
}

/* Prepares the statement on the server, unless this connection knows it with these types. A
 * parameter that is NULL this time keeps the type that it had. */
static bool prepare_there(struct statement *s)
{
    struct database *db = s->of;
    bool is_same = s->connect == db->connects;
    for (int i = 0; i < s->n; i++) {
        is_same = is_same && s->types[i] == s->parameter[i].type;
        s->types[i] = s->parameter[i].type;
    }
    if (is_same)
        return true;
    if (s->connect == db->connects) {
        char text[40];
        (void)snprintf(text, sizeof text, "DEALLOCATE %s", s->name);
        s->connect = 0;
        if (!take_result(db, pq.PQsendQuery(db->conn, text), NULL))
            return false;
    }
    (void)snprintf(s->name, sizeof s->name, "s%u", db->names++);
    if (!take_result(db, pq.PQsendPrepare(db->conn, s->name, s->text, s->n, s->types), NULL))
        return false;
    s->connect = db->connects;
    return true;
}

/* Sends the statement and takes its result. */
static bool run_once(struct statement *s)
{
    struct database *db = s->of;
    db->may_repeat = false;
    if (!s->is_kept) {
        for (int i = 0; i < s->n; i++)
            s->types[i] = s->parameter[i].type;
        return take_result(db,
                           pq.PQsendQueryParams(db->conn, s->text, s->n, s->types, s->values,
                                                s->lengths, s->formats, 1),
                           &s->result);
    }
    return prepare_there(s) &&
           take_result(db,
                       pq.PQsendQueryPrepared(db->conn, s->name, s->n, s->values, s->lengths,
                                              s->formats, 1),
                       &s->result);
}

/* Runs the statement; a query outside a transaction is run again after its connection was lost. */
static bool run(struct statement *s)
{
    struct database *db = s->of;
    if (s->is_out_of_memory)
        return fail(db, "out of memory for a parameter");
    if (db->in_transaction)
        return db->conn != NULL
                   ? run_once(s)
                   : fail(db, "the connection to %s was lost in a transaction", db->place);
    if (!ensure_connected(db))
        return false;
    if (run_once(s))
        return true;
    return db->conn == NULL && strncmp(s->text, "SELECT", 6) == 0 && ensure_connected(db) &&
           run_once(s);
}

static void restore_texts(struct pg_result *result)
{
    const int rows = pq.PQntuples(result), columns = pq.PQnfields(result);
    for (int column = 0; column < columns; column++)
        for (int row = 0; row < rows && pq.PQftype(result, column) == TYPE_TEXT; row++)
            restore(pq.PQgetvalue(result, row, column));
}

static enum pb_sql_result step(struct pb_sql_statement *base)
{
    struct statement *s = statement_of(base);
    if (s->result == NULL) {
        if (!run(s))
            return PB_SQL_FAILED;
        s->of->changes = atoi(pq.PQcmdTuples(s->result));
        restore_texts(s->result);
    }
    return ++s->row < pq.PQntuples(s->result) ? PB_SQL_ROW : PB_SQL_DONE;
}

static bool is_null(struct pb_sql_statement *base, int at)
{
    const struct statement *s = statement_of(base);
    return s->result == NULL || s->row < 0 || s->row >= pq.PQntuples(s->result) ||
           at >= pq.PQnfields(s->result) || pq.PQgetisnull(s->result, s->row, at) != 0;
}

static int64_t read_int(struct pb_sql_statement *base, int at)
{
    const struct statement *s = statement_of(base);
    uint64_t value = 0;
    if (is_null(base, at))
        return 0;
    const type_number type = pq.PQftype(s->result, at);
    const unsigned char *bytes = (const unsigned char *)pq.PQgetvalue(s->result, s->row, at);
    const int n = pq.PQgetlength(s->result, s->row, at);
    if (type != TYPE_INT8 && type != TYPE_INT4 && type != TYPE_BOOL)
        return 0;
    for (int i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return type == TYPE_INT4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

static const char *read_text(struct pb_sql_statement *base, int at)
{
    const struct statement *s = statement_of(base);
    return is_null(base, at) || pq.PQftype(s->result, at) != TYPE_TEXT
               ? NULL
               : pq.PQgetvalue(s->result, s->row, at);
}

static const void *read_blob(struct pb_sql_statement *base, int at, size_t *out_bytes)
{
    const struct statement *s = statement_of(base);
    *out_bytes = 0;
    if (is_null(base, at) || pq.PQftype(s->result, at) != TYPE_BYTEA)
        return NULL;
    *out_bytes = (size_t)pq.PQgetlength(s->result, s->row, at);
    return pq.PQgetvalue(s->result, s->row, at);
}

static void reset(struct pb_sql_statement *base)
{
    struct statement *s = statement_of(base);
    if (s->result != NULL)
        pq.PQclear(s->result);
    s->result = NULL;
    s->row = -1;
    s->is_out_of_memory = false;
    for (int i = 0; i < s->n; i++) {
        free(s->parameter[i].copy);
        s->parameter[i].copy = NULL;
        s->values[i] = NULL;
        s->lengths[i] = s->formats[i] = 0;
    }
}

static void finalize(struct pb_sql_statement *base)
{
    reset(base);
    destroy(statement_of(base));
}

/* --- transactions ---------------------------------------------------------------------------- */

static bool begin(struct pb_sql *base)
{
    struct database *db = of(base);
    db->in_transaction = false;
    /* Nothing is lost with a connection that was lost while it was idle. */
    for (int i = 0; i < 2 && !db->in_transaction; i++) {
        if (!ensure_connected(db))
            return false;
        db->in_transaction = run_texts(db, "BEGIN");
        if (!db->in_transaction && db->conn != NULL)
            return false;
    }
    return db->in_transaction;
}

/* The server answers COMMIT with ROLLBACK, which is no failure, if a statement has failed. */
static bool commit(struct pb_sql *base)
{
    struct database *db = of(base);
    struct pg_result *result = NULL;
    if (db->conn == NULL)
        return fail(db, "the connection to %s was lost in a transaction", db->place);
    db->may_repeat = false;
    if (!take_result(db, pq.PQsendQuery(db->conn, "COMMIT"), &result))
        return db->conn != NULL ? false
                                : fail(db,
                                       "the connection to %s was lost while a change was"
                                       " stored, which may be there or not",
                                       db->place);
    const bool is_done = strcmp(pq.PQcmdStatus(result), "COMMIT") == 0;
    pq.PQclear(result);
    db->in_transaction = false;
    return is_done || fail(db, "a statement of the transaction failed");
}

static void rollback(struct pb_sql *base)
{
    struct database *db = of(base);
    char message[MESSAGE_BYTES];
    const bool may_repeat = db->may_repeat;
    if (!db->in_transaction)
        return;
    (void)memcpy(message, db->message, sizeof message);
    db->in_transaction = false;
    if (db->conn != NULL && !run_texts(db, "ROLLBACK"))
        drop(db);
    (void)memcpy(db->message, message, sizeof message);
    db->may_repeat = may_repeat;
}

static int changes(struct pb_sql *base)
{
    return of(base)->changes;
}

static const char *message(struct pb_sql *base)
{
    return of(base)->message;
}

static bool may_repeat(struct pb_sql *base)
{
    return of(base)->may_repeat;
}

static uint64_t steps(struct pb_sql *base)
{
    (void)base;
    return 0;
}

static void close_database(struct pb_sql *base)
{
    struct database *db = of(base);
    drop(db);
    free(db);
}

static const struct pb_sql_engine engine = {
    .prepare = prepare,
    .set_int = set_int,
    .set_text = set_text,
    .set_blob = set_blob,
    .copy_text = copy_text,
    .step = step,
    .read_int = read_int,
    .text = read_text,
    .blob = read_blob,
    .is_null = is_null,
    .reset = reset,
    .finalize = finalize,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .changes = changes,
    .message = message,
    .may_repeat = may_repeat,
    .steps = steps,
    .close = close_database,
};

int pb_postgres_open(const struct pb_postgres_options *options, struct pb_err *err,
                     struct pb_sql **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load);
    if (load_error[0] != '\0')
        return pb_fail(err, PB_E_SERVICE_STATE, "%s", load_error);
    struct database *db = calloc(1, sizeof *db);
    if (db == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    db->base.engine = &engine;
    db->options = *options;
    db->limits = options->is_reader ? &limits_reader : &limits_writer;
    if (!ensure_connected(db)) {
        int rc = pb_fail(err, PB_E_SERVICE_STATE, "job store: %s", db->message);
        close_database(&db->base);
        return rc;
    }
    *out = &db->base;
    return 0;
}
