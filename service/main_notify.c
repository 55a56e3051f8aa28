/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pushbroom-notify: delivers the service's events to other programs. */
#include "service/base/log.h"
#include "service/help/help.h"
#include "service/daemon/daemon.h"
#include "service/notify/notifier.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPTION_SOCKET = 256 };

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'}, {"socket", required_argument, NULL, OPTION_SOCKET},
    {"verbose", no_argument, NULL, 'v'},      {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
    const char *socket = getenv("PUSHBROOM_SOCKET");
    struct pb_notifier_options notifier = {.config = PB_DAEMON_CONFIG,
                                           .socket = socket && *socket ? socket : NULL};
    enum pb_log_level level = PB_LOG_INFO;
    int option;
    while ((option = getopt_long(argc, argv, "c:vVh", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            notifier.config = optarg;
            break;
        case OPTION_SOCKET:
            notifier.socket = optarg;
            break;
        case 'v':
            level = PB_LOG_DEBUG;
            break;
        case 'V':
            (void)printf("pushbroom-notify %s\n", PB_VERSION);
            return PB_DAEMON_EXIT_OK;
        case 'h':
            pb_help_print(&pb_help_notify, NULL, stdout);
            return PB_DAEMON_EXIT_OK;
        default:
            (void)fputs("Try 'pushbroom-notify --help'.\n", stderr);
            return PB_DAEMON_EXIT_CONFIG;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "pushbroom-notify: '%s' is one argument too many; try --help\n",
                      argv[optind]);
        return PB_DAEMON_EXIT_CONFIG;
    }
    pb_log_init(level);
    return pb_notifier_run(&notifier);
}
