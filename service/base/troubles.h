/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TROUBLES_H
#define PB_TROUBLES_H
/* Conditions that keep the service from doing its work until they end: a full disk, a directory
 * that cannot be read, a store that does not open. Any part of the service raises a trouble under
 * a key of its own and clears it when the condition is over; raised ones are in service.info, as
 * metrics and in systemd's status line, and each change is logged once. A trouble is a state, not
 * an event: an error of one job belongs to that job. Keys are few and fixed words of the program
 * ("inbox", "store", "queue"), because they become labels of metrics: no names of files, no ids.
 * Plain memory of the caller, no allocation. Thread: loop. */
#include "config/base/err.h"
#include "config/base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PB_TROUBLES_MAX 32
#define PB_TROUBLE_REPEAT_MS                                                                       \
    60000 /* a new text under the same code is logged at most this often                           \
           */

struct pb_trouble {
    char key[32];
    enum pb_code code;
    char text[512];    /* one line, valid UTF-8, no control characters */
    int64_t since_ms;  /* wall clock: time at which it was raised first */
    int64_t logged_ms; /* monotonic clock */
};

/* All-zero: no trouble. */
struct pb_troubles {
    struct pb_trouble at[PB_TROUBLES_MAX]; /* oldest first */
    size_t n;
    /* Called after every change; may be NULL. */
    void (*on_change)(void *user);
    void *user;
};

/* Raises the trouble `key`, or changes the code and text of a raised one. code determines its
 * class and hint; text names the problem and its place (copied, cleaned, cut to fit). troubles may
 * be NULL; if it is full, the trouble is only logged. */
void pb_trouble_raise(struct pb_troubles *troubles, const char *key, enum pb_code code,
                      const char *text);
/* Clears the trouble, because its condition is over. Does nothing if there is no trouble with that
 * key. NULL is allowed. */
void pb_trouble_clear(struct pb_troubles *troubles, const char *key);
/* Finds the trouble with that key, borrowed until the next change; NULL if absent. */
const struct pb_trouble *pb_trouble_find(const struct pb_troubles *troubles, const char *key);

/* Prints member `key` of json: [{"key", "code", "message", "hint", "since"}], oldest first. */
void pb_troubles_print(const struct pb_troubles *troubles, struct pb_json *json, const char *key);
/* Prints lines of the metric pushbroom_trouble{key,code}, 1 for each raised one. */
void pb_troubles_metrics(const struct pb_troubles *troubles, FILE *out);
/* Makes "trouble: <text> (and 2 more); " for a status line, "" if no trouble is raised. */
void pb_troubles_summary(const struct pb_troubles *troubles, char *out, size_t bytes);
#endif
