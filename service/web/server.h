/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_SERVER_H
#define PB_WEB_SERVER_H
/* The program pushbroom-web: an HTTP server that shows jobs and products, and changes jobs for
 * people whom it knows (guard.h) if the service allows that. Each connection has a thread, so that
 * a slow browser delays no other one. */
#include "service/web/guard.h"

#include <stddef.h>

#define PB_WEB_LISTEN "127.0.0.1:8080"

struct pb_web_options {
    const char *listen;       /* see listener.h; port 0 = any free one */
    const char *socket;       /* path of the status socket; NULL = the default */
    const char *const *names; /* n_names: further names of this host in requests */
    size_t n_names;
    const char *certificate, *key; /* PEM files for TLS; both or none */
    struct pb_web_guard guard;
};

/* Serves until SIGTERM or SIGINT. Returns the exit status: 0, 2 for wrong options, 1 for faults of
 * the machine. */
int pb_web_run(const struct pb_web_options *options);
#endif
