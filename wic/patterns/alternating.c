/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * (D0->D1, D1->D0)^n: a chunk down, its answer up, and so on. For iterations: parameters down,
 * partial results up, until nothing changes or for a number of rounds. */
#include "wic/pattern/cycle.h"

struct state {
    struct wic_cycle cycle;
    uint64_t rounds;
    int until_zero, is_done;
};

enum { ROUNDS, UNTIL_ZERO };

static const struct wic_pattern_arg args[] = {
    [ROUNDS] =
        {"rounds",
         "Number of chunks each way after which the exchange ends; needs open totals. 0: all.", 0,
         WIC_PATTERN_CHUNKS_MAX, 0},
    [UNTIL_ZERO] = {"until_zero",
                    "1: it ends when the value reported with a chunk up (the number of changed "
                    "pixels, for example) is 0; needs open totals.",
                    0, 1, 0},
};

static int create(const struct wic_pattern_params *params, void **out_state)
{
    struct state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return -ENOMEM;
    }
    int rc = wic_cycle_init(&state->cycle, params);
    state->cycle.portion[0] = state->cycle.portion[1] = 1;
    state->rounds = params->args[ROUNDS];
    state->until_zero = params->args[UNTIL_ZERO] != 0;
    for (uint32_t peer = 1; peer < params->parties && rc == 0; peer++) {
        uint64_t down = params->chunks[0][peer];
        if (down != params->chunks[peer][0] ||
            ((state->rounds > 0 || state->until_zero) && down != WIC_OPEN)) {
            rc = -EINVAL;
        }
    }
    if (rc != 0) {
        free(state);
        return rc;
    }
    *out_state = state;
    return 0;
}

static int next(void *opaque, struct wic_step *out_step)
{
    struct state *state = opaque;
    return state->is_done ? 0 : wic_cycle_next(&state->cycle, state->rounds, out_step);
}

static int told(void *opaque, const struct wic_step *step, const struct wic_outcome *outcome)
{
    struct state *state = opaque;
    wic_cycle_told(&state->cycle, step, outcome);
    if (state->until_zero && step->to == 0 && outcome->value == 0) {
        state->is_done = 1;
    }
    return 0;
}

WIC_PATTERN_EXPORT = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "alternating",
    .doc = "A chunk from D0 to D1, then one back, and so on: (D0->D1, D1->D0)^n. For iterations: "
           "parameters down, partial results up, until nothing changes.",
    .args = args,
    .arg_count = sizeof(args) / sizeof(args[0]),
    .create = create,
    .next = next,
    .told = told,
    .destroy = free,
};
