/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RECEIVER_H
#define PB_RECEIVER_H
/* The service's side of one connected writer: a thread that takes groups of lines out of the
 * channel and appends them to scenes. The writer may be hostile, stop, or die at any point: the
 * thread waits for it PB_RECEIVER_LOOK_MS at most, checks each header, and closes a scene after
 * silence. Its channel is memory of the service, sealed, so that a writer cannot shrink it. */
#include "service/stream/scene.h"

#include <stdatomic.h>

#define PB_RECEIVERS_MAX    64
#define PB_RECEIVER_LOOK_MS 100
#define PB_RECEIVER_REPEATS 10 /* smaller numbers of a writer in a second, at most */

struct pb_receiver;

/* Counters of a stream since the start of the service. Written by its receiver, read by any
 * thread. */
struct pb_stream_counts {
    _Atomic uint64_t lines, gap_lines, gaps, dropped, scenes, writers;
    _Atomic uint64_t rate;      /* lines in the last whole second */
    _Atomic uint64_t next_line; /* number that is expected next */
    _Atomic uint64_t waiting;   /* groups in the channel at the last look */
    _Atomic int64_t last_ms;    /* monotonic time of the last line; 0 = never */
    _Atomic int64_t latency_us; /* time from publication to the scene, for the last group */
};

struct pb_receiver_options {
    struct pb_scene_source source;
    struct pb_stream_counts *counts; /* borrowed until the receiver is destroyed */
    int connection;                  /* taken */
    /* Called after the first line of a scene was appended. scene: borrowed until `complete`.
     * Thread: the receiver's. */
    void (*begun)(void *user, struct pb_stream_scene *scene);
    /* Called with a scene whose lines are complete, which it takes. Thread: the receiver's. */
    void (*complete)(void *user, struct pb_stream_scene *scene);
    /* Called with the error of a failed write, and with code PB_OK after a later write succeeded or
     * when no line waits. Thread: the receiver's. */
    void (*trouble)(void *user, const struct pb_err *err);
    /* Called at the end, before the connection is closed; pb_receiver_join waits for the rest.
     * Thread: the receiver's. */
    void (*ended)(void *user, struct pb_receiver *receiver);
    void *user;
};

/* Makes the channel, answers the writer and starts the thread. On failure the connection is the
 * caller's. */
int pb_receiver_start(const struct pb_receiver_options *options, struct pb_err *err,
                      struct pb_receiver **out_receiver);
/* Requests the thread to close its scene and to end. Thread: any. */
void pb_receiver_stop(struct pb_receiver *receiver);
/* Waits for the end of the thread, and frees the receiver. Thread: any but its own. */
void pb_receiver_join(struct pb_receiver *receiver);
int64_t pb_receiver_uid(const struct pb_receiver *receiver);
const char *pb_receiver_stream(const struct pb_receiver *receiver);
#endif
