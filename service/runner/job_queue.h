/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JOB_QUEUE_H
#define PB_JOB_QUEUE_H
/* The queue of waiting jobs. The queue is the job store, sorted by priority and order of
 * acceptance; this module reads it, and the caller's filter chooses the jobs that may start. No
 * other part of the runner reads the store. The caller frees jobs with pb_job_fini. Thread: loop.
 */
#include "service/jobs/archive_rows.h"
#include "service/jobs/job_store.h"

/* All-zero except the store at the start: reads from the first job. */
struct pb_job_queue {
    struct pb_job_store *reader; /* borrowed */
    struct pb_job_place after;   /* jobs up to this one cannot start at present */
};

#define PB_JOB_RANKS ((int64_t)1 << 50)

/* Filter for the jobs that may start. Its functions see only seq, priority, id, scene, owned,
 * input, pipeline and name, borrowed. */
struct pb_job_filter {
    bool (*may)(void *user, const struct pb_job *job);
    /* Rank >= 0 and below PB_JOB_RANKS, lowest first; NULL: all 0. */
    int64_t (*rank)(void *user, const struct pb_job *job);
    /* if false, a job of a higher priority is before all ranks of a lower priority */
    bool by_rank_alone;
    void *user;
};

/* Finds the first job of the lowest rank that may start: 1 and *out_job; 0: no job; negative
 * errno. *out_more: the call ended after 2000 jobs, and the next call continues after them. */
int pb_job_queue_next(struct pb_job_queue *queue, const struct pb_job_filter *filter,
                      struct pb_err *err, bool *out_more, struct pb_job *out_job);
/* Finds the job with the smallest input among the first 1000; results like pb_job_queue_next. */
int pb_job_queue_smallest(struct pb_job_queue *queue, const struct pb_job_filter *filter,
                          struct pb_err *err, struct pb_job *out_job);
/* Returns true if one of the first 1000 may start. */
bool pb_job_queue_has(struct pb_job_queue *queue, const struct pb_job_filter *filter);
/* Returns true if no job waits, false if the store cannot be read. */
bool pb_job_queue_is_empty(struct pb_job_queue *queue);
/* Returns 1 if a job of a scene of the archive is unfinished; see pb_archive_rows_is_open. */
int pb_job_queue_is_open(struct pb_job_queue *queue, const char *archive, struct pb_err *err);
/* Lists these jobs; see pb_archive_rows_list_open. */
int pb_job_queue_scenes(struct pb_job_queue *queue, const char *archive, struct pb_err *err,
                        struct pb_archive_ids *out);
/* Returns 1 if a scene of the archive was skipped; see pb_archive_rows_skipped. */
int pb_job_queue_skipped(struct pb_job_queue *queue, const char *archive, struct pb_err *err);
/* Finds the job with that id in any state, as stored; see pb_job_store_find. */
int pb_job_queue_find(struct pb_job_queue *queue, const char *id, struct pb_err *err,
                      struct pb_job *out_job);
#endif
