/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pushbroom-fetch: carries files between nodes without a common file system. */
#include "service/base/log.h"
#include "service/daemon/daemon.h"
#include "service/fetch/bridge.h"
#include "service/help/help.h"

#include <getopt.h>
#include <stdio.h>

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
    struct pb_fetch_options fetch = {.config = PB_DAEMON_CONFIG};
    enum pb_log_level level = PB_LOG_INFO;
    int option;
    while ((option = getopt_long(argc, argv, "c:vVh", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            fetch.config = optarg;
            break;
        case 'v':
            level = PB_LOG_DEBUG;
            break;
        case 'V':
            (void)printf("pushbroom-fetch %s\n", PB_VERSION);
            return PB_DAEMON_EXIT_OK;
        case 'h':
            pb_help_print(&pb_help_fetch, NULL, stdout);
            return PB_DAEMON_EXIT_OK;
        default:
            (void)fputs("Try 'pushbroom-fetch --help'.\n", stderr);
            return PB_DAEMON_EXIT_CONFIG;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "pushbroom-fetch: '%s' is one argument too many; try --help\n",
                      argv[optind]);
        return PB_DAEMON_EXIT_CONFIG;
    }
    pb_log_init(level);
    return pb_fetch_run(&fetch);
}
