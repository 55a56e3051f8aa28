/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORKER_LAUNCH_H
#define PB_WORKER_LAUNCH_H
/* Starts the process of a worker, with pipes at its stdin, stdout and stderr: by fork and exec
 * from a process with threads; by fork alone from a process without threads, which saves loading
 * the libraries again. Thread: any in the first case, the only one in the second. */
#include <sys/types.h>

struct pb_worker_program {
    const char *path;  /* run as `path --worker`; NULL: the process is a fork of this one */
    int (*main)(void); /* main function of the fork; returns its exit status */
    const char *const *arguments; /* instead of --worker, up to a NULL; NULL: --worker */
    int passed; /* descriptor above stderr that the process gets at the same number; 0 = none */
};

/* Other ends of the pipes, owned by the caller, close-on-exec. */
struct pb_worker_pipes {
    int in, out, log; /* in: for writing; out and log: for reading */
};

/* Returns 0, or a negative errno (also that of exec) and no process or descriptor remains. */
int pb_worker_launch(const struct pb_worker_program *program, pid_t *out_pid,
                     struct pb_worker_pipes *out_pipes);
#endif
