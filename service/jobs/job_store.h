/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_STORE_H
#define PB_JOB_STORE_H
/* Durable jobs: one SQLite file in the state directory. A change that a function reports as done
 * survives a power failure (WAL, synchronous=FULL). Progress inside a run is not stored. A file
 * that is damaged, in two successive readings, is moved aside and a new one created; a file that
 * cannot be read, written or upgraded (disk, lock, permission, an older store with a foreign view)
 * stays and does not open: the inputs themselves are in work/, quarantine/ and the archive,
 * therefore no scene depends on it. Changes wait for the disk: the service's loop makes no changes,
 * and reads by a reader of its own. Changes that several threads make at the same time are one
 * transaction with one sync; a failure of one does not affect the others. Thread: any after connect
 * and before disconnect; a reader one at a time. */
#include "service/jobs/job.h"

#include <stddef.h>

struct pb_job_store;

/* Opens or creates <directory>/jobs.db. out_moved (4096 bytes) gets the new name of a damaged
 * file, otherwise "". */
int pb_job_store_open(const char *directory, struct pb_err *err, char out_moved[4096],
                      struct pb_job_store **out_store);
/* Does the same in two steps, for a service that starts while its disk does not respond. create
 * makes a store without a database, whose functions fail with service.state; connect opens its
 * database and may be tried again after a failure. disconnect undoes a connect. */
int pb_job_store_create(const char *directory, struct pb_err *err, struct pb_job_store **out_store);
int pb_job_store_connect(struct pb_job_store *store, struct pb_err *err, char out_moved[4096]);
void pb_job_store_disconnect(struct pb_job_store *store);
void pb_job_store_close(struct pb_job_store *store); /* NULL is allowed */
/* Opens a second, read-only view of an open store for another thread: find, list and counts. It
 * sees committed changes only; neither it nor the writer waits for the other. */
int pb_job_store_open_reader(const char *directory, struct pb_err *err,
                             struct pb_job_store **out_store);
/* Creates a reader of a store that may not be connected yet: the reader connects, at its next use,
 * once the store admits readers. The store must outlive it. Thread: any, before the reader's own.
 */
int pb_job_store_create_reader(const struct pb_job_store *store, struct pb_err *err,
                               struct pb_job_store **out_reader);
/* Lets such readers connect from now on. */
void pb_job_store_admit_readers(struct pb_job_store *store);

/* Inserts a row; sets job->seq. -EEXIST (no *err) if the id exists. */
int pb_job_store_insert(struct pb_job_store *store, struct pb_job *job, struct pb_err *err);
/* Inserts several jobs in one transaction, which waits while other threads have changes to store.
 * out_results[i]: 0 or -EEXIST as above. Negative errno: no job was stored. */
int pb_job_store_insert_all(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                            int *out_results, struct pb_err *err);
/* Stores the job in its row, except id, seq, created, name and uid. */
int pb_job_store_update(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err);
/* Finds a job by its id, or by an end of an id that only one job has. Initialises out_job, which
 * the caller frees with fini; untouched on failure (job.unknown, service.state). */
int pb_job_store_find(struct pb_job_store *store, const char *id, struct pb_err *err,
                      struct pb_job *out_job);
/* Place in the order of the waiting jobs: highest priority first, then the oldest. All-zero:
 * before all of them. */
struct pb_job_place {
    int priority;
    int64_t seq;
};
/* Finds the first accepted job after *after that `may` permits: 1 and *out_job (owned by the
 * caller), 0: no job, negative errno. may sees only seq, priority, id, scene, owned, input,
 * pipeline and name, borrowed. Reads at most `limit` jobs: *after is the last of them if no job
 * was found and more may follow, otherwise zero. */
int pb_job_store_next(struct pb_job_store *store, struct pb_job_place *after, int64_t limit,
                      bool (*may)(void *user, const struct pb_job *job), void *user,
                      struct pb_err *err, struct pb_job *out_job);
/* Lists jobs with a seq below before_seq (INT64_MAX: all), newest first. visit borrows the job and
 * must not call the store; a value other than 0 ends the listing and is returned. The cost grows
 * with limit, not with the number of jobs. */
int pb_job_store_list(struct pb_job_store *store, unsigned status_mask, int64_t before_seq,
                      int64_t limit, int (*visit)(void *user, struct pb_job *job), void *user,
                      struct pb_err *err);
int pb_job_store_counts(struct pb_job_store *store, int64_t out_counts[PB_JOB_STATUS_COUNT],
                        struct pb_err *err);
/* Call after a restart: running jobs become accepted again. Returns their number. */
int pb_job_store_recover(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err);
/* Deletes finished jobs beyond `keep`: first those that failed with input.no_pipeline, then the
 * others; of both the oldest first. Jobs of scenes do not count; they are deleted together with the
 * job of their archive. Returns the number of deleted jobs, with those of scenes. */
int pb_job_store_prune(struct pb_job_store *store, int keep, struct pb_err *err);
/* Number of commits so far; while it does not change, rows and counts do not change. */
uint64_t pb_job_store_commits(const struct pb_job_store *store);
/* pb_job_store_checkpoint moves the write-ahead log into the database while other threads may
 * change it. Call it when pb_job_store_log_is_long returns true; one thread at a time. */
bool pb_job_store_log_is_long(const struct pb_job_store *store);
int pb_job_store_checkpoint(struct pb_job_store *store, struct pb_err *err);
/* Steps of SQLite's virtual machine for all calls of find, list, next and counts so far: a measure
 * of their cost without a clock. */
uint64_t pb_job_store_steps(const struct pb_job_store *store);
#endif
