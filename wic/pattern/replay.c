/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The host's walk along a schedule, recorded or generated step by step. */
#include "wic/pattern/replay.h"

int wic_replay_steps(const struct wic_step *steps, size_t count, wic_replay_move *move,
                     void *context)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        for (uint64_t k = 0; k < steps[i].count && rc == 0; k++) {
            rc = move(context, &steps[i], wic_step_chunk(&steps[i], k));
        }
    }
    return rc;
}

int wic_replay_schedule(struct wic_schedule *schedule, wic_replay_move *move, void *context,
                        char *text, size_t text_bytes)
{
    struct wic_step step;
    int rc;
    while ((rc = wic_schedule_next(schedule, &step, text, text_bytes)) == 1) {
        rc = wic_replay_steps(&step, 1, move, context);
        if (rc != 0) {
            return rc;
        }
    }
    return rc;
}
