/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_QUEUE_H
#define PB_JOB_QUEUE_H
/* The queue of jobs that wait. It is the job store, in the order in which jobs were accepted; this
 * reads it, and which jobs may start is the caller's to say. Nothing else of the runner reads the
 * store. Jobs are the caller's to pb_job_fini. Thread: loop. */
#include "service/jobs/job_store.h"

/* Zero bytes but for the store: from the oldest job. */
struct pb_job_queue {
    struct pb_job_store *reader; /* borrowed */
    int64_t after; /* jobs up to this number cannot start just now; 0 = from the first */
};

/* Which jobs may start. They see seq, id, scene, owned, input, pipeline and name alone,
 * borrowed. */
struct pb_job_filter {
    bool (*may)(void *user, const struct pb_job *job);
    int64_t (*rank)(void *user, const struct pb_job *job); /* >= 0, the least first; NULL: all 0 */
    void *user;
};

/* The oldest job of least rank that may start: 1 and *out_job, 0 none, negative errno. *out_more:
 * the call ended after 2000 jobs, and the next one goes on behind them. */
int pb_job_queue_next(struct pb_job_queue *queue, const struct pb_job_filter *filter,
                      struct pb_err *err, bool *out_more, struct pb_job *out_job);
/* The one with the smallest input among the oldest 1000; as above. */
int pb_job_queue_smallest(struct pb_job_queue *queue, const struct pb_job_filter *filter,
                          struct pb_err *err, struct pb_job *out_job);
/* Whether one of the oldest 1000 may start. */
bool pb_job_queue_has(struct pb_job_queue *queue, const struct pb_job_filter *filter);
/* No job waits. False when the store cannot tell. */
bool pb_job_queue_is_empty(struct pb_job_queue *queue);
/* The job of any state with that id, as stored; see pb_job_store_find. */
int pb_job_queue_find(struct pb_job_queue *queue, const char *id, struct pb_err *err,
                      struct pb_job *out_job);
#endif
