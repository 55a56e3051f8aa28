/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

static const struct pb_help_option options[] = {
    {'c', "config", "FILE", NULL,
     "the configuration (YAML); default /etc/pushbroom/pushbroom.yaml"},
    {'v', "verbose", NULL, NULL, "log more"},
    {'V', "version", NULL, NULL, "print the version"},
    {'h', "help", NULL, NULL, "print this"},
    {0, NULL, NULL, NULL, NULL},
};

const struct pb_help_page pb_help_fetch = {
    .name = "pushbroom-fetch",
    .arguments = "--config FILE [--verbose]",
    .summary = "carries inputs and products between nodes of pushbroomd without a common file "
               "system",
    .options = options,
    .text = "Runs on each node whose configuration has service.fetch. A worker that computes a job "
            "of another node reaches that node through it, by TLS 1.3 with certificates on both "
            "sides. It reads and writes no file of a job: the services of both nodes do. Renewed "
            "certificates are used without a restart.\n\n"
            "Signals: SIGTERM stops. Exit status: 0 stopped, 2 the configuration is wrong, 1 the "
            "machine refuses."};
