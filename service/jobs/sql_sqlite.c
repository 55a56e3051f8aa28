/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/sql_sqlite.h"

#include "config/base/json_reader.h"
#include "service/jobs/sql_engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATTERNS_MAX (1 << 20) /* bytes of the patterns of a subscriber */

/* Array of patterns that was read last: the rows of one subscriber follow each other. */
struct patterns {
    char *text;
    struct pb_json_value *list;
};

struct database {
    struct pb_sql base; /* first member, because sql.c passes it */
    sqlite3 *db;
    uint64_t steps;
    struct patterns events, pipelines;
};

struct statement {
    struct pb_sql_statement base; /* first member, because sql.c passes it */
    sqlite3_stmt *stmt;
    struct database *of;
};

static sqlite3 *db_of(struct pb_sql *db)
{
    return ((struct database *)(void *)db)->db;
}

static sqlite3_stmt *of(struct pb_sql_statement *s)
{
    return ((struct statement *)(void *)s)->stmt;
}

/* Length of the statement without the words for engines in which several transactions write. */
static int length_of(const char *text)
{
    const char *words = strstr(text, " FOR UPDATE");
    return (int)(words != NULL ? (size_t)(words - text) : strlen(text));
}

static struct pb_sql_statement *prepare(struct pb_sql *db, const char *text, bool is_kept)
{
    struct statement *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->base.engine = db->engine;
    s->of = (struct database *)(void *)db;
    if (sqlite3_prepare_v3(s->of->db, text, length_of(text),
                           is_kept ? SQLITE_PREPARE_PERSISTENT : 0, &s->stmt, NULL) == SQLITE_OK)
        return &s->base;
    free(s);
    return NULL;
}

static void set_int(struct pb_sql_statement *s, int at, int64_t value)
{
    (void)sqlite3_bind_int64(of(s), at, value);
}

static void set_text(struct pb_sql_statement *s, int at, const char *text)
{
    (void)sqlite3_bind_text(of(s), at, text, -1, SQLITE_STATIC);
}

static void set_blob(struct pb_sql_statement *s, int at, const void *data, size_t bytes)
{
    (void)sqlite3_bind_blob64(of(s), at, data, bytes, SQLITE_STATIC);
}

