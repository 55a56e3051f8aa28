/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PARTS_H
#define PB_WORKER_PARTS_H
/* Shared by the parts of the worker process; no other file includes this. One thread. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/compute_config.h"
#include "service/base/line_reader.h"
#include "service/worker/worker_away.h"
#include "service/worker/worker_fork.h"
#include "service/worker/worker_host.h"
#include "service/worker/worker_publish.h"

struct pb_config;

/* The request of the running job to publish. */
enum worker_permit {
    PERMIT_NONE, /* not requested */
    PERMIT_REQUESTED,
    PERMIT_GRANTED,
    PERMIT_REFUSED,
    PERMIT_CANCELLED
};

struct worker {
    struct pb_line_reader in;
    int out; /* the real stdout */
    struct pb_config *config;
    /* compute section of the config's text; that of `config` may be changed for the job */
    struct pb_compute_config configured;
    struct pb_json_value *command; /* command of the running job */
    struct pb_json_value *next;    /* command of the next job, NULL if absent */
    bool warms;                    /* true for more than one job */
    bool spent;                    /* pb_worker_is_spent: it starts no other job */
    bool device_given;             /* the command set the device, instead of the config */
    bool device_said;              /* in the foreground: the device was reported */
    enum worker_permit permit;
    struct pb_worker_job job;
    int64_t said_ms; /* last progress line while files are copied, monotonic */
    struct pb_worker_fork child;
    struct pb_worker_away away; /* the input is on another node */
    struct pb_worker_host host; /* another node computes */
};

/* --- worker.c --- */
void pb_worker_end(struct worker *worker, int code);
/* Writes a line to the owner; ends the process if the owner has closed the pipe. */
void pb_worker_say(struct worker *worker, const char *text, size_t bytes);
void pb_worker_say_json(struct worker *worker, struct pb_json *json); /* takes json */
/* Writes the last line of the run, also to the other node. */
void pb_worker_say_end(struct worker *worker, const char *text, size_t bytes);
/* The waits of its job. */
struct pb_worker_wait pb_worker_waits(struct worker *worker);
/* Writes a progress line with the numbers; checked: bytes_checked. */
void pb_worker_say_progress(struct worker *worker, const char *stage, const char *device,
                            const struct pb_worker_numbers *numbers, int64_t checked,
                            int64_t io_ms);
/* Begins an event of the job in the command (NULL = no job); end it with say_json. */
struct pb_json *pb_worker_event(const struct pb_json_value *command, const char *name);
/* Call when the job is over for the worker. */
void pb_worker_forget(struct worker *worker);
void pb_worker_fail(struct worker *worker, const struct pb_err *err);

/* --- worker_relay.c --- */
/* Reads the child's lines, and passes the valid ones on. */
void pb_worker_relay(struct worker *worker);
#endif
