/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GUESTS_H
#define PB_GUESTS_H
/* Runs of other nodes whose input is on this one (service.fetch). pushbroom-fetch connects to a
 * socket of the service for each, with a line {"job","epoch","node"}; node is the name in the
 * certificate of the other side. The store must confirm that this node runs the job in that epoch.
 * Earlier runs are fenced, and products that are in place end the run (worker/outcome.h). Otherwise
 * a worker of this node takes the connection: it sends the files, receives the products and
 * publishes them (worker/worker_host.h), after the store has confirmed the epoch again. The other
 * node stores the end of the job.
 *
 * The other node may be stopped or hostile. Its first line has a time limit. Its runs have the
 * limits of runs of this node: service.stall, for which bytes and signs of life count as progress,
 * and limits.job_time. The count of its runs is limited. Refused connections and ended runs are
 * logged with the name of the node, and counted. Thread: loop. */
#include "service/base/peer.h"
#include "service/inbox/dirs.h"
#include "service/jobs/store.h"
#include "service/runner/metrics.h"

#include <uv.h>

struct pb_config;
struct pb_guests;

struct pb_guests_options {
    uv_loop_t *loop;
    struct pb_job_store *store;
    const struct pb_dirs *dirs; /* borrowed, like all of these */
    const struct pb_config *config;
    struct pb_metrics *metrics;
    const char *worker; /* path of the program */
    const char *socket; /* service.socket; the one for guests is next to it */
};

/* Listens. */
int pb_guests_start(const struct pb_guests_options *options, struct pb_err *err,
                    struct pb_guests **out_guests);
/* Changes the configuration of later runs. NULL guests are allowed. */
void pb_guests_set_config(struct pb_guests *guests, const struct pb_config *config);
/* Ends all runs; the memory is freed later, by the loop. NULL is allowed. */
void pb_guests_stop(struct pb_guests *guests);
#endif
