/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METHODS_H
#define PB_METHODS_H
/* What the requests on the status socket mean: looks jobs up, asks the runner, writes the results.
 * Owns nothing. Thread: loop. */
#include "service/intake.h"
#include "service/metrics.h"
#include "service/runner.h"
#include "service/status.h"
#include "service/troubles.h"
#include "service/watch.h"

struct pb_methods {
    const struct pb_intake *intake;
    struct pb_runner *runner;
    struct pb_watch *watch; /* NULL once stopping */
    struct pb_status *status;
    struct pb_metrics *metrics;
    struct pb_troubles *troubles;
    const char *socket; /* path in use */
    int64_t start_wall_ms;
    bool stopping; /* nothing new is taken */
};

/* serve of struct pb_status_options; user is a struct pb_methods. */
void pb_methods_serve(void *user, const struct pb_request *request, struct pb_json *reply,
                      const char **out_watch);
/* "2 running, 5 waiting", after the first trouble if there is one, for systemd's status line. */
void pb_methods_summary(const struct pb_methods *methods, char *out, size_t bytes);
#endif
