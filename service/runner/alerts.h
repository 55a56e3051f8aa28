/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ALERTS_H
#define PB_ALERTS_H
/* Stores alerts of running jobs as events of the journal, each once: a job that runs again finds
 * the same alerts with the same numbers (job_alert.h), and those in the journal are skipped. A
 * batch that could not be stored is tried again. Members belong to alerts.c, except those above the
 * line, which the owner sets. Thread: loop. */
#include "service/jobs/job_alert.h"
#include "service/jobs/job_store.h"
#include "service/runner/worker_pool.h"

#define PB_ALERTS_JOBS  64   /* jobs whose numbers are known */
#define PB_ALERTS_NAMES 8    /* products of a job whose numbers are kept */
#define PB_ALERTS_WAIT  2000 /* alerts that wait for the store; later ones are logged only */

/* Largest stored number of each product of a job. */
struct pb_alerts_numbers {
    char job[PB_JOB_ID_BYTES];
    bool is_known; /* the events of earlier runs are read */
    struct {
        char name[PB_JOB_ALERT_NAME];
        uint32_t number;
    } product[PB_ALERTS_NAMES];
    size_t n;
};

struct pb_alerts_batch;

struct pb_alerts {
    uv_loop_t *loop; /* borrowed, like all of these */
    struct pb_job_store *store, *reader;
    struct pb_worker_pool *pool;
    const struct pb_runner_env *env;
    /* ---------------------------------------------------------------------------------------- */
    struct pb_alerts_numbers numbers[PB_ALERTS_JOBS]; /* the oldest is replaced */
    size_t next;
    struct pb_alerts_batch *first, **last; /* batches that wait */
    size_t n_waiting;                      /* count of their alerts */
    bool works;                            /* the first one is being stored */
    int64_t again_ms;                      /* time of the next try; 0 = at once */
};

/* Logs n alerts of a running job and queues them for the store. job, alert: borrowed. */
void pb_alerts_take(struct pb_alerts *alerts, const struct pb_job *job,
                    const struct pb_job_alert *alert, size_t n);
/* Repeats a failed store after a pause. Returns true while alerts wait. */
bool pb_alerts_tick(struct pb_alerts *alerts);
/* Frees the waiting batches. Call when no work of this module runs on the pool. */
void pb_alerts_fini(struct pb_alerts *alerts);
#endif
