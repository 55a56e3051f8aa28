/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUNNER_ENV_H
#define PB_RUNNER_ENV_H
/* State that all parts of the runner read: the configuration, whether it drains, the counters, and
 * the handlers of struct pb_runner_options that report jobs. Only runner.c writes the members. It
 * outlives the parts. Thread: loop. */
#include "pipeline/run/base/latency.h"
#include "service/jobs/job.h"
#include "service/runner/metrics.h"

struct pb_config;
struct pb_nodes; /* service/jobs/nodes.h */

struct pb_runner_env {
    const struct pb_config *config; /* configuration of later jobs */
    bool drains;                  /* no further job starts: a client requested that, or it stops */
    bool waits_for_store;         /* the same, while the store cannot be reached */
    const struct pb_nodes *nodes; /* nodes of the store, as last seen; may change */
    const char *node;             /* name of this one; "": the store has no others */
    const char *root; /* id of the directory of products (pb_nodes_root); "": no token is needed */
    struct pb_metrics *metrics;
    void (*on_change)(void *user, const struct pb_job *job); /* see runner.h */
    void (*on_changes)(void *user, const struct pb_job *jobs, size_t n);
    void (*on_hold)(void *user, const struct pb_job *job);
    void (*on_latency)(void *user, const struct pb_job *job, const struct pb_latency_counts *more);
    void *user;
};
#endif
