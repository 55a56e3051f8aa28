/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Passes each call to the engine of its connection or statement. */
#include "service/jobs/sql.h"

#include "service/jobs/sql_engine.h"

#include <string.h>

struct pb_sql_statement *pb_sql_prepare(struct pb_sql *db, const char *text, bool is_kept)
{
    return db->engine->prepare(db, text, is_kept);
}

void pb_sql_set_int(struct pb_sql_statement *s, int at, int64_t value)
{
    if (s != NULL)
        s->engine->set_int(s, at, value);
}

void pb_sql_set_text(struct pb_sql_statement *s, int at, const char *text)
{
    if (s != NULL)
        s->engine->set_text(s, at, text);
}

void pb_sql_set_blob(struct pb_sql_statement *s, int at, const void *data, size_t bytes)
{
    if (s != NULL)
        s->engine->set_blob(s, at, data, bytes);
}

bool pb_sql_copy_text(struct pb_sql_statement *s, int at, const char *text, size_t bytes)
{
    return s != NULL && s->engine->copy_text(s, at, text, bytes);
}

enum pb_sql_result pb_sql_step(struct pb_sql_statement *s)
{
    return s->engine->step(s);
}

int64_t pb_sql_int(struct pb_sql_statement *s, int at)
{
    return s->engine->read_int(s, at);
}

const char *pb_sql_text(struct pb_sql_statement *s, int at)
{
    return s->engine->text(s, at);
}

const void *pb_sql_blob(struct pb_sql_statement *s, int at, size_t *out_bytes)
{
    return s->engine->blob(s, at, out_bytes);
}

bool pb_sql_is_null(struct pb_sql_statement *s, int at)
{
    return s->engine->is_null(s, at);
}

void pb_sql_read_text(struct pb_sql_statement *s, int at, char *out, size_t bytes)
{
    const char *text = s->engine->text(s, at);
    const size_t n = text != NULL ? strnlen(text, bytes - 1) : 0;
    if (n > 0)
        (void)memcpy(out, text, n);
    out[n] = '\0';
}

void pb_sql_reset(struct pb_sql_statement *s)
{
    if (s != NULL)
        s->engine->reset(s);
}

void pb_sql_finalize(struct pb_sql_statement *s)
{
    if (s != NULL)
        s->engine->finalize(s);
}

bool pb_sql_run_all(struct pb_sql_statement *s, const struct pb_sql_runs *runs)
{
    bool ok = true;
    if (s->engine->run_all != NULL)
        return s->engine->run_all(s, runs);
    for (size_t i = 0; ok && i < runs->n; i++) {
        const enum pb_sql_result result =
            runs->set(runs->user, i, s) ? pb_sql_step(s) : PB_SQL_FAILED;
        ok = result != PB_SQL_FAILED;
        if (ok && runs->read != NULL)
            runs->read(runs->user, i, s, result == PB_SQL_ROW);
        pb_sql_reset(s);
    }
    return ok;
}

bool pb_sql_begin(struct pb_sql *db)
{
    return db->engine->begin(db);
}

bool pb_sql_commit(struct pb_sql *db)
{
    return db->engine->commit(db);
}

void pb_sql_rollback(struct pb_sql *db)
{
    db->engine->rollback(db);
}

int pb_sql_changes(struct pb_sql *db)
{
    return db->engine->changes(db);
}

const char *pb_sql_message(struct pb_sql *db)
{
    return db->engine->message(db);
}

bool pb_sql_may_repeat(struct pb_sql *db)
{
    return db->engine->may_repeat(db);
}

uint64_t pb_sql_steps(struct pb_sql *db)
{
    return db->engine->steps(db);
}

void pb_sql_close(struct pb_sql *db)
{
    if (db != NULL)
        db->engine->close(db);
}
