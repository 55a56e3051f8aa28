/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHORES_H
#define PB_CHORES_H
/* What keeps the job store small, on libuv's pool and one at a time: the oldest finished jobs are
 * forgotten, events that nobody needs and contents that are too old are deleted, the write-ahead
 * log goes into the database. The states of the subscribers are read there as well. Thread: loop.
 */
#include "config/config.h"
#include "service/jobs/journal.h"

#include <uv.h>

struct pb_chores {
    uv_loop_t *loop;
    struct pb_job_store *store;
    struct pb_job_store *reader; /* of it, used on the pool alone */
    void (*done)(void *user);    /* the states of the subscribers were read; NULL = nobody asks */
    void *user;
    /* ---- as last read ---- */
    struct pb_subscriber_state subscribers[PB_SUBSCRIBERS_MAX];
    int n_subscribers;
    /* ---- the chores' own ---- */
    uv_work_t work;
    bool works;
    bool prunes, trims, looks;
    int keep;
    int64_t contents_ms; /* how long contents are remembered; 0: for ever */
    struct pb_subscriber_state read[PB_SUBSCRIBERS_MAX];
    int n_read;                     /* negative: they could not be read */
    uint64_t looked_at, trimmed_at; /* commits of the store, then */
    int64_t look_ms, trim_ms;       /* monotonic: not before */
};

/* Starts what is due; counts: of jobs, as last read; service: what stays, and for
 * how long. */
void pb_chores_run(struct pb_chores *chores, const int64_t counts[PB_JOB_STATUS_COUNT],
                   const struct pb_service_config *service);
#endif
