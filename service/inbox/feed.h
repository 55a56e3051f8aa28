/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FEED_H
#define PB_FEED_H
/* All inboxes of the service, each with a watch of its own (watch.h), so that one that does not
 * answer keeps no other from being read: each takes one thread of libuv's pool at a time. A trouble
 * of one is the service's until none has it. Thread: loop. */
#include "service/inbox/watch.h"
#include "service/base/troubles.h"

struct pb_feed;

struct pb_feed_options {
    uv_loop_t *loop;
    const struct pb_dirs *dirs;     /* its inboxes; borrowed for the call */
    const struct pb_config *config; /* until set_config, or stop */
    struct pb_intake *intake;       /* borrowed until the loop has ended */
    const char *worker;             /* program that reads metadata; borrowed until stop */
    void (*taken)(void *user, const struct pb_claimed *files, size_t n); /* as of the watches */
    void (*looked)(void *user); /* all had their first scan and its claims */
    void *user;
    struct pb_troubles
        *troubles; /* "inbox", "intake", "delivery", "refused"; borrowed until stop */
};

/* The first scans run from the loop, at once. */
int pb_feed_start(const struct pb_feed_options *options, struct pb_err *err,
                  struct pb_feed **out_feed);
/* After a reload; config is borrowed until the next one, or stop. The directories stay those of the
 * start. */
void pb_feed_set_config(struct pb_feed *feed, const struct pb_config *config);
/* The sums of all watches (pb_watch_waiting, _ignored, _alone); 0 for NULL. */
size_t pb_feed_waiting(const struct pb_feed *feed);
size_t pb_feed_ignored(const struct pb_feed *feed);
size_t pb_feed_alone(const struct pb_feed *feed);
/* The entries of the inbox of that number that settle or are not taken; NULL = there is no such
 * inbox. Borrowed until the next change. */
const struct pb_stays *pb_feed_stays(const struct pb_feed *feed, size_t inbox);
/* The scenes that are not complete, of the inbox of that number; NULL = there is no such inbox.
 * Borrowed until the next change. */
const struct pb_gathering_told *pb_feed_gathering(const struct pb_feed *feed, size_t inbox);
/* The inboxes are to be scanned soon. NULL is fine. */
void pb_feed_look(struct pb_feed *feed);
/* Ends watching; see pb_watch_stop. NULL is fine. */
void pb_feed_stop(struct pb_feed *feed);
#endif
