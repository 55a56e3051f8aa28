/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_WORKER_H
#define PB_TILE_WORKER_H
/* The threads of a pass that this process computes on the CPU. Each moves a tile from the file to
 * the products: reads it, computes it, delivers it to every sink, then takes the next one. The
 * pixels stay in the caches of one core, no thread waits for another one's stage, and a pass needs
 * a slot of each kind for each thread. There are plan->workers of them; if the plan has fewer
 * readers (a file that only decodes from its top has one), that number of threads read at a time,
 * in the visiting order. */
#include "pipeline/run/stream/stream.h"

struct pb_tile_workers;

/* State that they share. stream and exec are borrowed; the stream has own slots and no channels. */
int pb_tile_workers_create(struct pb_stream *stream, void *exec, struct pb_err *err,
                           struct pb_tile_workers **out_workers);
void pb_tile_workers_destroy(struct pb_tile_workers *workers); /* after join; NULL is fine */
/* Body of thread `number` < plan->workers; returns when no tile is left, or the stream aborted. */
void pb_tile_worker_run(struct pb_tile_workers *workers, uint32_t number);
#endif
