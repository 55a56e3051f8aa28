/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

static const struct pb_help_option options[] = {
    {'c', "config", "FILE", NULL,
     "description of the downlink (YAML): frames, time code, lines; see --example"},
    {'s', "stream", "NAME", NULL,
     "stream of pushbroomd (input.stream of a pipeline); without it lines are only counted"},
    {'u', "udp", "ADDRESS:PORT", NULL,
     "receive datagrams there; each has whole frames, or whole packets if there are no frames"},
    {0, "from", "ADDRESS", NULL, "take datagrams of this sender only"},
    {0, "silence", "DURATION", NULL,
     "without datagrams for this long, missing packets are given up; default 2s"},
    {'g', "group", "LINES", NULL, "most lines that are published together; default 16"},
    {0, "token-file", "FILE", NULL, "token of the stream; without it the user decides"},
    {0, "socket", "FILE", NULL,
     "status socket of pushbroomd (default: $PUSHBROOM_SOCKET, then /run/pushbroom/status.sock); "
     "streams.sock is next to it"},
    {0, "example", NULL, NULL, "print a commented description with every key"},
    {'v', "verbose", NULL, NULL, "log more"},
    {'V', "version", NULL, NULL, "print the version"},
    {'h', "help", NULL, NULL, "print this"},
    {0, NULL, NULL, NULL, NULL},
};

const struct pb_help_page pb_help_ccsds = {
    .name = "pushbroom-ccsds",
    .arguments = "--config FILE [--stream NAME] --udp ADDRESS:PORT | FILE",
    .summary = "writes lines of a CCSDS downlink into a stream of pushbroomd",
    .options = options,
    .text =
        "It reads AOS or TM transfer frames, or space packets alone, from UDP or from FILE (- is "
        "standard input), and makes lines of the packets by the description. Frames and "
        "packets that arrive late are put in order. A line of which a part is missing or damaged "
        "is left out, and is a gap in the products. Line numbers and times are those of the "
        "packets.\n\n"
        "Gaps are in the log. Counts of frames, packets and lines are in the log once a minute, "
        "and are printed at the end.\n\n"
        "Signals: SIGTERM and SIGINT end the scene and stop. Exit status: 0 done, 1 the input "
        "cannot be read, 2 wrong options or description, 3 the service did not take all lines.",
    .example = "pushbroom-ccsds --config swir.yaml --stream swir --udp 0.0.0.0:5000",
    .takes_files = true};
