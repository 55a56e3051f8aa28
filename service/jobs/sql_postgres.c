/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Parameters have types (int8, text, bytea), because they do not always follow from the statement.
 * A kept statement is prepared once for each connection, and again if a parameter has another type
 * than before. Results are binary: integers are read without a text between.
 *
 * Texts of the store may be any bytes, because names of files are; PostgreSQL takes UTF-8 only.
 * Each byte that is not part of it is stored as a character of U+10FF00 to U+10FFFF. */
#include "service/jobs/sql_postgres.h"

#include "config/base/text_clean.h"
#include "service/jobs/libpq.h"
#include "service/jobs/sql_engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct database {
    struct pb_sql base; /* first member, because sql.c passes it */
    struct pb_libpq link;
    bool (*greet)(struct pb_sql *db, void *user);
    void *user;
    unsigned names; /* number of names of prepared statements */
    bool in_transaction;
    int changes;
};

static struct database *of(struct pb_sql *base)
{
    return (struct database *)(void *)base;
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
    pb_pq_type type; /* 0: it was never set; the server decides */
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
    pb_pq_type *types; /* types of the prepared statement */
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
static void reset(struct pb_sql_statement *base);

static struct pb_sql_statement *prepare(struct pb_sql *base, const char *text, bool is_kept)
{
    struct database *db = of(base);
    struct statement *s = calloc(1, sizeof *s);
    if (s != NULL)
        s->text = malloc(4 * strlen(text) + 1); /* "?" becomes at most "$999" */
    if (s == NULL || s->text == NULL) {
        free(s);
        (void)pb_libpq_fail(&db->link, "out of memory for a statement");
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
        (void)pb_libpq_fail(&db->link, "out of memory for a statement");
        return NULL;
    }
    return &s->base;
}

/* Returns the parameter, ready to be set; NULL if the statement has fewer. */
static struct parameter *parameter_of(struct statement *s, int at, pb_pq_type type)
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
    struct parameter *p = parameter_of(s, at, PB_PQ_TYPE_INT8);
    if (p == NULL)
        return;
    (void)snprintf(p->number, sizeof p->number, "%lld", (long long)value);
    s->values[at - 1] = p->number;
}

static void set_text(struct pb_sql_statement *base, int at, const char *text)
{
    struct statement *s = statement_of(base);
    struct parameter *p = parameter_of(s, at, PB_PQ_TYPE_TEXT);
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
    struct parameter *p = parameter_of(s, at, PB_PQ_TYPE_TEXT);
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
    struct parameter *p = parameter_of(s, at, PB_PQ_TYPE_BYTEA);
    if (p == NULL || data == NULL)
        return;
    s->values[at - 1] = data;
    s->lengths[at - 1] = (int)bytes;
    s->formats[at - 1] = 1;
}

static bool has_same_types(const struct statement *s)
{
    bool is_same = true;
    for (int i = 0; i < s->n; i++)
        is_same = is_same && s->types[i] == s->parameter[i].type;
    return is_same;
}

/* Prepares the statement on the server, unless this connection knows it with these types. A
 * parameter that is NULL this time keeps the type that it had. */
static bool prepare_there(struct statement *s)
{
    struct database *db = s->of;
    if (s->connect == db->link.connects && has_same_types(s))
        return true;
    for (int i = 0; i < s->n; i++)
        s->types[i] = s->parameter[i].type;
    if (s->connect == db->link.connects) {
        char text[40];
        (void)snprintf(text, sizeof text, "DEALLOCATE %s", s->name);
        s->connect = 0;
        if (!pb_libpq_take(&db->link, pb_pq.PQsendQuery(db->link.conn, text), NULL))
            return false;
    }
    (void)snprintf(s->name, sizeof s->name, "s%u", db->names++);
    if (!pb_libpq_take(&db->link,
                       pb_pq.PQsendPrepare(db->link.conn, s->name, s->text, s->n, s->types), NULL))
        return false;
    s->connect = db->link.connects;
    return true;
}

/* Sends the statement and takes its result. */
static bool run_once(struct statement *s)
{
    struct database *db = s->of;
    db->link.may_repeat = false;
    if (!s->is_kept) {
        for (int i = 0; i < s->n; i++)
            s->types[i] = s->parameter[i].type;
        return pb_libpq_take(&db->link,
                             pb_pq.PQsendQueryParams(db->link.conn, s->text, s->n, s->types,
                                                     s->values, s->lengths, s->formats, 1),
                             &s->result);
    }
    return prepare_there(s) &&
           pb_libpq_take(&db->link,
                         pb_pq.PQsendQueryPrepared(db->link.conn, s->name, s->n, s->values,
                                                   s->lengths, s->formats, 1),
                         &s->result);
}

