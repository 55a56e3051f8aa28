/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

static const struct pb_help_option options[] = {
    {'l', "listen", "ADDRESS:PORT", NULL,
     "where to serve HTTP; default 127.0.0.1:8080, which only this machine reaches"},
    {0, "name", "HOST", NULL,
     "name of this host in the address of browsers, if it is not localhost and not a number; may "
     "be repeated"},
    {0, "socket", "FILE", NULL,
     "where pushbroomd listens (default: $PUSHBROOM_SOCKET, then /run/pushbroom/status.sock)"},
    {'v', "verbose", NULL, NULL, "log each request"},
    {'V', "version", NULL, NULL, "print the version"},
    {'h', "help", NULL, NULL, "print this"},
    {0, NULL, NULL, NULL, NULL},
};

const struct pb_help_page pb_help_web = {
    .name = "pushbroom-web",
    .arguments = "[--listen ADDRESS:PORT] [--name HOST] [--socket FILE] [--verbose]",
    .summary = "shows jobs, troubles and pictures of products to browsers, and changes nothing",
    .options = options,
    .text =
        "It answers GET and HEAD only. It reads the status socket of pushbroomd and product files, "
        "and of these only those that pushbroom has published. Nothing is loaded from other "
        "hosts.\n\n"
        "It has no users and no encryption: each client that reaches the address can read all. For "
        "other "
        "machines put an HTTP server with TLS and users in front of it, and give its name by "
        "--name.\n\n"
        "Signals: SIGTERM stops. Exit status: 0 stopped, 2 wrong options, 1 the machine refuses.",
    .example = "pushbroom-web --listen 127.0.0.1:8081"};
