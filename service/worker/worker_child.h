/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_CHILD_H
#define PB_WORKER_CHILD_H
/* The process that computes: forked by the worker (worker.h) and confined (confine.h); the lines of
 * worker.h go over a socket. Beside "run" has "directory", where it writes: its parent publishes
 * the files there, and its "done" names that directory. It runs one job. */
#include "config/config.h"
#include "pipeline/scene/scene_files.h"
#include "pipeline/scene/sidecars.h"
#include "service/confine/confine.h"

struct pb_worker_child {
    int socket;
    struct pb_config *config;
    const char *input; /* the job's, and its descriptor */
    int input_fd;
    const struct pb_scene_files
        *files; /* of a scene that is a folder, in place of input_fd; NULL */
    const struct pb_metadata_files *metadata; /* beside the input; NULL = none */
    const struct pb_sidecars *sidecars;       /* of the input or the files, open; NULL = none */
    int room; /* an empty file to unpack the input into, an archive; -1 = it is none */
    const char *room_name;
    int owner_fd; /* the connection to the process that computes (owner_client.h); -1 = none */
    const struct pb_confine *confine;
};

/* Runs in the forked process, which has one thread and no other descriptors, and ends it. */
_Noreturn void pb_worker_child_main(const struct pb_worker_child *child);
/* The same for one that reads what the metadata of the input say (described.h), for input.by of the
 * pipeline: it says that in a line and ends. It writes nowhere. */
_Noreturn void pb_worker_child_describe(const struct pb_worker_child *child,
                                        const struct pb_pipeline_config *pipeline);
#endif
