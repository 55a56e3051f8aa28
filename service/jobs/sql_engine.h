/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SQL_ENGINE_H
#define PB_SQL_ENGINE_H
/* Engines of sql.h: each is a table of functions, and a kind of store that it opens. Private to
 * sql.c, job_store.c and the files of engines. */
#include "service/jobs/job_store_sql.h"
#include "service/jobs/sql.h"

/* The functions of sql.h, whose words hold here; `s` is never NULL. */
struct pb_sql_engine {
    struct pb_sql_statement *(*prepare)(struct pb_sql *db, const char *text, bool is_kept);
    void (*set_int)(struct pb_sql_statement *s, int at, int64_t value);
    void (*set_text)(struct pb_sql_statement *s, int at, const char *text);
    void (*set_blob)(struct pb_sql_statement *s, int at, const void *data, size_t bytes);
    bool (*copy_text)(struct pb_sql_statement *s, int at, const char *text, size_t bytes);
    enum pb_sql_result (*step)(struct pb_sql_statement *s);
    /* NULL: each run is a step. */
    bool (*run_all)(struct pb_sql_statement *s, const struct pb_sql_runs *runs);
    int64_t (*read_int)(struct pb_sql_statement *s, int at);
    const char *(*text)(struct pb_sql_statement *s, int at);
    const void *(*blob)(struct pb_sql_statement *s, int at, size_t *out_bytes);
    bool (*is_null)(struct pb_sql_statement *s, int at);
    void (*reset)(struct pb_sql_statement *s);
    void (*finalize)(struct pb_sql_statement *s);
    bool (*begin)(struct pb_sql *db);
    bool (*commit)(struct pb_sql *db);
    void (*rollback)(struct pb_sql *db);
    int (*changes)(struct pb_sql *db);
    const char *(*message)(struct pb_sql *db);
    bool (*may_repeat)(struct pb_sql *db);
    uint64_t (*steps)(struct pb_sql *db);
    void (*close)(struct pb_sql *db);
};

/* First members of an engine's own structs. */
struct pb_sql {
    const struct pb_sql_engine *engine;
};
struct pb_sql_statement {
    const struct pb_sql_engine *engine;
};

/* How the store of an engine is opened. `store->place` is where. */
struct pb_store_kind {
    /* Connects for changes; makes or upgrades the tables. out_moved (4096 bytes, "" before) gets
     * the new name of a damaged store, if it was moved aside. */
    int (*open)(struct pb_job_store *store, struct pb_err *err, char out_moved[4096],
                struct pb_sql **out);
    /* Connects to a store that is open, for reading only. */
    int (*open_reader)(struct pb_job_store *store, struct pb_err *err, struct pb_sql **out);
    /* Frees what belongs to the connection, before that is closed. */
    void (*shut)(struct pb_job_store *store);
    /* Makes a stored transaction visible for readers; called after each one. NULL: it is. */
    void (*settle)(struct pb_job_store *store);
    /* Reads the service time of services that share the store; it is not saved. NULL: the time of
     * this service, which is saved in the store. */
    int (*read_time)(struct pb_job_store *store, struct pb_err *err, int64_t *out_ms);
};
extern const struct pb_store_kind pb_store_sqlite;   /* place: path of the file */
extern const struct pb_store_kind pb_store_postgres; /* place: conninfo */
#endif
