/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_CHILD_PARTS_H
#define PB_WORKER_CHILD_PARTS_H
/* Private to the files of a worker's child. The socket's thread owns every member that is not
 * marked as shared. */
#include "config/base/json_reader.h"
#include "pipeline/run/run.h"
#include "service/base/line_reader.h"
#include "service/jobs/job_alert.h"
#include "service/device/owner_client.h"
#include "service/worker/worker_archive.h"
#include "service/worker/worker_ask.h"
#include "service/worker/worker_child.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define PB_CHILD_PROGRESS_MS 200
#define PB_CHILD_ALERTS_MS   20 /* shortest time between two events with alerts, in ms */

struct pb_json;

struct pb_child {
    const struct pb_worker_child *child;
    struct pb_line_reader in;
    int woken; /* eventfd written at the end of the job thread, and for its queries */
    atomic_bool ended;
    struct pb_config *config;
    /* command of the job; its strings are used by the main thread */
    struct pb_json_value *command;
    bool busy;
    bool alone;  /* the thread for the socket could not start: the job fails */
    sem_t given; /* posted when the command is ready for the main thread */
    int64_t said_ms;
    struct pb_run_progress said;
    int64_t said_unpacked;
    int64_t alerts_ms;    /* monotonic time of the last event with alerts */
    uint32_t alerts_said; /* count of reported alerts */
    char device[64];
    struct pb_owner_client owner;     /* used if another process computes */
    struct pb_worker_archive archive; /* state of an archive as input */
    /* reason why it may not read any file: it is not confined */
    struct pb_err unfit;
    /* Shared with the job thread, under `lock`. */
    pthread_mutex_t lock;
    struct pb_run *run; /* set while progress and abort are possible */
    bool cancelled;
    struct pb_run_progress last; /* progress at the end of the run */
    bool is_over;                /* `last` is set */
    struct pb_job_alert alert[PB_JOB_ALERTS_MAX];
    uint32_t n_alerts, n_more; /* n_more: count of alerts that do not become events */
    bool has_bounds;
    double bounds[4];  /* bounds of the scene */
    struct pb_err err; /* written by the thread before it ends */
    struct pb_json *done;
    struct pb_worker_ask ask; /* queries of the job thread to its parent; has a lock of its own */
};

/* --- worker_child_say.c; thread: that of the socket --- */
/* Writes and destroys `json`; if the parent has closed the socket, ends the process. */
void pb_child_say(struct pb_child *worker, struct pb_json *json);
/* Begins an object with the event and the job. */
struct pb_json *pb_child_event(const struct pb_child *worker, const char *name);
void pb_child_say_failed(struct pb_child *worker, const struct pb_err *err);
void pb_child_say_question(struct pb_child *worker);
void pb_child_say_device(struct pb_child *worker, const char *device, const char *why);
/* Writes a progress line if a number changed since the last one, or as a sign of life. */
void pb_child_say_progress(struct pb_child *worker);
/* Writes the progress at the end of the run if it has latencies that were not reported. */
void pb_child_say_last(struct pb_child *worker);
/* Writes an event with waiting alerts if PB_CHILD_ALERTS_MS have passed since the last one. Returns
 * the time in ms until the next event may be written; -1: no alert waits. */
int pb_child_say_alerts(struct pb_child *worker);
#endif
