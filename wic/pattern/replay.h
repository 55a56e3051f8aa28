/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_REPLAY_H
#define WIC_REPLAY_H
/* Walks a schedule chunk by chunk. Both devices walk the same schedule; the caller knows which
 * one it is, and sends where the other receives. Each chunk is given as the step it belongs to
 * (direction, chunk_bytes, reach) and its number in that direction, in the order that
 * wic_step_chunk defines. The device's walk, of the same recorded steps, is
 * wic/pattern/replay.cuh. */
#include "wic/pattern/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Moves one chunk. 0, or a negative errno that ends the walk. */
typedef int wic_replay_move(void *context, const struct wic_step *step, uint64_t chunk);

/* Steps that were checked (wic_schedule_record). 0, or what move returned. Thread: any. */
int wic_replay_steps(const struct wic_step *steps, size_t count, wic_replay_move *move,
                     void *context);

/* The same without recorded steps: generates the schedule's steps until its end. 0, what move
 * returned, or what wic_schedule_next did (with the reason in text). Thread: one at a time. */
int wic_replay_schedule(struct wic_schedule *schedule, wic_replay_move *move, void *context,
                        char *text, size_t text_bytes);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
