/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SENDER_H
#define PB_SENDER_H
/* Delivers events: a table of functions for each kind of entry under `notify`. A sender belongs to
 * one thread and waits at most for its entry's `timeout`, or until the program stops. */
#include "service/notify/stop.h"

struct pb_json_value;

#include <stddef.h>
#include <stdint.h>

struct pb_notify_config;

#define PB_SENDER_WHY_BYTES 400

/* Event that is sent; all pointers are borrowed. */
struct pb_letter {
    const char *id, *event, *job, *pipeline, *scene;
    const char *body; /* a CloudEvent as JSON */
    size_t bytes;
    const struct pb_json_value *product; /* product of product.published, otherwise NULL */
};

enum pb_sent {
    PB_SENT,
    PB_SENT_NOT,    /* try again: the receiver is down, busy, or not set up yet */
    PB_SENT_REFUSED /* the receiver does not take this event */
};

/* Reason why an event was not sent. */
struct pb_sent_why {
    char text[PB_SENDER_WHY_BYTES];
    int64_t wait_ms; /* delay that the receiver requests; 0: no request */
};

struct pb_sender_kind {
    /* NULL = out of memory. Both are borrowed. */
    void *(*create)(const struct pb_notify_config *notify, const struct pb_stop *stop);
    enum pb_sent (*send)(void *sender, const struct pb_letter *letter, struct pb_sent_why *why);
    void (*rest)(void *sender); /* no event waits now: closes connections. NULL if not needed */
    void (*destroy)(void *sender);
};

extern const struct pb_sender_kind pb_sender_exec, pb_sender_webhook, pb_sender_mqtt,
    pb_sender_stac;

/* Called once in the program, before the first thread and after the last. */
void pb_mqtt_init(void);
void pb_mqtt_fini(void);
void pb_sent_fail(struct pb_sent_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#endif
