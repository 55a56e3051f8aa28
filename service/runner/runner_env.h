/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUNNER_ENV_H
#define PB_RUNNER_ENV_H
/* What all parts of the runner read: the configuration, whether it drains, the counters, and the
 * handlers of struct pb_runner_options that tell of jobs. runner.c alone writes the members. It
 * outlives the parts. Thread: loop. */
#include "config/config.h"
#include "service/jobs/job.h"
#include "service/runner/metrics.h"

struct pb_runner_env {
    const struct pb_config *config; /* of jobs to come */
    bool drains;                    /* no further job starts */
    struct pb_metrics *metrics;
    void (*on_change)(void *user, const struct pb_job *job); /* see runner.h */
    void (*on_hold)(void *user, const struct pb_job *job);
    void *user;
};
#endif
