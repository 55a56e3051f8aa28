/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_CHILD_H
#define PB_WORKER_CHILD_H
/* The process that computes: forked by the worker (worker.h) and confined (confine.h); the lines of
 * worker.h are sent over a socket. In addition, "run" has "directory", to which it writes: its
 * parent publishes the files there, and its "done" names that directory. It runs one job. */
#include "pipeline/scene/scene.h"
#include "service/confine/confine.h"

struct pb_config;
struct pb_pipeline_config;

struct pb_worker_child {
    int socket;
    struct pb_config *config;
    const struct pb_scene *scene; /* open scene of the job */
    int room; /* an empty file to unpack the input, an archive, into; -1 if it is no archive */
    const char *room_name;
    /* connection to the process that computes (owner_client.h); -1 = no such process */
    int owner_fd;
    const struct pb_confine *confine;
};

/* Runs in the forked process, which has one thread and no other descriptors, and ends the process.
 */
_Noreturn void pb_worker_child_main(const struct pb_worker_child *child);
/* Runs a child that reads the metadata of the input (described.h), for input.by of the pipeline:
 * it writes one line, but no files, and ends. */
_Noreturn void pb_worker_child_describe(const struct pb_worker_child *child,
                                        const struct pb_pipeline_config *pipeline);
#endif
