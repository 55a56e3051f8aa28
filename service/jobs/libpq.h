/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LIBPQ_H
#define PB_LIBPQ_H
/* libpq, and a connection over it with limits of time: the part of the engine of PostgreSQL
 * (sql_postgres.c) that knows no statements. libpq is loaded by the first connect of a process and
 * not before. Every call ends within the limits of its connection, whatever the server and the
 * network do (the resolver of host names excepted). Functions that return false have set the
 * message. Thread: one at a time for each connection. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The part of libpq-fe.h that is used here. All versions of libpq.so.5 have the same functions and
 * numbers. */
struct pg_conn;
struct pg_result;
struct pg_notify { /* the first members of PGnotify */
    char *channel;
    int backend;
    char *text;
};
enum { PB_PQ_CONNECTION_OK };
enum { PB_PQ_RESULT_COMMAND_OK = 1, PB_PQ_RESULT_TUPLES_OK = 2, PB_PQ_RESULT_SYNC = 10 };
enum { PB_PQ_FIELD_SQLSTATE = 'C', PB_PQ_FIELD_MESSAGE = 'M', PB_PQ_FIELD_DETAIL = 'D' };
enum {
    PB_PQ_TYPE_BOOL = 16,
    PB_PQ_TYPE_BYTEA = 17,
    PB_PQ_TYPE_INT8 = 20,
    PB_PQ_TYPE_INT4 = 23,
    PB_PQ_TYPE_TEXT = 25
};
typedef unsigned pb_pq_type; /* Oid */

extern struct pb_pq_functions {
    struct pg_conn *(*PQconnectdbParams)(const char *const *keys, const char *const *values,
                                         int expands_dbname);
    int (*PQconnectionNeedsPassword)(const struct pg_conn *conn);
    int (*PQconnectionUsedPassword)(const struct pg_conn *conn);
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
                         const pb_pq_type *types);
    int (*PQsendQueryParams)(struct pg_conn *conn, const char *text, int n, const pb_pq_type *types,
                             const char *const *values, const int *lengths, const int *formats,
                             int result_format);
    int (*PQsendQueryPrepared)(struct pg_conn *conn, const char *name, int n,
                               const char *const *values, const int *lengths, const int *formats,
                               int result_format);
    int (*PQenterPipelineMode)(struct pg_conn *conn);
    int (*PQpipelineSync)(struct pg_conn *conn);
    int (*PQexitPipelineMode)(struct pg_conn *conn);
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
    pb_pq_type (*PQftype)(const struct pg_result *result, int column);
    int (*PQgetisnull)(const struct pg_result *result, int row, int column);
    int (*PQgetlength)(const struct pg_result *result, int row, int column);
    char *(*PQgetvalue)(const struct pg_result *result, int row, int column);
    void (*PQclear)(struct pg_result *result);
    struct pg_notify *(*PQnotifies)(struct pg_conn *conn);
    void (*PQfreemem)(void *memory);
    void (*PQfinish)(struct pg_conn *conn);
} pb_pq;

#define PB_LIBPQ_MESSAGE_BYTES 512

struct pb_libpq_limits;
/* A connection. The caller sets the first members before the first connect, the others are zero
 * then and read only. */
struct pb_libpq {
    const char *conninfo; /* connection string of libpq; borrowed, as program is */
    const char *program;  /* application_name of the connection */
    bool is_reader;       /* changes are refused, and the limits are short */
    bool takes_any;       /* connects to a server that takes no changes as well */
    /* Called after each connect; false: the connection is refused with the message. NULL: none. */
    bool (*greet)(struct pb_libpq *db, void *user);
    void *user;

    struct pg_conn *conn; /* NULL: not connected */
    unsigned connects;    /* number of connects: statements of an earlier one are gone */
    bool is_greeting;
    bool may_repeat; /* the last failure is that another transaction changed the same rows first */
    const struct pb_libpq_limits *limits;
    int64_t failed_ms; /* time of the last connect that failed; 0: it did not fail */
    char connect_message[PB_LIBPQ_MESSAGE_BYTES];
    char message[PB_LIBPQ_MESSAGE_BYTES];
    char place[256]; /* server, port and database in words */
};

/* Loads libpq, once for each process. */
int pb_libpq_load(struct pb_err *err);
/* Connects to a server that takes changes, unless that is done. Not every call tries a server that
 * is down. */
bool pb_libpq_connect(struct pb_libpq *db);
/* Closes the connection without a wait. */
void pb_libpq_drop(struct pb_libpq *db);
/* Sets the message. Returns false. */
bool pb_libpq_fail(struct pb_libpq *db, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Takes the result of a call of libpq that sends, which returned was_sent: true and *out, which the
 * caller clears (out NULL: cleared), or false. A connection that fails is dropped. */
bool pb_libpq_take(struct pb_libpq *db, int was_sent, struct pg_result **out);
/* Begins to send prepared statements whose results are awaited together. */
bool pb_libpq_begin_batch(struct pb_libpq *db);
/* Ends the batch: `take` gets the result of each statement, in order, and clears it. Returns false
 * if a statement failed; later ones were not run then. was_sent: as after the last call that
 * sent. */
bool pb_libpq_end_batch(struct pb_libpq *db, int was_sent,
                        void (*take)(void *user, struct pg_result *result), void *user);
/* Reads without a wait what the server sent. For each notification on a channel of LISTEN, notified
 * is called with its text. False: the connection is lost; drop it. */
bool pb_libpq_notified(struct pb_libpq *db, void (*notified)(void *user, const char *text),
                       void *user);
/* Runs statements without parameters, separated by semicolons. */
bool pb_libpq_run(struct pb_libpq *db, const char *texts);
#endif