/* Runs the statement; a query outside a transaction is run again after its connection was lost. */
static bool run(struct statement *s)
{
    struct database *db = s->of;
    if (s->is_out_of_memory)
        return pb_libpq_fail(&db->link, "out of memory for a parameter");
    if (db->in_transaction)
        return db->link.conn != NULL
                   ? run_once(s)
                   : pb_libpq_fail(&db->link, "the connection to %s was lost in a transaction",
                                   db->link.place);
    if (!pb_libpq_connect(&db->link))
        return false;
    if (run_once(s))
        return true;
    return db->link.conn == NULL && strncmp(s->text, "SELECT", 6) == 0 &&
           pb_libpq_connect(&db->link) && run_once(s);
}

static void restore_texts(struct pg_result *result)
{
    const int rows = pb_pq.PQntuples(result), columns = pb_pq.PQnfields(result);
    for (int column = 0; column < columns; column++)
        for (int row = 0; row < rows && pb_pq.PQftype(result, column) == PB_PQ_TYPE_TEXT; row++)
            restore(pb_pq.PQgetvalue(result, row, column));
}

static enum pb_sql_result step(struct pb_sql_statement *base)
{
    struct statement *s = statement_of(base);
    if (s->result == NULL) {
        if (!run(s))
            return PB_SQL_FAILED;
        s->of->changes = atoi(pb_pq.PQcmdTuples(s->result));
        restore_texts(s->result);
    }
    return ++s->row < pb_pq.PQntuples(s->result) ? PB_SQL_ROW : PB_SQL_DONE;
}

/* --- runs ------------------------------------------------------------------------------------ */

struct batch {
    struct statement *s;
    const struct pb_sql_runs *runs;
    size_t next; /* run whose result is the next one */
};

static void read_run(void *user, struct pg_result *result)
{
    struct batch *batch = user;
    struct statement *s = batch->s;
    const size_t i = batch->next++;
    s->result = result;
    s->row = 0;
    restore_texts(result);
    if (batch->runs->read != NULL)
        batch->runs->read(batch->runs->user, i, &s->base, pb_pq.PQntuples(result) > 0);
    pb_pq.PQclear(result);
    s->result = NULL;
    s->row = -1;
}

static bool set_run(struct statement *s, const struct pb_sql_runs *runs, size_t i)
{
    return i == runs->n || (runs->set(runs->user, i, &s->base) && !s->is_out_of_memory) ||
           pb_libpq_fail(&s->of->link, "out of memory for a parameter");
}

/* Sends runs from *at on, whose parameters are set, while these have the types of the prepared
 * statement. */
static bool send_runs(struct batch *batch, size_t *at)
{
    struct statement *s = batch->s;
    struct pb_libpq *link = &s->of->link;
    bool ok = prepare_there(s) && pb_libpq_begin_batch(link);
    int was_sent;
    if (!ok)
        return false;
    do {
        was_sent = pb_pq.PQsendQueryPrepared(link->conn, s->name, s->n, s->values, s->lengths,
                                             s->formats, 1);
        reset(&s->base);
        ok = set_run(s, batch->runs, ++*at);
    } while (ok && was_sent != 0 && *at < batch->runs->n && has_same_types(s));
    return pb_libpq_end_batch(link, was_sent, read_run, batch) && ok;
}

static bool run_all(struct pb_sql_statement *base, const struct pb_sql_runs *runs)
{
    struct statement *s = statement_of(base);
    struct batch batch = {.s = s, .runs = runs};
    bool ok = s->of->link.conn != NULL
                  ? set_run(s, runs, 0)
                  : pb_libpq_fail(&s->of->link, "the connection to %s was lost in a transaction",
                                  s->of->link.place);
    for (size_t at = 0; ok && at < runs->n;)
        ok = send_runs(&batch, &at);
    reset(base);
    return ok;
}

/* --- results --------------------------------------------------------------------------------- */

static bool is_null(struct pb_sql_statement *base, int at)
{
    const struct statement *s = statement_of(base);
    return s->result == NULL || s->row < 0 || s->row >= pb_pq.PQntuples(s->result) ||
           at >= pb_pq.PQnfields(s->result) || pb_pq.PQgetisnull(s->result, s->row, at) != 0;
}

static int64_t read_int(struct pb_sql_statement *base, int at)
{
    const struct statement *s = statement_of(base);
    uint64_t value = 0;
    if (is_null(base, at))
        return 0;
    const pb_pq_type type = pb_pq.PQftype(s->result, at);
    const unsigned char *bytes = (const unsigned char *)pb_pq.PQgetvalue(s->result, s->row, at);
    const int n = pb_pq.PQgetlength(s->result, s->row, at);
    if (type != PB_PQ_TYPE_INT8 && type != PB_PQ_TYPE_INT4 && type != PB_PQ_TYPE_BOOL)
        return 0;
    for (int i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return type == PB_PQ_TYPE_INT4 ? (int32_t)(uint32_t)value : (int64_t)value;
}

static const char *read_text(struct pb_sql_statement *base, int at)
{
    const struct statement *s = statement_of(base);
    return is_null(base, at) || pb_pq.PQftype(s->result, at) != PB_PQ_TYPE_TEXT
               ? NULL
               : pb_pq.PQgetvalue(s->result, s->row, at);
}

static const void *read_blob(struct pb_sql_statement *base, int at, size_t *out_bytes)
{
    const struct statement *s = statement_of(base);
    *out_bytes = 0;
    if (is_null(base, at) || pb_pq.PQftype(s->result, at) != PB_PQ_TYPE_BYTEA)
        return NULL;
    *out_bytes = (size_t)pb_pq.PQgetlength(s->result, s->row, at);
    return pb_pq.PQgetvalue(s->result, s->row, at);
}

static void reset(struct pb_sql_statement *base)
{
    struct statement *s = statement_of(base);
    if (s->result != NULL)
        pb_pq.PQclear(s->result);
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
        if (!pb_libpq_connect(&db->link))
            return false;
        db->in_transaction = pb_libpq_run(&db->link, "BEGIN");
        if (!db->in_transaction && db->link.conn != NULL)
            return false;
    }
    return db->in_transaction;
}

