/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STORE_H
#define PB_STORE_H
/* Calls of the job store: the durable queue of the service. job_store.h opens the store that they
 * use. Journal, subscribers, contents, kept inputs and sets have headers of their own.
 *
 * A job is offered, taken by one session, permitted to publish, and finished; pb_job_move decides
 * which states follow each other. A session is one connect of a service to the store. A start of a
 * job has a number, its epoch, which rises with every take; a call with an earlier epoch is
 * refused, so that a run that was given up cannot change a job that runs again. No two jobs of one
 * scene run at the same time, because they would publish into one directory.
 *
 * Calls may wait for a disk or a network. Thread: any but the service's loop. */
#include "service/jobs/job.h"

#include <stddef.h>

struct pb_job_store;

/* Pipelines of this service, each with a digest of its text. */
struct pb_store_needs {
    bool gpu; /* compute.device requires a GPU */
    size_t n;
    struct {
        char pipeline[PB_JOB_NAME_BYTES], digest[PB_JOB_NEEDS_BYTES];
    } at[];
};

/* Sets the pipelines of this service (taken, malloc'd). Jobs that it offers get the digests. Jobs
 * of this node that wait or run get the present ones, because this node computes them that way.
 * Other nodes leave jobs to nodes whose pipelines have these digests. */
int pb_store_set_needs(struct pb_job_store *store, struct pb_store_needs *needs,
                       struct pb_err *err);
/* Stores a waiting job; sets job->seq. -EEXIST (no *err) if the id exists. */
int pb_store_offer(struct pb_job_store *store, struct pb_job *job, struct pb_err *err);
/* Stores several jobs in one transaction, which waits while other threads have changes to store.
 * out_results[i]: 0 or -EEXIST as above. Negative errno: no job was stored. */
int pb_store_offer_all(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                       int *out_results, struct pb_err *err);
/* Stores the starts of jobs that were moved to running, in one transaction. out_results[i]: 0, or
 * -ESTALE: job i is not started, because it does not wait any more, needs another pipeline, or
 * another job of its scene runs. Negative errno: either no job is started, or the connection was
 * lost when all of them were stored; pb_store_untake is needed. */
int pb_store_take(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                  int *out_results, struct pb_err *err);
/* Makes jobs wait again whose take failed. The caller has moved them to accepted; those whose start
 * was not stored stay as they are. It may be repeated. */
int pb_store_untake(struct pb_job_store *store, struct pb_job *const *jobs, size_t n,
                    struct pb_err *err);
/* Call before a run publishes. -ESTALE (no *err): this session does not run the job in that epoch,
 * and nothing may be published. */
int pb_store_permit(struct pb_job_store *store, const char *id, int64_t epoch, struct pb_err *err);
/* Stores the job, except id, seq, created, name and uid, with the events of the change. It may be
 * repeated. -ESTALE (no *err), nothing stored: the job has a later epoch. */
int pb_store_finish(struct pb_job_store *store, const struct pb_job *job, struct pb_err *err);
/* Makes running jobs of sessions that are over wait again. Returns their number. Without nodes
 * (nodes.h) all sessions but this one are over; otherwise this also ends those whose lease is. */
int pb_store_reap(struct pb_job_store *store, int64_t wall_ms, struct pb_err *err);
/* Number of changes so far; while it is the same, rows and counts are the same. Thread: any. */
uint64_t pb_store_changes(const struct pb_job_store *store);
/* Numbers of jobs by status after the last change of the writer, from memory. Thread: any. */
void pb_store_counts(const struct pb_job_store *store, int64_t out_counts[PB_JOB_STATUS_COUNT]);

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
 * pipeline, name, bytes, is_long, node, needs, needs_gpu, error.code, error.memory_bytes,
 * shunned and updated_ms, borrowed. Reads at most `limit` jobs: *after is the last of them if no
 * job was found and more may follow, otherwise zero.
 */
int pb_job_store_next(struct pb_job_store *store, struct pb_job_place *after, int64_t limit,
                      bool (*may)(void *user, const struct pb_job *job), void *user,
                      struct pb_err *err, struct pb_job *out_job);
/* From this call to pb_job_store_unreserve, pb_job_store_next reserves the jobs that it finds, and
 * passes over those that readers of other nodes have reserved, so that nodes which choose at the
 * same time choose different jobs. It is a hint: only pb_store_take decides who has a job. n: jobs
 * that are wanted. One thread at a time. */
void pb_job_store_reserve(struct pb_job_store *reader, int n);
/* Ends the reservations. Returns true if jobs were passed over, perhaps all that may start. */
bool pb_job_store_unreserve(struct pb_job_store *reader);
struct pb_job_query {
    unsigned status_mask;
    int64_t before_seq; /* INT64_MAX = all jobs */
    int64_t limit;
    int64_t since_ms;     /* minimum time of the last change, wall clock; 0 = all jobs */
    const char *pipeline; /* NULL = all jobs */
};
/* Lists jobs with a seq below before_seq as they are at one moment, newest first. visit must not
 * call the store, and may take the job's memory, leaving an initialised job; a value other than 0
 * ends the listing and is returned. The cost grows with limit, not with the number of jobs, except
 * with since_ms or a pipeline. */
int pb_job_store_list(struct pb_job_store *store, const struct pb_job_query *query,
                      int (*visit)(void *user, struct pb_job *job), void *user, struct pb_err *err);
/* Deletes finished jobs beyond `keep`: first those that failed with input.no_pipeline, then the
 * others; of both the oldest first. Jobs of scenes do not count; they are deleted together with the
 * job of their archive. Returns the number of deleted jobs, with those of scenes. */
int pb_job_store_prune(struct pb_job_store *store, int keep, struct pb_err *err);
#endif
