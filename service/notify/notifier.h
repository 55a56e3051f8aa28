/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NOTIFIER_H
#define PB_NOTIFIER_H
/* The program pushbroom-notify. */

struct pb_notifier_options {
    const char *config; /* path of the configuration */
    const char *socket; /* socket of the service; NULL: that of the configuration */
};

/* Delivers until SIGTERM or SIGINT; SIGHUP reads the configuration again. Returns the exit status:
 * 0, 2 for a configuration that does not load, 1 for faults of the machine. */
int pb_notifier_run(const struct pb_notifier_options *options);
#endif
