/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FEED_H
#define PB_FEED_H
/* All inboxes of the service, each with a watch of its own (watch.h), so that an inbox that does
 * not respond does not block the others: each takes one thread of libuv's pool at a time. While
 * another node watches an inbox (pb_intake_may_take), there is no watch of it here. The service has
 * a trouble while any inbox has it. Thread: loop. */
#include "service/inbox/watch.h"
#include "service/base/troubles.h"

struct pb_feed;

struct pb_feed_options {
    uv_loop_t *loop;
    const struct pb_dirs *dirs;     /* inboxes; borrowed until stop */
    const struct pb_config *config; /* borrowed until set_config or stop */
    struct pb_intake *intake;       /* borrowed until the loop has ended */
    const char *worker;             /* program that reads metadata; borrowed until stop */
    /* the same as of a watch */
    void (*taken)(void *user, const struct pb_claimed *files, size_t n);
    /* called once, when all watches of the start had their first scan and its claims */
    void (*looked)(void *user);
    void *user;
    struct pb_troubles
        *troubles; /* "inbox", "intake", "delivery", "refused"; borrowed until stop */
};

/* Starts the watches; the first scans run from the loop, immediately. */
int pb_feed_start(const struct pb_feed_options *options, struct pb_err *err,
                  struct pb_feed **out_feed);
/* Starts and stops watches, after pb_intake_allow. NULL is allowed. */
void pb_feed_follow(struct pb_feed *feed);
/* Sets the configuration after a reload; it is borrowed until the next call or stop. The
 * directories of the start remain in use. */
void pb_feed_set_config(struct pb_feed *feed, const struct pb_config *config);
/* Sums over all watches (pb_watch_waiting, _ignored, _alone); 0 for NULL. */
size_t pb_feed_waiting(const struct pb_feed *feed);
size_t pb_feed_ignored(const struct pb_feed *feed);
size_t pb_feed_alone(const struct pb_feed *feed);
/* Entries of the inbox with that number that settle or are not taken; NULL if there is no such
 * inbox. Borrowed until the next change. */
const struct pb_stays *pb_feed_stays(const struct pb_feed *feed, size_t inbox);
/* Incomplete scenes of the inbox with that number; NULL if there is no such inbox. Borrowed until
 * the next change. */
const struct pb_gathering_told *pb_feed_gathering(const struct pb_feed *feed, size_t inbox);
/* Requests a scan of all inboxes soon. NULL is allowed. */
void pb_feed_look(struct pb_feed *feed);
/* The same, and ends pauses after failed claims. NULL is allowed. */
void pb_feed_resume(struct pb_feed *feed);
/* Ends watching; see pb_watch_stop. NULL is allowed. */
void pb_feed_stop(struct pb_feed *feed);
#endif
