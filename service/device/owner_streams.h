/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OWNER_STREAMS_H
#define PB_OWNER_STREAMS_H
/* Decides when jobs use streams from their start, because the GPU has no room for a resident
 * kernel. Thread: any, one at a time. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PB_OWNER_WHY_BYTES 200

/* Present state of the GPU. */
struct pb_owner_facts {
    bool time_limited; /* the driver ends kernels that run for seconds */
    bool mps;          /* processes share the GPU concurrently */
    bool calls_wait;   /* calls that allocate memory wait for a resident kernel */
    bool full;         /* a kernel found no room a short time ago */
    int others;        /* count of processes other than the owner that compute on it */
    int32_t other_pid; /* one of these processes; 0 = unknown */
};

/* Writes the reason for which jobs use streams to `why`; "" if they need not. */
void pb_owner_stream_why(const struct pb_owner_facts *facts, char why[PB_OWNER_WHY_BYTES]);

/* All-zero at first: no reason was reported. */
struct pb_owner_streams {
    char said[PB_OWNER_WHY_BYTES];
};

/* Logs one line when the reason has changed, or is gone. */
void pb_owner_streams_say(struct pb_owner_streams *streams, const char *device, const char *why,
                          FILE *log);
#endif
