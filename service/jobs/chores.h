/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHORES_H
#define PB_CHORES_H
/* Keeps the job store small, on libuv's pool and one task at a time: forgets the oldest finished
 * jobs, deletes events that no subscriber needs and contents that are too old, moves the
 * write-ahead log into the database. Reads the states of the subscribers as well. Thread: loop. */
#include "service/jobs/journal.h"

#include <uv.h>

struct pb_service_config;

struct pb_chores {
    uv_loop_t *loop;
    struct pb_job_store *store;
    struct pb_job_store *reader; /* a reader of store, used only on the pool */
    /* called when the states of the subscribers were read; NULL: no call */
    void (*done)(void *user);
    void *user;
    /* ---- results of the last reading ---- */
    struct pb_subscriber_state subscribers[PB_SUBSCRIBERS_MAX];
    int n_subscribers;
    /* ---- private ---- */
    uv_work_t work;
    bool works;
    bool prunes, trims, looks;
    int keep;
    int64_t finished, rest; /* number of finished jobs; at least those that the last pruning left */
    int64_t contents_ms;    /* time for which contents are remembered; 0: no limit */
    struct pb_subscriber_state read[PB_SUBSCRIBERS_MAX];
    int n_read;                     /* negative: the states could not be read */
    uint64_t looked_at, trimmed_at; /* count of commits of the store at that time */
    int64_t look_ms, trim_ms;       /* monotonic: earliest time of the next task */
};

/* Starts the tasks that are due. counts: numbers of jobs from the last reading; service: the
 * limits. */
void pb_chores_run(struct pb_chores *chores, const int64_t counts[PB_JOB_STATUS_COUNT],
                   const struct pb_service_config *service);
#endif
