/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_PARTS_H
#define PB_WORKER_PARTS_H
/* Shared by the parts of the worker process; no other file includes this. One thread. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "service/base/line_reader.h"
#include "service/worker/worker_fork.h"
#include "service/worker/worker_publish.h"

struct worker {
    struct pb_line_reader in;
    int out; /* the real stdout */
    struct pb_config *config;
    struct pb_compute_config configured; /* the text's; config's may be for the job only */
    struct pb_json_value *command;       /* command of the running job */
    struct pb_json_value *next;          /* command of the next job, NULL if absent */
    bool warms;                          /* for more than one job */
    bool spent;                          /* pb_worker_is_spent: it starts no other one */
    bool device_given;                   /* set by the command, instead of the config */
    bool device_said;                    /* in the foreground */
    struct pb_worker_job job;
    struct pb_worker_fork child;
};

/* --- worker.c --- */
void pb_worker_end(struct worker *worker, int code);
/* Writes a line to the owner; ends the process when the owner has closed the pipe. */
void pb_worker_say(struct worker *worker, const char *text, size_t bytes);
void pb_worker_say_json(struct worker *worker, struct pb_json *json); /* taken */
/* An event of the job that the command (NULL = none) names; to be ended by say_json. */
struct pb_json *pb_worker_event(const struct pb_json_value *command, const char *name);
/* The job is over for the worker. */
void pb_worker_forget(struct worker *worker);
void pb_worker_fail(struct worker *worker, const struct pb_err *err);

/* --- worker_relay.c --- */
/* Reads the child's lines, and passes on those that are valid. */
void pb_worker_relay(struct worker *worker);
#endif
