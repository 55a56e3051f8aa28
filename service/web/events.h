/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_EVENTS_H
#define PB_WEB_EVENTS_H
/* Server-sent events for browsers. One thread watches the jobs of pushbroomd, and all streams get
 * its messages, so that the load of the service does not grow with the number of browsers. The
 * newest messages are kept: a browser that reconnects continues after the last one it had.
 *
 *   event     data                            when
 *   hello     {reachable, message}            a stream begins, or the service is gone or back
 *   job       a row of a list (upstream.h)    a job changed
 *   info      service.info                    every 2 s while there are streams
 *   reset     {}                              messages were missed: load the lists again
 */
#include "service/web/upstream.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PB_WEB_STREAMS_MAX 128

struct pb_web_catalog;
struct pb_web_events;
struct pb_web_ring;
struct pb_web_stream;

/* Starts the thread, which fills the ring as well, and reports changes to the catalogue. All are
 * borrowed until stop. Returns 0 or negative errno. */
int pb_web_events_start(struct pb_web_upstream *upstream, struct pb_web_ring *ring,
                        struct pb_web_catalog *catalog, const char *socket,
                        struct pb_web_events **out_events);
/* Ends all reads, which then return -1. Thread: any. */
void pb_web_events_end(struct pb_web_events *events);
/* Stops the thread; all streams must be closed. NULL is allowed. */
void pb_web_events_stop(struct pb_web_events *events);

/* Opens a stream that continues after the message of this id (NULL = a new one). NULL if there are
 * too many, or if out of memory. */
struct pb_web_stream *pb_web_stream_open(struct pb_web_events *events, const char *last_id);
void pb_web_stream_close(struct pb_web_stream *stream);
/* Waits for text of the stream: a comment after 10 s without messages. Returns its bytes, or -1 at
 * the end. One thread a stream. */
ssize_t pb_web_stream_read(struct pb_web_stream *stream, char *out, size_t bytes);
/* Number of open streams. */
size_t pb_web_events_streams(struct pb_web_events *events);
#endif
