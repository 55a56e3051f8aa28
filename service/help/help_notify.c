/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

static const struct pb_help_option options[] = {
    {'c', "config", "FILE", NULL,
     "the configuration (YAML); default /etc/pushbroom/pushbroom.yaml"},
    {0, "socket", "FILE", NULL,
     "where pushbroomd listens (default: $PUSHBROOM_SOCKET, then service.socket of the "
     "configuration)"},
    {'v', "verbose", NULL, NULL, "log more"},
    {'V', "version", NULL, NULL, "print the version"},
    {'h', "help", NULL, NULL, "print this"},
    {0, NULL, NULL, NULL, NULL},
};

const struct pb_help_page pb_help_notify = {
    .name = "pushbroom-notify",
    .arguments = "--config FILE [--socket FILE] [--verbose]",
    .summary =
        "delivers events of pushbroomd to programs, HTTP servers, STAC APIs and MQTT brokers",
    .options = options,
    .text =
        "The list 'notify' of the configuration has the receivers and their events. Each event is "
        "delivered at "
        "least once; it has an id by which a receiver finds those that it has already. Undelivered "
        "events are kept by pushbroomd, so either program may be stopped or killed "
        "at any time.\n\n"
        "An event is a CloudEvent 1.0 in JSON. A webhook gets it by POST, signed as "
        "standardwebhooks.com describes when there is a secret_file; a broker as the payload of a "
        "message; a program on its standard input. A STAC API gets the item of each published STAC "
        "product by POST, or by PUT if it has the item. A secret is the absolute path of a file "
        "that "
        "not all users may read, or the name of a credential (LoadCredential= of the unit).\n\n"
        "Signals: SIGTERM stops, SIGHUP reads the configuration again. Exit status: 0 stopped, 2 "
        "the configuration is wrong, 1 the machine refuses."};
