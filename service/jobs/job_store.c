/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One table, one row for each job. The kind of a store (sql_engine.h) opens its database. */
#include "service/jobs/job_store.h"

#include "config/base/clock.h"
#include "service/base/files.h"
#include "service/jobs/sql_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static struct pb_job_store *allocate(const struct pb_store_kind *kind)
{
    struct pb_job_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->kind = kind;
    store->looked = store->unseen = -1;
    (void)pthread_mutex_init(&store->lock, NULL);
    (void)pthread_cond_init(&store->freed, NULL);
    STAILQ_INIT(&store->changes);
    return store;
}

int pb_job_store_create(const struct pb_store_place *place, struct pb_err *err,
                        struct pb_job_store **out_store)
{
    const bool is_database = place->postgresql != NULL;
    struct pb_job_store *store = allocate(is_database ? &pb_store_postgres : &pb_store_sqlite);
    if (store == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    store->is_shared = place->is_shared;
    (void)snprintf(store->node, sizeof store->node, "%s", place->node != NULL ? place->node : "");
    const int n = is_database ? snprintf(store->place, sizeof store->place, "%s", place->postgresql)
                              : pb_files_join(store->place, place->directory, "jobs.db");
    if (n < 0 || n >= (int)sizeof store->place) {
        pb_job_store_close(store);
        return pb_fail(err, PB_E_SERVICE_STATE, "the path of the job store is too long");
    }
    *out_store = store;
    return 0;
}

/* Number that no other connect has. It is not counted in the database, because a store on a full
 * disk can be opened. */
int64_t pb_job_store_make_session(void)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint64_t)pb_clock_wall_ms() << 20;
    return (int64_t)(number >> 1) | 1;
}

int pb_job_store_connect(struct pb_job_store *store, struct pb_err *err, char out_moved[4096])
{
    out_moved[0] = '\0';
    int rc = store->kind->open(store, err, out_moved, &store->db);
    if (rc != 0)
        return rc;
    store->session = pb_job_store_make_session();
    rc = pb_service_time_load(store, err);
    if (rc == 0)
        pb_job_row_count(store);
    else /* connected again later */
        pb_job_store_disconnect(store);
    return rc;
}

int pb_job_store_open(const struct pb_store_place *place, struct pb_err *err, char out_moved[4096],
                      struct pb_job_store **out_store)
{
    struct pb_job_store *store = NULL;
    int rc = pb_job_store_create(place, err, &store);
    if (rc != 0)
        return rc;
    rc = pb_job_store_connect(store, err, out_moved);
    if (rc == 0)
        *out_store = store;
    else
        pb_job_store_close(store);
    return rc;
}

void pb_job_store_disconnect(struct pb_job_store *store)
{
    if (store->db != NULL && store->time.boot_ms > 0)
        (void)pb_job_store_save_time(store, NULL);
    for (size_t i = 0; i < sizeof store->statement / sizeof store->statement[0]; i++)
        pb_sql_finalize(store->statement[i]);
    for (size_t i = 0; i < sizeof store->list / sizeof store->list[0]; i++)
        pb_sql_finalize(store->list[i]);
    (void)memset(store->statement, 0, sizeof store->statement);
    (void)memset(store->list, 0, sizeof store->list);
    if (store->kind->shut != NULL)
        store->kind->shut(store);
    pb_sql_close(store->db);
    store->db = NULL;
}

void pb_job_store_close(struct pb_job_store *store)
{
    if (store == NULL)
        return;
    pb_job_store_disconnect(store);
    (void)pthread_cond_destroy(&store->freed);
    (void)pthread_mutex_destroy(&store->lock);
    free(store->needs);
    free(store);
}

int pb_job_store_ready(struct pb_job_store *store, struct pb_err *err)
{
    if (store->db != NULL)
        return 0;
    if (store->of != NULL && atomic_load(&store->of->admits))
        return store->kind->open_reader(store, err, &store->db);
    return pb_fail(err, PB_E_SERVICE_STATE,
                   "the job store is not open yet; 'pushbroom status' shows the reason, and "
                   "opening is tried again");
}

int pb_job_store_fail(struct pb_job_store *store, const char *what, struct pb_err *err)
{
    return pb_fail(err, PB_E_SERVICE_STATE, "job store: %s: %s", what, pb_sql_message(store->db));
}

struct pb_sql_statement *pb_job_store_prepare(struct pb_job_store *store, const char *what,
                                              const char *text, struct pb_err *err)
{
    if (pb_job_store_ready(store, err) != 0)
        return NULL;
    struct pb_sql_statement *s = pb_sql_prepare(store->db, text, false);
    if (s == NULL)
        (void)pb_job_store_fail(store, what, err);
    return s;
}

int pb_job_store_step(struct pb_job_store *store, const char *what, struct pb_sql_statement *s,
                      struct pb_err *err)
{
    if (s == NULL)
        return -EIO;
    const enum pb_sql_result result = pb_sql_step(s);
    return result == PB_SQL_ROW    ? 1
           : result == PB_SQL_DONE ? 0
                                   : pb_job_store_fail(store, what, err);
}

int pb_job_store_run(struct pb_job_store *store, const char *what, struct pb_sql_statement *s,
                     struct pb_err *err)
{
    int rc = pb_job_store_step(store, what, s, err);
    rc = rc == 0 ? pb_sql_changes(store->db) : rc;
    pb_sql_finalize(s);
    return rc;
}

int pb_job_store_open_reader(const struct pb_store_place *place, struct pb_err *err,
                             struct pb_job_store **out_store)
{
    struct pb_job_store *store = NULL;
    int rc = pb_job_store_create(place, err, &store);
    rc = rc ? rc : store->kind->open_reader(store, err, &store->db);
    if (rc == 0)
        *out_store = store;
    else
        pb_job_store_close(store);
    return rc;
}

int pb_job_store_create_reader(const struct pb_job_store *store, struct pb_err *err,
                               struct pb_job_store **out_reader)
{
    struct pb_job_store *reader = allocate(store->kind);
    if (reader == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    (void)memcpy(reader->place, store->place, sizeof reader->place);
    (void)memcpy(reader->node, store->node, sizeof reader->node);
    reader->is_shared = store->is_shared;
    reader->of = store;
    *out_reader = reader;
    return 0;
}

void pb_job_store_admit_readers(struct pb_job_store *store)
{
    atomic_store(&store->admits, true);
}
