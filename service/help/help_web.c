/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

static const struct pb_help_option options[] = {
    {'l', "listen", "ADDRESS:PORT", NULL,
     "where to serve HTTP; default 127.0.0.1:8080, which only this machine reaches; unix:/PATH is "
     "a "
     "Unix socket for a proxy, open to the group of this program"},
    {0, "certificate", "FILE", NULL, "PEM file of the certificates for https; needs --key"},
    {0, "key", "FILE", NULL, "PEM file, or credential, of the private key"},
    {0, "token-file", "FILE", NULL,
     "file, or credential, of the people who may change jobs: lines NAME TOKEN, of 20 characters "
     "or more; needs https or a Unix socket"},
    {0, "user-header", "NAME", NULL,
     "header in which the proxy names its user, who may change jobs; needs a Unix socket"},
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
    .arguments = "[--listen ADDRESS:PORT] [--name HOST] [--certificate FILE --key FILE] "
                 "[--token-file FILE] [--user-header NAME] [--socket FILE] [--verbose]",
    .summary = "shows jobs, troubles and pictures of products to browsers",
    .options = options,
    .text =
        "It reads the status socket of pushbroomd and product files, and of these only those that "
        "pushbroom has published. Nothing is loaded from other hosts, except tiles of "
        "web.basemap.\n\n"
        "Each client that reaches the address can read all. For other machines put an HTTP server "
        "with TLS and users in front of it, and give its name by --name.\n\n"
        "It changes jobs only with web.actions: true in the configuration of pushbroomd, and for "
        "people whom it knows by --token-file or --user-header. Each change is a line of the log "
        "with who made it.\n\n"
        "Signals: SIGTERM stops. Exit status: 0 stopped, 2 wrong options, 1 the machine refuses.",
    .example = "pushbroom-web --listen 127.0.0.1:8081"};
