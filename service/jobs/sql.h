/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SQL_H
#define PB_SQL_H
/* One connection to a database of the job store, and its statements, for every engine
 * (sql_engine.h). An engine is a database: SQLite is sql_sqlite.c. The texts of statements are the
 * same for all engines: parameters are ?1, ?2 ... or all ?; "rowid" is a column that numbers the
 * rows. An engine leaves out what it does not know. INDEXED BY is for SQLite. For all others a last
 * " FOR UPDATE" keeps a row until the end of the transaction, and " FOR UPDATE SKIP LOCKED" also
 * leaves out the rows that others keep. Functions and views that only one engine has (pb_wants,
 * last_event) are made by the schema of the other.
 *
 * A statement that fails ends its transaction, which must be rolled back. Thread: one at a time. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_sql;
struct pb_sql_statement;

enum pb_sql_result {
    PB_SQL_DONE,  /* no (more) row; a change is made */
    PB_SQL_ROW,   /* a row can be read */
    PB_SQL_FAILED /* see pb_sql_message */
};

/* Prepares a statement. is_kept: it is used often and lives as long as the connection. NULL on
 * failure. Free with pb_sql_finalize before the connection is closed. */
struct pb_sql_statement *pb_sql_prepare(struct pb_sql *db, const char *text, bool is_kept);
/* Sets parameter `at` (from 1); nothing happens for s NULL. Parameters that are not set are NULL,
 * and remain set until pb_sql_reset. text and blob are borrowed until then; NULL is NULL. */
void pb_sql_set_int(struct pb_sql_statement *s, int at, int64_t value);
void pb_sql_set_text(struct pb_sql_statement *s, int at, const char *text);
void pb_sql_set_blob(struct pb_sql_statement *s, int at, const void *data, size_t bytes);
/* Sets a copy of a text. False if out of memory. */
bool pb_sql_copy_text(struct pb_sql_statement *s, int at, const char *text, size_t bytes);
/* Runs the statement, or reads its next row. */
enum pb_sql_result pb_sql_step(struct pb_sql_statement *s);
/* Reads column `at` (from 0) of the present row: 0 or NULL for NULL. Texts and blobs are borrowed
 * until the next step, reset or finalize. */
int64_t pb_sql_int(struct pb_sql_statement *s, int at);
const char *pb_sql_text(struct pb_sql_statement *s, int at);
const void *pb_sql_blob(struct pb_sql_statement *s, int at, size_t *out_bytes);
bool pb_sql_is_null(struct pb_sql_statement *s, int at);
/* Reads a text, cut to fit; "" for NULL. */
void pb_sql_read_text(struct pb_sql_statement *s, int at, char *out, size_t bytes);
/* Ends the statement, which can run again, and forgets its parameters. */
void pb_sql_reset(struct pb_sql_statement *s);    /* NULL is allowed */
void pb_sql_finalize(struct pb_sql_statement *s); /* NULL is allowed */

/* Runs of one statement with other parameters each. */
struct pb_sql_runs {
    size_t n;
    /* Sets the parameters of run i; false ends the runs. */
    bool (*set)(void *user, size_t i, struct pb_sql_statement *s);
    /* Reads the first row of run i, which may be called after later calls of set. NULL: none. */
    void (*read)(void *user, size_t i, struct pb_sql_statement *s, bool has_row);
    void *user;
};
/* Runs a kept statement of a transaction n times, in order; over a network they take the time of
 * one. False if one failed or was not set. The statement is reset. */
bool pb_sql_run_all(struct pb_sql_statement *s, const struct pb_sql_runs *runs);

/* Begins a transaction that may write: false, see pb_sql_message. */
bool pb_sql_begin(struct pb_sql *db);
/* Ends it; after false it must be rolled back. Over a network it may have been stored even then. */
bool pb_sql_commit(struct pb_sql *db);
void pb_sql_rollback(struct pb_sql *db); /* nothing happens outside a transaction */
/* Rows that the last statement changed. */
int pb_sql_changes(struct pb_sql *db);
/* The last failure in words, borrowed until the next call. */
const char *pb_sql_message(struct pb_sql *db);
/* True if the last failure, since begin, is that another transaction changed the same rows first (a
 * unique row, a deadlock): the same transaction, repeated, sees the stored rows of that one. */
bool pb_sql_may_repeat(struct pb_sql *db);
/* Work of all statements so far in steps of the engine: a measure of cost without a clock; 0 if the
 * engine does not count. */
uint64_t pb_sql_steps(struct pb_sql *db);
void pb_sql_close(struct pb_sql *db); /* NULL is allowed */
#endif
