/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_STORE_H
#define PB_JOB_STORE_H
/* The job store (store.h): one SQLite file in the state directory, or a PostgreSQL database. A
 * change that a function reports as done survives a power failure (SQLite: WAL, synchronous=FULL).
 * Progress inside a run is not stored. A file that is damaged, in two successive readings, is moved
 * aside and a new one created; a file that cannot be read, written or upgraded (disk, lock,
 * permission, an older store with a foreign view) stays and does not open: the inputs themselves
 * are in work/, quarantine/ and the archive, therefore no scene depends on it. Changes wait for the
 * disk: the service's loop makes no changes, and reads by a reader of its own. Changes that several
 * threads make at the same time are one transaction with one sync; a failure of one does not affect
 * the others. Thread: any after connect and before disconnect; a reader one at a time. */
#include "service/jobs/store.h"

/* Where a store is. */
struct pb_store_place {
    const char *directory;  /* state directory: the store is its jobs.db */
    const char *postgresql; /* conninfo of libpq: the store is in that database; NULL: it is not */
    const char *node;       /* name of this service in the database */
    bool is_shared;         /* other services may change the store as well; false: refuses them */
};

/* Opens or creates <directory>/jobs.db, or the tables in the database. out_moved (4096 bytes) gets
 * the new name of a damaged file, otherwise "". */
int pb_job_store_open(const struct pb_store_place *place, struct pb_err *err, char out_moved[4096],
                      struct pb_job_store **out_store);
/* Does the same in two steps, for a service that starts while its disk does not respond. create
 * makes a store without a database, whose functions fail with service.state; connect opens its
 * database and may be tried again after a failure. disconnect undoes a connect. */
int pb_job_store_create(const struct pb_store_place *place, struct pb_err *err,
                        struct pb_job_store **out_store);
int pb_job_store_connect(struct pb_job_store *store, struct pb_err *err, char out_moved[4096]);
void pb_job_store_disconnect(struct pb_job_store *store);
void pb_job_store_close(struct pb_job_store *store); /* NULL is allowed */
/* Opens a second, read-only view of an open store for another thread: find, list and counts. It
 * sees committed changes only; neither it nor the writer waits for the other. */
int pb_job_store_open_reader(const struct pb_store_place *place, struct pb_err *err,
                             struct pb_job_store **out_store);
/* Creates a reader of a store that may not be connected yet: the reader connects, at its next use,
 * once the store admits readers. The store must outlive it. Thread: any, before the reader's own.
 */
int pb_job_store_create_reader(const struct pb_job_store *store, struct pb_err *err,
                               struct pb_job_store **out_reader);
/* Lets such readers connect from now on. */
void pb_job_store_admit_readers(struct pb_job_store *store);

/* pb_job_store_checkpoint moves the write-ahead log into the database while other threads may
 * change it. Call it when pb_job_store_log_is_long returns true; one thread at a time. */
bool pb_job_store_log_is_long(const struct pb_job_store *store);
int pb_job_store_checkpoint(struct pb_job_store *store, struct pb_err *err);
/* Steps of SQLite's virtual machine for all calls since the store was connected: a measure of their
 * cost without a clock. */
uint64_t pb_job_store_steps(const struct pb_job_store *store);
#endif
