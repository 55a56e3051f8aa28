/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DAEMON_H
#define PB_DAEMON_H
/* pushbroomd as a whole: wires watcher, intake, store, runner and status socket to one loop, and
 * follows signals. SIGTERM and SIGINT stop it within 10 s; SIGHUP reads the config again. */

#define PB_DAEMON_CONFIG      "/etc/pushbroom/pushbroom.yaml"
#define PB_DAEMON_EXIT_OK     0
#define PB_DAEMON_EXIT_FAILED 1
#define PB_DAEMON_EXIT_CONFIG 2

struct pb_daemon_options {
    const char *config; /* path of the YAML file */
    const char *worker; /* program started as `worker --worker`; NULL = this one */
};

/* Runs until a signal; logs everything. Returns an exit code. */
int pb_daemon_run(const struct pb_daemon_options *options);
/* Loads the file and prints its mistakes, or that it is fine. Returns an exit code. */
int pb_daemon_check(const char *config);
#endif