/* The server answers COMMIT with ROLLBACK, which is no failure, if a statement has failed. */
static bool commit(struct pb_sql *base)
{
    struct database *db = of(base);
    struct pg_result *result = NULL;
    if (db->link.conn == NULL)
        return pb_libpq_fail(&db->link, "the connection to %s was lost in a transaction",
                             db->link.place);
    db->link.may_repeat = false;
    if (!pb_libpq_take(&db->link, pb_pq.PQsendQuery(db->link.conn, "COMMIT"), &result))
        return db->link.conn != NULL
                   ? false
                   : pb_libpq_fail(&db->link,
                                   "the connection to %s was lost while a change was"
                                   " stored, which may be there or not",
                                   db->link.place);
    const bool is_done = strcmp(pb_pq.PQcmdStatus(result), "COMMIT") == 0;
    pb_pq.PQclear(result);
    db->in_transaction = false;
    return is_done || pb_libpq_fail(&db->link, "a statement of the transaction failed");
}

static void rollback(struct pb_sql *base)
{
    struct database *db = of(base);
    char message[PB_LIBPQ_MESSAGE_BYTES];
    const bool may_repeat = db->link.may_repeat;
    if (!db->in_transaction)
        return;
    (void)memcpy(message, db->link.message, sizeof message);
    db->in_transaction = false;
    if (db->link.conn != NULL && !pb_libpq_run(&db->link, "ROLLBACK"))
        pb_libpq_drop(&db->link);
    (void)memcpy(db->link.message, message, sizeof message);
    db->link.may_repeat = may_repeat;
}

static int changes(struct pb_sql *base)
{
    return of(base)->changes;
}

static const char *message(struct pb_sql *base)
{
    return of(base)->link.message;
}

static bool may_repeat(struct pb_sql *base)
{
    return of(base)->link.may_repeat;
}

static uint64_t steps(struct pb_sql *base)
{
    (void)base;
    return 0;
}

static void close_database(struct pb_sql *base)
{
    struct database *db = of(base);
    pb_libpq_drop(&db->link);
    free(db);
}

static const struct pb_sql_engine engine = {
    .prepare = prepare,
    .set_int = set_int,
    .set_text = set_text,
    .set_blob = set_blob,
    .copy_text = copy_text,
    .step = step,
    .run_all = run_all,
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

static bool greet(struct pb_libpq *link, void *user)
{
    struct database *db = user;
    (void)link;
    return db->greet(&db->base, db->user);
}

int pb_postgres_open(const struct pb_postgres_options *options, struct pb_err *err,
                     struct pb_sql **out)
{
    int rc = pb_libpq_load(err);
    if (rc < 0)
        return rc;
    struct database *db = calloc(1, sizeof *db);
    if (db == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    db->base.engine = &engine;
    db->greet = options->greet;
    db->user = options->user;
    db->link.conninfo = options->conninfo;
    db->link.program = options->program;
    db->link.is_reader = options->is_reader;
    db->link.takes_any = options->takes_any;
    db->link.greet = options->greet != NULL ? greet : NULL;
    db->link.user = db;
    if (!pb_libpq_connect(&db->link)) {
        rc = pb_fail(err, PB_E_SERVICE_STATE, "job store: %s", db->link.message);
        close_database(&db->base);
        return rc;
    }
    *out = &db->base;
    return 0;
}

bool pb_postgres_execute(struct pb_sql *base, const char *texts)
{
    struct database *db = of(base);
    return db->link.conn != NULL
               ? pb_libpq_run(&db->link, texts)
               : pb_libpq_fail(&db->link, "there is no connection to %s", db->link.place);
}

bool pb_postgres_refuse(struct pb_sql *base, const char *format, ...)
{
    struct database *db = of(base);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(db->link.message, sizeof db->link.message, format, list);
    va_end(list);
    return false;
}

const char *pb_postgres_place(struct pb_sql *base)
{
    return of(base)->link.place;
}

bool pb_postgres_used_password(struct pb_sql *base)
{
    const struct pb_libpq *link = &of(base)->link;
    return link->conn != NULL && pb_pq.PQconnectionUsedPassword(link->conn) != 0;
}
