/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIC_REPLAY_H
#define WIC_REPLAY_H
/* Walks a schedule chunk by chunk, as one party of the exchange: the steps that it takes part in,
 * in their order. Every party walks the same schedule; it sends where step->from is its number and
 * receives where step->to is. Each chunk is given as the step it belongs to and its number on its
 * way, in the order that wic_step_chunk defines. The device's walk, of the same steps, is
 * wic/pattern/replay.cuh; wic/pattern/exchange.h has parties that are threads with channels. */
#include "wic/pattern/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Moves one chunk. 0; 1: it is not there, as its open way has ended; or a negative errno that ends
 * the walk. */
typedef int wic_replay_move(void *context, const struct wic_step *step, uint64_t chunk);

/* What a party does. Functions return 0 or a negative errno that ends the walk. */
struct wic_replay {
    uint32_t party;
    wic_replay_move *move;
    /* The step, which has WIC_STEP_TOLD, is over. Its sender has outcome->count and may fill in the
     * value, and hands it on; every other party learns the outcome from it. NULL: no step has. */
    int (*tell)(void *context, const struct wic_step *step, struct wic_outcome *outcome);
    /* Before the first chunk of a step that the party sends: waits until step->after_party has
     * finished the first step->after_steps of its steps. NULL: no step depends on another. */
    int (*await)(void *context, const struct wic_step *step);
    /* The party has finished the first `steps` of its steps. May be NULL. */
    int (*finished)(void *context, uint64_t steps);
    void *context;
};

/* Generates the schedule's steps and walks them until its end. 0, what a function returned, or what
 * wic_schedule_next or wic_schedule_tell did (with the reason in text). Thread: one at a time. */
int wic_replay_schedule(struct wic_schedule *schedule, const struct wic_replay *replay, char *text,
                        size_t text_bytes);

/* All chunks of steps that were checked and recorded (wic_schedule_record), whatever their parties.
 * 0, or what move returned. Thread: any. */
int wic_replay_steps(const struct wic_step *steps, size_t count, wic_replay_move *move,
                     void *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
