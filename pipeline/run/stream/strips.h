/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STRIPS_H
#define PB_STRIPS_H
/* Strips of a scene whose lines arrive. A strip has the lines that have arrived, at least one and
 * at most layout.lines of the plan. Its values reach the sinks that take lines (alerts) at once.
 * Other sinks take tiles: strips are copied into rows of tiles, which other threads deliver when a
 * row is complete. These threads have a lower priority, because compression can wait and lines
 * cannot. The memory is bounded: while all rows are full, a strip waits for its row of tiles, after
 * its values have reached the sinks of lines.
 *
 * On the CPU one thread computes each column of strips. A device gets strips as slots: one reader
 * sends them, one writer takes their results, and the other writers deliver tiles. */
#include "pipeline/run/stream/stream.h"

struct pb_strips;

/* Allocates the rows of tiles. stream: borrowed; its plan, sinks and limiter must be set. Returns
 * 0, or negative and *err (out of memory). */
int pb_strips_create(struct pb_stream *stream, struct pb_err *err, struct pb_strips **out_strips);
void pb_strips_destroy(struct pb_strips *strips); /* NULL is fine */
/* Ends all waits. NULL is fine. Thread: any. */
void pb_strips_abort(struct pb_strips *strips);

/* Bodies of threads. They return when no work is left, or with a negative code that ends the
 * thread; *err is set if the code is a failure. */

/* Computes all strips of a column. exec: made by pb_exec_cpu.create. */
int pb_strips_compute(struct pb_strips *strips, void *exec, uint32_t col, struct pb_err *err);
/* Sends all strips to the executor through stream->in. */
int pb_strips_send(struct pb_strips *strips, struct pb_err *err);
/* Takes the results of strips from stream->out. */
int pb_strips_take(struct pb_strips *strips, struct pb_err *err);
/* Delivers complete tiles. worker < plan->layout.writers. */
int pb_strips_write(struct pb_strips *strips, uint32_t worker, struct pb_err *err);
#endif
