/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WATCH_H
#define PB_WATCH_H
/* Watches the inbox: a scan at the start, then filesystem events as hints to scan again, and a scan
 * every rescan_ms because events get lost (queue overflow, network filesystems). Hands every
 * complete file to `take`. Only plain files are taken; anything else is named in the log once.
 * Thread: loop. */
#include "config/err.h"
#include "service/settle.h"
#include "service/troubles.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct pb_watch;

struct pb_watch_options {
    uv_loop_t *loop;
    const char *inbox; /* copied */
    int64_t settle_ms, rescan_ms;
    /* Takes the file (renames it away). 0; -EAGAIN: the file changed or is being written, and has
     * to settle again; another negative errno and *err: when err->code is the input's fault
     * (PB_CLASS_INPUT) the file stays and the next is offered; else nothing can be taken, which is
     * a trouble, and no file is offered for some seconds. file is borrowed for the call. */
    int (*take)(void *user, const struct pb_settle_file *file, struct pb_err *err);
    void *user;
    struct pb_troubles *troubles; /* "inbox", "intake"; borrowed until stop */
};

/* The first scan runs from the loop, at once. */
int pb_watch_start(const struct pb_watch_options *options, struct pb_err *err,
                   struct pb_watch **out_watch);
void pb_watch_set_times(struct pb_watch *watch, int64_t settle_ms, int64_t rescan_ms);
void pb_watch_scan_soon(struct pb_watch *watch);
/* Files seen in the inbox that are not complete yet; 0 for NULL. */
size_t pb_watch_waiting(const struct pb_watch *watch);
/* Ends watching; memory goes when libuv has closed the handles. NULL is fine. */
void pb_watch_stop(struct pb_watch *watch);
#endif
