/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DAEMON_H
#define PB_DAEMON_H
/* pushbroomd as a whole: connects watcher, intake, store, runner and status socket to one loop,
 * and handles signals. SIGTERM and SIGINT stop it within 10 s; SIGHUP reads the config again. */

#include "config/base/err.h"

#define PB_DAEMON_CONFIG      "/etc/pushbroom/pushbroom.yaml"
#define PB_DAEMON_EXIT_OK     0
#define PB_DAEMON_EXIT_FAILED 1
#define PB_DAEMON_EXIT_CONFIG 2

struct pb_daemon_options {
    const char *config; /* path of the YAML file */
    const char *worker; /* program started as `worker --worker`; NULL = this one */
    const char *owner;  /* device whose owner computes all jobs; NULL: as configured */
};

/* Runs until a signal; logs everything. Returns an exit code. */
int pb_daemon_run(const struct pb_daemon_options *options);
/* Loads the file and checks the directories and the socket like a start, but creates nothing and
 * takes no lock; prints the mistakes, or a success message. Returns an exit code: CONFIG for
 * mistakes in the file or its values, FAILED for faults of the machine. Permissions are those of
 * the calling user. */
int pb_daemon_check(const char *config);
/* Prints a systemd drop-in with the MemoryMax that the configuration needs:
 * 256 MiB + jobs x (compute.memory + limits.max_block_bytes + 512 MiB), for the most jobs that may
 * run at a time: service.parallel_jobs, publishing_jobs, and an express job. */
int pb_daemon_drop_in(const char *config);
/* Exit code for an error that ends the start. A refused config stays refused until it is changed; a
 * fault of the machine may pass. */
int pb_daemon_exit_code(const struct pb_err *err);
#endif
