/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_FORK_H
#define PB_WORKER_FORK_H
/* The worker's child process: forks it with its confinement, connects a socket to it and ends it.
 * One thread, also in the process. */
#include "service/base/line_reader.h"
#include "service/worker/worker_publish.h"

#include <stdbool.h>
#include <sys/types.h>

struct pb_config;

#define PB_WORKER_FORK_KEPT 4
#define PB_WORKER_FORK_CRSS 32
#define PB_WORKER_FORK_EPSG 32632 /* the CRS before a scene is known */

struct pb_worker_fork {
    pid_t pid;      /* 0 = no child */
    bool is_remote; /* another node computes; lines.fd is borrowed, and there is no process */
    struct pb_line_reader lines; /* lines from the child; its fd is the socket, -1 if closed */
    struct pb_worker_user user;
    /* connection for the next child: closed here once the child has started; -1 = absent */
    int owner_fd;
    int kept[PB_WORKER_FORK_KEPT]; /* descriptors that libraries hold, see pb_worker_fork_warm */
    size_t n_kept;
    int epsg[PB_WORKER_FORK_CRSS]; /* CRSs that are loaded */
    size_t n_epsg;
};

/* Loads a CRS, by its EPSG code, for later children: the first call initialises GDAL and PROJ. Does
 * nothing for a code that is loaded, and after PB_WORKER_FORK_CRSS codes. A child that was taken
 * over can only choose the codes, which PROJ looks up in its own database. PROJ keeps its database
 * open: a child gets the same files at the same numbers, but each through an open file description
 * of its own, so that a child cannot change the file position of the next. Call it while no child
 * runs, and before the first start. */
void pb_worker_fork_warm(struct pb_worker_fork *child, int epsg);

/* Starts the child for the job. Returns 0 or the error. */
int pb_worker_fork_start(struct pb_worker_fork *child, struct pb_config *config,
                         const struct pb_worker_job *job, struct pb_err *err);
/* Lets another node compute, in the place of a child: it reads lines from the socket (borrowed). */
void pb_worker_fork_remote(struct pb_worker_fork *child, int socket);
/* Returns true if there is a child, or another node in its place. */
bool pb_worker_fork_is_on(const struct pb_worker_fork *child);
/* Closes the connection to an owner if no child has taken it over. */
void pb_worker_fork_drop_owner(struct pb_worker_fork *child);
/* Kills the child and waits; without a child it does nothing. */
void pb_worker_fork_end(struct pb_worker_fork *child);
/* Waits for a child that ended by itself; returns its wait status. */
int pb_worker_fork_wait(struct pb_worker_fork *child);
/* Ends this process the way its child ended. */
_Noreturn void pb_worker_fork_die_like(int status);
#endif
