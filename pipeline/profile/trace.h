/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TRACE_H
#define PB_TRACE_H
/* Events of a run, for `pushbroom run --profile`: parts of work (work.h), the stages of each
 * tile, and counters, by thread. They are in memory that is allocated before the first process
 * of the run is forked and shared with all of them: therefore no data has to be sent by a
 * confined process, and events of a crashed one are preserved. The memory is bounded. A thread
 * allocates a chunk of it at a time, therefore threads do not wait for each other; when all
 * chunks are used, further events are counted and dropped. A reader of the events checks them:
 * one of the processes decodes foreign files.
 *
 * Without a trace each function costs a comparison. Thread: any, except for open, clear and
 * close, which belong to one thread while nothing is recorded. */
#include "pipeline/profile/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_trace_kind {
    PB_TRACE_PART,     /* `what` is a pb_work, number: the work's */
    PB_TRACE_COUNT,    /* `what` is a pb_trace_count, span_ns: its new value */
    PB_TRACE_TILE,     /* number: tile that a reader begins */
    PB_TRACE_READY,    /* it is in an input slot */
    PB_TRACE_MADE,     /* its result is removed from an output slot */
    PB_TRACE_TILE_END, /* all products have processed it */
    PB_TRACE_KINDS
};

enum pb_trace_count { PB_TRACE_IN_SLOTS, PB_TRACE_OUT_SLOTS, PB_TRACE_WRITTEN, PB_TRACE_COUNTS };

enum pb_trace_role { PB_TRACE_COMMAND, PB_TRACE_WORKER, PB_TRACE_CHILD };

struct pb_trace_event {
    uint64_t start_ns; /* CLOCK_MONOTONIC */
    uint64_t span_ns;
    uint32_t number;
    uint16_t thread; /* index of pb_trace_thread */
    uint8_t kind, what;
};

struct pb_trace_thread {
    int32_t process, thread; /* ids of the kernel */
    uint8_t role;
    char name[16]; /* without a terminating 0 if full */
};

/* Bytes of the events; a run's plan counts them. 0: no trace. */
#define PB_TRACE_BYTES (UINT64_C(32) << 20)
uint64_t pb_trace_bytes(void);

/* Allocates the memory; processes that are forked from now on record. Returns 0 or -ENOMEM. */
int pb_trace_open(void);
void pb_trace_close(void);
/* Drops all events. */
void pb_trace_clear(void);
/* Sets the role of this process; after a fork it records under its own id. */
void pb_trace_become(enum pb_trace_role role);

/* --- recording; by threads that take part in work --- */
void pb_trace_part(enum pb_work work, uint32_t number, uint64_t start_ns, uint64_t end_ns);
/* Records a stage of a tile: not PART or COUNT. */
void pb_trace_tile(enum pb_trace_kind kind, uint32_t tile);
void pb_trace_set(enum pb_trace_count count, uint64_t value);
void pb_trace_add(enum pb_trace_count count, uint64_t more);
bool pb_trace_is_on(void);

/* --- reading --- */
/* All events in one array, by start, longer ones first; borrowed until clear. They are unchecked
 * data of the processes, except `thread`, which is an index of *out_threads. */
const struct pb_trace_event *pb_trace_events(size_t *out_n, uint64_t *out_left_out);
const struct pb_trace_thread *pb_trace_threads(size_t *out_n);
/* Time at which the memory was allocated. */
uint64_t pb_trace_began_ns(void);
#endif
