/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METHODS_H
#define PB_METHODS_H
/* Loop's side of the status socket: makes the changes that clients request, and stores the texts
 * about the service for the status thread (facts.h). Owns no memory. Thread: loop. */
#include "service/confine/confine.h"
#include "service/status/facts.h"
#include "service/inbox/intake.h"
#include "service/jobs/chores.h"
#include "service/jobs/nodes.h"
#include "service/runner/metrics.h"
#include "service/runner/runner.h"
#include "service/status/status.h"
#include "service/status/tasks.h"
#include "service/base/troubles.h"
#include "service/inbox/feed.h"
#include "service/stream/streams.h"

/* Configuration in use, and whether the last reload was refused. */
struct pb_config_state {
    int64_t loaded_ms; /* wall clock */
    char sha256[65];   /* SHA-256 of the file's text; "" = out of memory */
    bool refused;      /* true if the last reload refused the file */
};

struct pb_methods {
    uv_loop_t *loop;
    struct pb_intake *intake;
    struct pb_job_store *reader; /* a reader of the intake's store, for the pool */
    struct pb_runner *runner;    /* NULL until the job store is open */
    struct pb_feed *feed;        /* NULL until the job store is open, and during the stop */
    struct pb_streams *streams;  /* NULL until the job store is open, and during the stop */
    struct pb_status *status;
    const struct pb_nodes *nodes; /* nodes of the store, as last seen */
    struct pb_metrics *metrics;
    struct pb_troubles *troubles;
    struct pb_facts *facts;
    const struct pb_chores *chores;
    struct pb_config_state config;
    const char *socket;                      /* path in use */
    char confinement[PB_CONFINE_TEXT_BYTES]; /* confinement of processes that compute, in words */
    int64_t start_wall_ms;
    bool stopping;                       /* no new jobs are taken */
    bool draining;                       /* the same, until a client ends it */
    int64_t counts[PB_JOB_STATUS_COUNT]; /* counts of jobs at the last call of publish */
};

/* Updates the texts. Call it before an event is sent, and once per iteration of the loop. */
void pb_methods_publish(struct pb_methods *methods);
/* Implements `run` of struct pb_tasks; user is a struct pb_methods. The loop may answer later. */
void pb_methods_run(void *user, const struct pb_task *task);
/* Call at the end of a change of the job: rc 0, or *err. */
void pb_methods_answer(struct pb_methods *methods, uint64_t ticket, const char *id, int rc,
                       const struct pb_err *err);
/* Makes systemd's status line: "2 running, 5 waiting", after the first trouble if there is one. */
void pb_methods_summary(struct pb_methods *methods, char *out, size_t bytes);
#endif
