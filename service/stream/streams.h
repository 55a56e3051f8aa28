/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STREAMS_H
#define PB_STREAMS_H
/* Streams of lines (input.stream): a socket at which writers get a channel, one receiver for
 * each connected writer, and a thread that closes their scenes, which become jobs. Threads run
 * while a pipeline has a stream. No function waits for a writer or a disk, except
 * pb_streams_finish. */
#include "pipeline/run/base/latency.h"
#include "service/base/peer.h"
#include "service/base/troubles.h"
#include "service/inbox/intake.h"

#include <stdio.h>
#include <uv.h>

#define PB_STREAMS_SOCKET "streams.sock" /* in the directory of the status socket */

struct pb_streams;

struct pb_streams_options {
    uv_loop_t *loop;
    const char *status_socket; /* copied */
    struct pb_intake *intake;  /* borrowed until destroy */
    /* Returns true for root, the service's own user and the admins. Thread: any. */
    bool (*is_privileged)(void *user, const struct pb_peer *peer);
    /* Called after the job of a scene was stored, at the begin of the scene or else at its end, and
     * after a scene was closed. job: the stored job, borrowed for the call; NULL: it was stored
     * before. grows: change of the count of open scenes with a job. Thread: loop. */
    void (*taken)(void *user, const struct pb_job *job, int grows);
    struct pb_troubles *troubles; /* "streams", "lines"; borrowed */
    void *user;
};

/* Starts no thread. Thread: loop, as all below unless noted. */
int pb_streams_create(const struct pb_streams_options *options, struct pb_err *err,
                      struct pb_streams **out_streams);
/* Starts the threads if the configuration has a stream, and disconnects writers that it does not
 * allow. Call it after the start and after each reload. NULL is allowed. */
void pb_streams_follow(struct pb_streams *streams, const struct pb_config *config);
/* Refuses writers from now on, and closes all scenes; pb_streams_finish waits for that. After it
 * `taken` is not called any more. NULL is allowed. */
void pb_streams_stop(struct pb_streams *streams);
/* Waits for the threads. Thread: pool. NULL is allowed. */
void pb_streams_finish(struct pb_streams *streams);
/* Closes the handle of the loop, after pb_streams_finish. NULL is allowed. */
void pb_streams_close(struct pb_streams *streams);
/* Frees them after the loop has ended. NULL is allowed. */
void pb_streams_destroy(struct pb_streams *streams);

/* Adds latencies of lines to the counters of a stream that has had a writer. Thread: loop. */
void pb_streams_add_latency(struct pb_streams *streams, const char *stream,
                            const struct pb_latency_counts *more);
/* Prints member `key`: an array of the streams of the configuration, with their writers and
 * counters. NULL is allowed. */
void pb_streams_print(struct pb_streams *streams, struct pb_json *json, const char *key);
/* Prints the metrics of streams; none if there is no stream. NULL is allowed. */
void pb_streams_metrics(struct pb_streams *streams, FILE *out);
#endif
