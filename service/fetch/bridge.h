/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FETCH_BRIDGE_H
#define PB_FETCH_BRIDGE_H
/* pushbroom-fetch: carries streams of bytes between a worker on this machine and the service of
 * another node, over mutual TLS. It reads no file of a job and knows no job:
 *
 *   worker -> Unix socket -> pushbroom-fetch = TLS => pushbroom-fetch -> Unix socket -> pushbroomd
 *
 * The first line of a stream (worker/worker_away.h) names the node and its address. The other side
 * replaces the name by the one in the certificate of the sender, and pushbroomd looks in the
 * store whether that node runs the job (runner/guests.h). */

struct pb_fetch_options {
    const char *config; /* file */
};

/* Runs until SIGTERM. Returns the exit status: 0 stopped, 1 the machine refuses, 2 the
 * configuration is wrong. */
int pb_fetch_run(const struct pb_fetch_options *options);
#endif