static bool copy_text(struct pb_sql_statement *s, int at, const char *text, size_t bytes)
{
    return sqlite3_bind_text64(of(s), at, text, bytes, SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK;
}

static enum pb_sql_result step(struct pb_sql_statement *s)
{
    const int rc = sqlite3_step(of(s));
    return rc == SQLITE_ROW ? PB_SQL_ROW : rc == SQLITE_DONE ? PB_SQL_DONE : PB_SQL_FAILED;
}

static int64_t read_int(struct pb_sql_statement *s, int at)
{
    return sqlite3_column_int64(of(s), at);
}

static const char *text(struct pb_sql_statement *s, int at)
{
    return (const char *)sqlite3_column_text(of(s), at);
}

static const void *blob(struct pb_sql_statement *s, int at, size_t *out_bytes)
{
    const void *data = sqlite3_column_blob(of(s), at);
    *out_bytes = (size_t)sqlite3_column_bytes(of(s), at);
    return data;
}

static bool is_null(struct pb_sql_statement *s, int at)
{
    return sqlite3_column_type(of(s), at) == SQLITE_NULL;
}

static void count_steps(struct pb_sql_statement *s)
{
    ((struct statement *)(void *)s)->of->steps +=
        (uint64_t)sqlite3_stmt_status(of(s), SQLITE_STMTSTATUS_VM_STEP, 1);
}

static void reset(struct pb_sql_statement *s)
{
    count_steps(s);
    (void)sqlite3_reset(of(s));
    (void)sqlite3_clear_bindings(of(s));
}

static void finalize(struct pb_sql_statement *s)
{
    count_steps(s);
    (void)sqlite3_finalize(of(s));
    free(s);
}

static bool execute(struct pb_sql *db, const char *sql)
{
    return sqlite3_exec(db_of(db), sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Takes the lock for writing at once, so that no other transaction changes the rows that it reads.
 */
static bool begin(struct pb_sql *db)
{
    return execute(db, "BEGIN IMMEDIATE");
}

static bool commit(struct pb_sql *db)
{
    return execute(db, "COMMIT");
}

static void rollback(struct pb_sql *db)
{
    if (sqlite3_get_autocommit(db_of(db)) == 0)
        (void)execute(db, "ROLLBACK");
}

static int changes(struct pb_sql *db)
{
    return sqlite3_changes(db_of(db));
}

static const char *message(struct pb_sql *db)
{
    return sqlite3_errmsg(db_of(db));
}

static bool may_repeat(struct pb_sql *db)
{
    (void)db;
    return false;
}

static uint64_t steps(struct pb_sql *db)
{
    return ((struct database *)(void *)db)->steps;
}

static void forget(struct patterns *patterns)
{
    free(patterns->text);
    pb_json_release(patterns->list);
    *patterns = (struct patterns){NULL, NULL};
}

static void close_database(struct pb_sql *base)
{
    struct database *db = (struct database *)(void *)base;
    (void)sqlite3_close(db->db);
    forget(&db->events);
    forget(&db->pipelines);
    free(db);
}

/* --- pb_wants -------------------------------------------------------------------------------- */

/* Reads an array of patterns, if it is not the last one. Returns 0 or a negative errno. */
static int read_patterns(struct patterns *patterns, const char *json)
{
    json = json != NULL ? json : "";
    if (patterns->text != NULL && strcmp(patterns->text, json) == 0)
        return 0;
    forget(patterns);
    int rc = pb_json_parse(json, strlen(json), PATTERNS_MAX, &patterns->list);
    if (rc == 0 && (patterns->text = strdup(json)) == NULL)
        rc = -ENOMEM;
    return rc;
}

static bool matches(const struct patterns *patterns, const char *text)
{
    for (size_t i = 0; text != NULL && i < pb_json_count(patterns->list); i++) {
        const char *pattern = pb_json_text_of(pb_json_at(patterns->list, i));
        if (pattern != NULL && sqlite3_strglob(pattern, text) == 0)
            return true;
    }
    return false;
}

static const char *text_of(sqlite3_value *value)
{
    return (const char *)sqlite3_value_text(value);
}

/* pb_wants(events, pipelines, kind, pipeline): true if one of the patterns of each array matches;
 * no patterns of pipelines match all of them. */
static void wants(sqlite3_context *context, int n, sqlite3_value **value)
{
    struct database *db = sqlite3_user_data(context);
    (void)n;
    int rc = read_patterns(&db->events, text_of(value[0]));
    rc = rc ? rc : read_patterns(&db->pipelines, text_of(value[1]));
    if (rc == -ENOMEM)
        sqlite3_result_error_nomem(context);
    else if (rc != 0)
        sqlite3_result_error(context, "malformed patterns of a subscriber", -1);
    else
        sqlite3_result_int(context, matches(&db->events, text_of(value[2])) &&
                                        (pb_json_count(db->pipelines.list) == 0 ||
                                         matches(&db->pipelines, text_of(value[3]))));
}

struct pb_sql *pb_sql_sqlite(sqlite3 *db)
{
    static const struct pb_sql_engine engine = {
        .prepare = prepare,
        .set_int = set_int,
        .set_text = set_text,
        .set_blob = set_blob,
        .copy_text = copy_text,
        .step = step,
        .read_int = read_int,
        .text = text,
        .blob = blob,
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
    struct database *self = calloc(1, sizeof *self);
    if (self != NULL &&
        sqlite3_create_function(db, "pb_wants", 4, SQLITE_UTF8 | SQLITE_DETERMINISTIC, self, wants,
                                NULL, NULL) == SQLITE_OK) {
        self->base.engine = &engine;
        self->db = db;
        return &self->base;
    }
    (void)sqlite3_close(db);
    free(self);
    return NULL;
}
