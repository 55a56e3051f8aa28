/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The host's walk along a schedule, recorded or generated step by step. */
#include "wic/pattern/replay.h"

#include <errno.h>
#include <stdbool.h>

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

/* Moves the chunks of a step that the party takes part in. *out_count: how many there were. */
static int walk_step(const struct wic_replay *replay, const struct wic_step *step,
                     uint64_t *out_count)
{
    int rc = 0;
    *out_count = 0;
    if (step->from == replay->party && step->after_steps > 0) {
        rc = replay->await == NULL ? -EINVAL : replay->await(replay->context, step);
    }
    for (uint64_t k = 0; k < step->count && rc == 0; k++) {
        rc = replay->move(replay->context, step, wic_step_chunk(step, k));
        *out_count += rc == 0;
    }
    return rc == 1 ? 0 : rc;
}

static int tell(struct wic_schedule *schedule, const struct wic_replay *replay,
                const struct wic_step *step, uint64_t count, char *text, size_t text_bytes)
{
    struct wic_outcome outcome = {count, 0};
    int rc = replay->tell == NULL ? -EINVAL : replay->tell(replay->context, step, &outcome);
    return rc != 0 ? rc : wic_schedule_tell(schedule, &outcome, text, text_bytes);
}

int wic_replay_schedule(struct wic_schedule *schedule, const struct wic_replay *replay, char *text,
                        size_t text_bytes)
{
    struct wic_step step;
    int rc;
    while ((rc = wic_schedule_next(schedule, &step, text, text_bytes)) == 1) {
        bool takes_part = wic_step_has_party(&step, replay->party);
        uint64_t count = 0;
        rc = takes_part ? walk_step(replay, &step, &count) : 0;
        if (rc == 0 && (step.flags & WIC_STEP_TOLD)) {
            rc = tell(schedule, replay, &step, count, text, text_bytes);
        } else if (rc == 0 && takes_part && count < step.count) {
            rc = -EPROTO; /* only an open way can end */
        }
        if (rc == 0 && takes_part && replay->finished != NULL) {
            rc = replay->finished(replay->context, schedule->steps[replay->party]);
        }
        if (rc != 0) {
            return rc;
        }
    }
    return rc;
}
