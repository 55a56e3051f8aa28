/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUNNER_H
#define PB_RUNNER_H
/* Runs jobs: starts the oldest accepted job whenever a worker slot is free, passes it to a worker
 * process, follows its progress, and archives or quarantines its input afterwards. A worker that
 * dies, hangs or is cancelled affects its own job only. The store holds every job, the runner only
 * the running ones and those whose state is on its way to the disk, which the loop does not wait
 * for. Thread: loop. */
#include "service/base/troubles.h"
#include "pipeline/run/base/latency.h"
#include "service/inbox/dirs.h"
#include "service/jobs/job_store.h"
#include "service/runner/metrics.h"
#include "service/jobs/request_kind.h"

#include <pthread.h>
#include <uv.h>

struct pb_config;
struct pb_nodes;
struct pb_runner;

struct pb_runner_options {
    uv_loop_t *loop;
    struct pb_job_store *store;     /* borrowed, like all below, until destroy */
    struct pb_job_store *reader;    /* a reader of that store, for the pool */
    pthread_rwlock_t *moves;        /* lock of struct pb_intake */
    const struct pb_dirs *dirs;     /* may change between calls into the loop */
    const struct pb_config *config; /* borrowed until set_config */
    const char *worker;             /* program that runs as `worker --worker` */
    const char *owner_program; /* program that owns a device, run as `owner_program --device ...` */
    const char *owner_device;  /* device whose owner computes all jobs; NULL: as configured */
    const struct pb_nodes *nodes; /* nodes of the store; may change between calls into the loop */
    struct pb_metrics *metrics;
    struct pb_troubles *troubles;
    /* A job changed; borrowed for the call. At most 5 times a second for a job, except changes of
     * status, which are reported immediately. */
    void (*on_change)(void *user, const struct pb_job *job);
    /* The same for several jobs whose status changed together. */
    void (*on_changes)(void *user, const struct pb_job *jobs, size_t n);
    /* A job is about to end, which takes several steps: clients should see its present state until
     * on_change reports its end. */
    void (*on_hold)(void *user, const struct pb_job *job);
    /* Called with new latencies of lines of the job's stream. */
    void (*on_latency)(void *user, const struct pb_job *job, const struct pb_latency_counts *more);
    /* The result of pb_runner_ask: rc 0, or *err. The change is on the disk. */
    void (*on_answer)(void *user, uint64_t ticket, const char *id, int rc,
                      const struct pb_err *err);
    void *user;
};

int pb_runner_create(const struct pb_runner_options *options, struct pb_err *err,
                     struct pb_runner **out_runner);
/* Sets the config of new jobs; running ones continue with theirs. Queries a worker for the device.
 * The first call starts the work. */
void pb_runner_set_config(struct pb_runner *runner, const struct pb_config *config);
/* Starts jobs that may start. */
void pb_runner_kick(struct pb_runner *runner);
/* Adds `by` to the count of scenes that have a job and whose lines still arrive. Thread: loop. */
void pb_runner_grows(struct pb_runner *runner, int64_t by);
/* Between the two values no job starts, because the store cannot be reached; runs continue. */
void pb_runner_wait_for_store(struct pb_runner *runner, bool waits);
/* Reports a look at the directory of products. *why: PB_OK, or the reason for which the directory
 * is not the nodes' one (pipeline/publish/publish_root.h). Then no job starts until a later look
 * finds the right one; the trouble "mount" names the reason. */
void pb_runner_see_products(struct pb_runner *runner, const struct pb_err *why);
/* Handles requests that other nodes passed on. Borrowed for the call. */
struct pb_node_request;
void pb_runner_take_requests(struct pb_runner *runner, const struct pb_node_request *requests,
                             int n);
/* Call after the session of this node was ended: kills all runs, whose jobs other nodes have. */
void pb_runner_forsake(struct pb_runner *runner);

/* Finds the current state of the job with exactly that id if it differs from the store: a running
 * job, with its live progress, or one whose last change could not be stored. Otherwise NULL. */
const struct pb_job *pb_runner_find(struct pb_runner *runner, const char *id);
/* Handles a request; on_answer reports the result, during the call or later from the loop. Cancel:
 * dismisses a waiting job, or ends the run of a running one. Retry: a failed or dismissed job
 * waits to run again, with its input back from quarantine. Drop: removes the quarantined input of
 * such a job and its record. Again: a new job makes the products of a successful one again
 * (again.h); on_answer gets its id. job.state if the job's state does not allow it. The request is
 * borrowed for the call. */
void pb_runner_ask(struct pb_runner *runner, const struct pb_job_request *request);

int64_t pb_runner_busy(const struct pb_runner *runner);
int64_t pb_runner_workers(const struct pb_runner *runner);
uint64_t pb_runner_planned_bytes(const struct pb_runner *runner);
/* Device that a worker reported: "cpu", "cuda:0", or "" if unknown; *out_why has the reason why
 * `auto` uses the CPU, or why the required device is missing. Borrowed. */
const char *pb_runner_device(const struct pb_runner *runner, const char **out_why);

/* While on, no job starts; running jobs end by themselves, or are put back now. */
void pb_runner_drain(struct pb_runner *runner, bool on, bool now);
/* Number of jobs that run here, or whose start or end is being stored. */
int64_t pb_runner_runs(const struct pb_runner *runner);
/* Ends the work. Running jobs that are nearly done get 5 s, the others are put back immediately;
 * then the workers end, and done is called from the loop. All this takes at most 9 s. */
void pb_runner_stop(struct pb_runner *runner, void (*done)(void *user), void *user);
/* Call after stop, or if no job was started. NULL is allowed. */
void pb_runner_destroy(struct pb_runner *runner);
#endif
