/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pushbroom-web: shows jobs and products to browsers. */
#include "service/base/log.h"
#include "service/help/help.h"
#include "service/daemon/daemon.h"
#include "service/web/server.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    OPTION_SOCKET = 256,
    OPTION_NAME,
    OPTION_CERTIFICATE,
    OPTION_KEY,
    OPTION_TOKENS,
    OPTION_USER,
    NAMES_MAX = 16
};

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"certificate", required_argument, NULL, OPTION_CERTIFICATE},
    {"key", required_argument, NULL, OPTION_KEY},
    {"token-file", required_argument, NULL, OPTION_TOKENS},
    {"user-header", required_argument, NULL, OPTION_USER},
    {"name", required_argument, NULL, OPTION_NAME},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
    const char *names[NAMES_MAX];
    struct pb_web_options web = {.listen = PB_WEB_LISTEN, .names = names};
    enum pb_log_level level = PB_LOG_INFO;
    int option;
    while ((option = getopt_long(argc, argv, "l:vVh", options, NULL)) != -1) {
        switch (option) {
        case 'l':
            web.listen = optarg;
            break;
        case OPTION_NAME:
            if (web.n_names == NAMES_MAX) {
                (void)fprintf(stderr, "pushbroom-web: more than %d names\n", NAMES_MAX);
                return PB_DAEMON_EXIT_CONFIG;
            }
            names[web.n_names++] = optarg;
            break;
        case OPTION_CERTIFICATE:
            web.certificate = optarg;
            break;
        case OPTION_KEY:
            web.key = optarg;
            break;
        case OPTION_TOKENS:
            web.guard.token_file = optarg;
            break;
        case OPTION_USER:
            web.guard.user_header = optarg;
            break;
        case OPTION_SOCKET:
            web.socket = optarg;
            break;
        case 'v':
            level = PB_LOG_DEBUG;
            break;
        case 'V':
            (void)printf("pushbroom-web %s\n", PB_VERSION);
            return PB_DAEMON_EXIT_OK;
        case 'h':
            pb_help_print(&pb_help_web, NULL, stdout);
            return PB_DAEMON_EXIT_OK;
        default:
            (void)fputs("Try 'pushbroom-web --help'.\n", stderr);
            return PB_DAEMON_EXIT_CONFIG;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "pushbroom-web: '%s' is one argument too many; try --help\n",
                      argv[optind]);
        return PB_DAEMON_EXIT_CONFIG;
    }
    pb_log_init(level);
    return pb_web_run(&web);
}
