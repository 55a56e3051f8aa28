/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pushbroom-notify: tells others of the service's events. */
#include "service/base/log.h"
#include "service/daemon/daemon.h"
#include "service/notify/notifier.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char help[] =
    "Usage: pushbroom-notify --config FILE [--socket PATH] [--verbose]\n"
    "\n"
    "Delivers the events of pushbroomd to those that the configuration lists under 'notify':\n"
    "programs, HTTP servers and MQTT brokers, each event at least once.\n"
    "\n"
    "  -c, --config FILE  the configuration (YAML); default " PB_DAEMON_CONFIG "\n"
    "      --socket PATH  where pushbroomd listens (default: $PUSHBROOM_SOCKET, then\n"
    "                     service.socket of the configuration)\n"
    "  -v, --verbose      log more\n"
    "  -V, --version      print the version\n"
    "  -h, --help         print this\n"
    "\n"
    "Signals: SIGTERM stops, SIGHUP reads the configuration again. Exit status: 0 stopped, 2 the\n"
    "configuration is wrong, 1 the machine refuses.\n";

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
            (void)fputs(help, stdout);
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
