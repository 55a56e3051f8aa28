/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

static const struct pb_help_option options[] = {
    {'c', "config", "FILE", NULL,
     "the configuration (YAML); default /etc/pushbroom/pushbroom.yaml, but needed to run the "
     "service "
     "in a terminal"},
    {0, "check", NULL, NULL,
     "check the configuration, directories and socket, make nothing and leave: 0 all is fine, 2 "
     "the configuration is not, 1 the machine is not"},
    {0, "drop-in", NULL, NULL,
     "print a systemd drop-in with the memory that the configuration needs"},
    {'v', "verbose", NULL, NULL, "log more"},
    {'V', "version", NULL, NULL, "print the version"},
    {'h', "help", NULL, NULL, "print this"},
    {0, NULL, NULL, NULL, NULL},
};

const struct pb_help_page pb_help_pushbroomd = {
    .name = "pushbroomd",
    .arguments = "[--config FILE] [--check | --drop-in] [--verbose]",
    .summary = "runs every scene that appears in the inbox through a pipeline and publishes the "
               "products",
    .options = options,
    .text = "Signals: SIGTERM stops within 10 s (running jobs are put back), SIGHUP reads the "
            "configuration again. 'pushbroom status' shows what it is doing.\n\n"
            "--drop-in prints a MemoryMax for the unit, by the memory that the pipelines need: "
            "write it to /etc/systemd/system/pushbroom.service.d/memory.conf.",
    .example = "pushbroomd --config /etc/pushbroom/pushbroom.yaml --check"};
