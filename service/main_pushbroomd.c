/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pushbroomd: the service. Some options are not in --help: --worker, and --device with --socket,
 * --sessions and --share, with which the service starts its own processes; --worker-command, with
 * which tests replace the worker by another program, and --owner, with which tests have all jobs
 * computed by the owner of that device, or of several ("cpu,cpu"). */
#include "service/daemon/daemon.h"
#include "service/base/log.h"
#include "service/help/help.h"
#include "service/device/owner.h"
#include "service/worker/worker.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    OPTION_CHECK = 256,
    OPTION_DROP_IN,
    OPTION_WORKER,
    OPTION_WORKER_COMMAND,
    OPTION_DEVICE,
    OPTION_SOCKET,
    OPTION_SESSIONS,
    OPTION_SHARE,
    OPTION_OWNER
};

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"drop-in", no_argument, NULL, OPTION_DROP_IN},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {"worker", no_argument, NULL, OPTION_WORKER},
    {"worker-command", required_argument, NULL, OPTION_WORKER_COMMAND},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"sessions", required_argument, NULL, OPTION_SESSIONS},
    {"share", required_argument, NULL, OPTION_SHARE},
    {"owner", required_argument, NULL, OPTION_OWNER},
    {NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
    struct pb_daemon_options daemon = {.config = NULL};
    enum pb_log_level level = PB_LOG_INFO;
    bool check = false, drop_in = false;
    const char *device = NULL, *socket = NULL;
    int option, sessions = 1, share_percent = 100;
    while ((option = getopt_long(argc, argv, "c:vVh", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            daemon.config = optarg;
            break;
        case OPTION_CHECK:
            check = true;
            break;
        case OPTION_DROP_IN:
            drop_in = true;
            break;
        case 'v':
            level = PB_LOG_DEBUG;
            break;
        case 'V':
            (void)printf("pushbroomd %s\n", PB_VERSION);
            return PB_DAEMON_EXIT_OK;
        case 'h':
            pb_help_print(&pb_help_pushbroomd, NULL, stdout);
            return PB_DAEMON_EXIT_OK;
        case OPTION_WORKER:
            return pb_worker_main();
        case OPTION_WORKER_COMMAND:
            daemon.worker = optarg;
            break;
        case OPTION_DEVICE:
            device = optarg;
            break;
        case OPTION_SOCKET:
            socket = optarg;
            break;
        case OPTION_SESSIONS:
            sessions = atoi(optarg);
            break;
        case OPTION_SHARE:
            share_percent = atoi(optarg);
            break;
        case OPTION_OWNER:
            daemon.owner = optarg;
            break;
        default:
            (void)fputs("Try 'pushbroomd --help'.\n", stderr);
            return PB_DAEMON_EXIT_CONFIG;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "pushbroomd: '%s' is one argument too many; try --help\n",
                      argv[optind]);
        return PB_DAEMON_EXIT_CONFIG;
    }
    if ((device != NULL) != (socket != NULL)) {
        (void)fputs(
            "pushbroomd: --device and --socket need each other: the service starts the process "
            "that owns a device with them; its own device is compute.device of the "
            "configuration\n",
            stderr);
        return PB_DAEMON_EXIT_CONFIG;
    }
    if (device != NULL)
        return pb_owner_main(device, socket, sessions, share_percent);
    bool named = daemon.config != NULL;
    daemon.config = named ? daemon.config : PB_DAEMON_CONFIG;
    if (drop_in)
        return pb_daemon_drop_in(daemon.config);
    if (check)
        return pb_daemon_check(daemon.config);
    if (!named && isatty(STDERR_FILENO)) {
        (void)fputs("pushbroomd: this would start the service in this terminal. To start the "
                    "installed service: systemctl start pushbroom. To run it here: pushbroomd "
                    "--config " PB_DAEMON_CONFIG "\n",
                    stderr);
        return PB_DAEMON_EXIT_CONFIG;
    }
    pb_log_init(level);
    return pb_daemon_run(&daemon);
}
