/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * pushbroom-ccsds: writes lines of a CCSDS downlink into a stream of the service. */
#include "config/downlink.h"
#include "config/units.h"
#include "service/base/log.h"
#include "service/ccsds/receive.h"
#include "service/help/help.h"
#include "service/status/client.h"
#include "service/stream/writer.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_FROM = 256, OPTION_SILENCE, OPTION_TOKEN, OPTION_SOCKET, OPTION_EXAMPLE };

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"stream", required_argument, NULL, 's'},
    {"udp", required_argument, NULL, 'u'},
    {"from", required_argument, NULL, OPTION_FROM},
    {"silence", required_argument, NULL, OPTION_SILENCE},
    {"group", required_argument, NULL, 'g'},
    {"token-file", required_argument, NULL, OPTION_TOKEN},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"example", no_argument, NULL, OPTION_EXAMPLE},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int wrong(const char *message, const char *value)
{
    (void)fprintf(stderr, "pushbroom-ccsds: %s%s; try --help\n", message, value);
    return PB_CCSDS_EXIT_USAGE;
}

static int print_example(void)
{
    char *text = pb_downlink_example();
    const bool good = text != NULL && fputs(text, stdout) >= 0 && fflush(stdout) == 0;
    free(text);
    return good ? PB_CCSDS_EXIT_OK : PB_CCSDS_EXIT_FAILED;
}

/* Takes an option with a value. Returns false if the value is wrong. */
static bool take(struct pb_receive_options *receive, int option)
{
    int64_t number = 0;
    switch (option) {
    case 'c':
        receive->downlink = optarg;
        return true;
    case 's':
        receive->stream = optarg;
        return true;
    case 'u':
        receive->udp = optarg;
        return true;
    case OPTION_FROM:
        receive->from = optarg;
        return true;
    case OPTION_TOKEN:
        receive->token_file = optarg;
        return true;
    case OPTION_SOCKET:
        receive->socket = optarg;
        return true;
    case OPTION_SILENCE:
        return pb_units_duration(optarg, &receive->silence_ms) == 0 && receive->silence_ms > 0;
    default:
        if (pb_units_int(optarg, &number) != 0 || number < 1 || number > PB_STREAM_GROUP_LINES_MAX)
            return false;
        receive->group_lines = (uint32_t)number;
        return true;
    }
}

static int run(struct pb_receive_options *receive, int argc, char **argv)
{
    receive->file = optind < argc ? argv[optind] : NULL;
    if (optind + 1 < argc)
        return wrong("one argument too many: ", argv[optind + 1]);
    if (receive->downlink == NULL)
        return wrong("--config is missing: the description of the downlink", "");
    if ((receive->file == NULL) == (receive->udp == NULL))
        return wrong("give either --udp ADDRESS:PORT or a file", "");
    if (receive->from != NULL && receive->udp == NULL)
        return wrong("--from needs --udp", "");
    return pb_receive_run(receive);
}

int main(int argc, char **argv)
{
    struct pb_receive_options receive = {
        .socket = pb_client_default_path(), .group_lines = 16, .silence_ms = 2000};
    enum pb_log_level level = PB_LOG_INFO;
    int option;
    while ((option = getopt_long(argc, argv, "c:s:u:g:vVh", options, NULL)) != -1) {
        switch (option) {
        case 'v':
            level = PB_LOG_DEBUG;
            break;
        case 'V':
            (void)printf("pushbroom-ccsds %s\n", PB_VERSION);
            return PB_CCSDS_EXIT_OK;
        case 'h':
            pb_help_print(&pb_help_ccsds, NULL, stdout);
            return PB_CCSDS_EXIT_OK;
        case OPTION_EXAMPLE:
            return print_example();
        case '?':
            return wrong("wrong options", "");
        default:
            if (!take(&receive, option))
                return wrong("wrong value: ", optarg);
        }
    }
    pb_log_init(level);
    return run(&receive, argc, argv);
}
