/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_STORE_SQL_H
#define PB_JOB_STORE_SQL_H
/* Inside the job store: job_store.c opens and closes the database, job_rows.c reads and changes its
 * rows. Nobody else includes this. */
#include "service/job_store.h"

#include "service/files.h"

#include <sqlite3.h>
#include <stdatomic.h>

enum pb_job_statement {
    PB_JOB_INSERT,
    PB_JOB_UPDATE,
    PB_JOB_FIND_ID,
    PB_JOB_FIND_TAIL,
    PB_JOB_NEXT,
    PB_JOB_COUNTS,
    PB_JOB_STATEMENTS
};

struct pb_job_store {
    sqlite3 *db; /* NULL: not connected */
    char path[PB_FILES_PATH_BYTES];
    atomic_bool admits;            /* readers may connect */
    const struct pb_job_store *of; /* of a reader that connects when that one admits it */
    /* Prepared at the first use, reset after each. */
    sqlite3_stmt *statement[PB_JOB_STATEMENTS];
    sqlite3_stmt *list[PB_JOB_MASK_ALL + 1u]; /* by mask of states */
    uint64_t steps;
};

/* Connects a reader that may. service.state when there is no database to ask. */
int pb_job_store_ready(struct pb_job_store *store, struct pb_err *err);

#define PB_JOB_COLUMNS_FIXED "id, name, created_ms, uid, "
#define PB_JOB_COLUMNS_SET                                                                         \
    "status, owned, scene, pipeline, input, attempts, started_ms, updated_ms, finished_ms,"        \
    " progress, stage, device, tiles_done, tiles_total, bytes_read, bytes_written, elapsed_ms,"    \
    " directory, products, report, error_code, error_message, error_hint, device_why, identity"
#define PB_JOB_COLUMNS "seq, " PB_JOB_COLUMNS_FIXED PB_JOB_COLUMNS_SET

/* The last four characters of an id, backwards: what jobs_by_tail sorts by. */
#define PB_JOB_TAIL                                                                                \
    "substr(id, -1, 1) || substr(id, -2, 1) || substr(id, -3, 1) || substr(id, -4, 1)"
#define PB_JOB_TAIL_CHARS 4
#endif
