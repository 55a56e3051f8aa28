/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXEC_CPU_H
#define PB_EXEC_CPU_H
/* The CPU executor on the caller's thread. */
#include "pipeline/run/stream/stream.h"

/* Computes a tile. exec: made by pb_exec_cpu.create; in: an input slot with the tile's pixels, out:
 * an output slot for its results, pb_plan_out_bytes. *err is filled on failure. Thread:
 * any, each with its own number < pb_exec_cpu.threads(). */
int pb_exec_cpu_tile(void *exec, uint32_t thread, const struct pb_tile *tile, void *in, void *out,
                     struct pb_err *err);
#endif
