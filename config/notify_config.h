/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NOTIFY_CONFIG_H
#define PB_NOTIFY_CONFIG_H
/* The section `notify` of a configuration: receivers of events. Owned by struct pb_config.
 * Read-only; any thread. */
#include <stddef.h>
#include <stdint.h>

enum pb_notify_kind {
    PB_NOTIFY_EXEC,
    PB_NOTIFY_WEBHOOK,
    PB_NOTIFY_MQTT,
    PB_NOTIFY_STAC,
    PB_NOTIFY_KINDS
};
#define PB_NOTIFY_MAX 32

/* Somebody who is told of events. Members of other kinds are NULL or 0. A secret is the path of a
 * file, or the name of a credential of the unit. */
struct pb_notify_config {
    enum pb_notify_kind kind;
    char *name; /* unique */
    char **events;
    size_t n_events;
    char **pipelines; /* none: all */
    size_t n_pipelines;
    int64_t timeout_ms; /* of one try */
    int64_t retry_ms;   /* the longest wait between two tries */
    int64_t overdue_ms, expire_ms;
    char **command; /* exec: program and arguments */
    size_t n_command;
    char *url, *token;                    /* webhook and stac */
    char *secret;                         /* webhook */
    char *collection, *base_url;          /* stac; collection NULL = the item's */
    char *host, *topic, *user, *password; /* mqtt */
    int32_t port, qos;                    /* port 0: 8883 with tls, else 1883 */
    int32_t tls;                          /* 0 on, 1 off */
    char *ca_file;                        /* NULL = the system's */
    int line, col;
};
#endif
