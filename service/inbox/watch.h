/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WATCH_H
#define PB_WATCH_H
/* Watches an inbox: a listing at the start, then updates for the names that filesystem events
 * report, and a listing every rescan_ms because events get lost (network filesystems), after an
 * overflow of their queue, and in place of updates where there are no events. Every complete file
 * is claimed. Only plain files and folders that are scenes are taken; any other entry is logged
 * once. Scans and claims run on libuv's pool, one at a time for a watch (round.h); results are
 * reported on the loop. Thread: loop. */
#include "config/base/err.h"
#include "service/inbox/gathering.h"
#include "service/inbox/left.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct pb_watch;

/* Faults that may stop a watch from working, each a separate trouble. */
enum pb_watch_fault {
    PB_WATCH_READING,
    PB_WATCH_TAKING,
    PB_WATCH_ALONE,
    PB_WATCH_REFUSED,
    PB_WATCH_FAULTS
};

struct pb_watch_trouble {
    enum pb_code code; /* PB_OK if there is no fault */
    char text[900];
};

struct pb_watch_options {
    uv_loop_t *loop;
    const char *inbox; /* copied */
    size_t number;     /* number of the inbox in pb_dirs */
    int64_t settle_ms, rescan_ms;
    struct pb_intake *intake; /* borrowed until the loop has ended */
    /* Called after files became jobs: those of files[0 .. n) with rc 0. Borrowed for the call. */
    void (*taken)(void *user, const struct pb_claimed *files, size_t n);
    /* Requests the metadata of the file `path`, for input.by of the pipeline; pb_watch_answer
     * returns the answer. Returns 0; -ENOMEM: a later scan requests it again. */
    int (*ask)(void *user, uint64_t ticket, const char *pipeline, const char *path);
    void (*looked)(void *user); /* called after the first scan and its claims */
    /* Called when a trouble of this kind begins, at each try while it continues, and when it ends.
     */
    void (*on_trouble)(void *user, enum pb_watch_fault fault);
    void *user;
};

/* The first scan runs from the loop, immediately. */
int pb_watch_start(const struct pb_watch_options *options, struct pb_err *err,
                   struct pb_watch **out_watch);
/* Requests a scan soon, like an event. */
void pb_watch_look(struct pb_watch *watch);
/* The same, and ends the pause after a failed claim, because its cause is gone. */
void pb_watch_resume(struct pb_watch *watch);
/* Passes the answer to the query with that ticket; the inbox is scanned again. */
void pb_watch_answer(struct pb_watch *watch, uint64_t ticket, const struct pb_described *answer);
void pb_watch_set_times(struct pb_watch *watch, int64_t settle_ms, int64_t rescan_ms);
/* Files seen in the inbox that are not complete yet; 0 for NULL. */
size_t pb_watch_waiting(const struct pb_watch *watch);
/* Names in the inbox that service.ignore matches; 0 for NULL. */
size_t pb_watch_ignored(const struct pb_watch *watch);
/* Markers and checksum files without their inputs in the inbox; 0 for NULL. */
size_t pb_watch_alone(const struct pb_watch *watch);
/* Borrowed until the next change. */
const struct pb_watch_trouble *pb_watch_trouble(const struct pb_watch *watch,
                                                enum pb_watch_fault fault);
/* Entries that settle or are not taken. Borrowed until the next change. */
const struct pb_stays *pb_watch_stays(const struct pb_watch *watch);
/* Incomplete scenes. Borrowed until the next change. */
const struct pb_gathering_told *pb_watch_gathering(const struct pb_watch *watch);
/* Ends watching: no handler is called any more. The memory is freed when the last claim is over
 * and libuv has closed the handles. NULL is allowed. */
void pb_watch_stop(struct pb_watch *watch);

/* --- pace of the rounds --- */
/* Time of the scan of an inbox. Files that one command renames in (a scene and its
 * sidecar, many scenes) should be found by one scan; therefore a scan waits until no event has
 * arrived for PB_PACE_QUIET_MS, but no longer than PB_PACE_GATHER_MS. Rounds of a huge inbox, under
 * constant writes or while many files settle, use a tenth of a core at most, as a mean over
 * PB_PACE_CREDIT_MS: a round after a quiet time needs no pause, others wait until the time that
 * their scans took is a tenth. Pure: the caller passes the monotonic time. All-zero: no event, no
 * round yet. */
#define PB_PACE_QUIET_MS  2
#define PB_PACE_GATHER_MS 50
#define PB_PACE_REST_MS   5
#define PB_PACE_CREDIT_MS 10000

struct pb_pace {
    int64_t first_ms;  /* first event since the last round began; 0 = no event */
    int64_t last_ms;   /* last event */
    int64_t paid_ms;   /* time until which scans have used up their share of the core */
    int64_t rested_ms; /* end of the pause after the last round */
};

/* Records an event. Returns the milliseconds until a scan is due at the earliest. */
int64_t pb_pace_event(struct pb_pace *pace, int64_t now_ms);
/* Returns true if an event was recorded since the last round began. */
bool pb_pace_has_event(const struct pb_pace *pace);
/* Returns true if more events are likely to arrive soon. */
bool pb_pace_gathers(const struct pb_pace *pace, int64_t now_ms);
void pb_pace_begin(struct pb_pace *pace); /* begins a round */
/* Ends the round, whose scan took scan_ms. */
void pb_pace_end(struct pb_pace *pace, int64_t now_ms, int64_t scan_ms);
/* Returns the rest of the pause, at least PB_PACE_QUIET_MS. */
int64_t pb_pace_rest(const struct pb_pace *pace, int64_t now_ms);
/* Delay of a round that is due in in_ms for another cause than an event: in_ms or, if it is longer,
 * the rest of the pause. */
int64_t pb_pace_delay(const struct pb_pace *pace, int64_t now_ms, int64_t in_ms);
/* Period of the listings of an inbox, one of which took cost_ms: rescan_ms, or longer for a huge
 * inbox, so that they use a tenth of a core at most. */
int64_t pb_pace_period(int64_t rescan_ms, int64_t cost_ms);
#endif
