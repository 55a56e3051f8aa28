/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_CHILD_H
#define PB_WORKER_CHILD_H
/* The process that computes: forked by the worker (worker.h) and confined (confine.h); the lines of
 * worker.h go over a socket. Beside "run" has "directory", where it writes: its parent publishes
 * the files there, and its "done" names that directory. On the CPU it runs one job; with a GPU it
 * stays, and the input's descriptor comes with each "run". */
#include "config/config.h"
#include "service/confine/confine.h"

/* Exit status of a confined resident child that finds no device. */
#define PB_WORKER_CHILD_NO_DEVICE 66

struct pb_worker_child {
    int socket;
    bool resident;            /* stays for many jobs, inputs come over the socket */
    bool quiet;               /* does not report its confinement on stderr */
    struct pb_config *config; /* NULL, or the one of the job to come */
    const char *input;        /* the job's, and its descriptor */
    int input_fd;             /* -1 = comes over the socket */
    int owner_fd; /* the connection to the process that computes (owner_client.h); -1 = none */
    const struct pb_confine *confine; /* NULL = unconfined */
};

/* Runs in the forked process, which has one thread and no other descriptors, and ends it. */
_Noreturn void pb_worker_child_main(const struct pb_worker_child *child);
#endif
