/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * (D0->D1)^n: all chunks go one way, in one step. With more parties each gets a ring's worth in
 * turn. Built in, with the interface of a plugin. */
#include "wic/pattern/cycle.h"
#include "wic/pattern/schedule.h"

struct state {
    struct wic_cycle cycle;
    uint32_t reach;
};

enum { REACH };

static const struct wic_pattern_arg args[] = {
    [REACH] = {"reach",
               "Number of chunks before and after each chunk that are processed together with it; "
               "needs 2 * reach + 1 slots. 0: alone.",
               0, 2048, 0},
};

static int create(const struct wic_pattern_params *params, void **out_state)
{
    struct state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return -ENOMEM;
    }
    int rc = wic_cycle_init(&state->cycle, params);
    for (uint32_t peer = 1; peer < params->parties && rc == 0; peer++) {
        rc = params->chunks[peer][0] != 0 ? -EINVAL : 0;
    }
    state->reach = (uint32_t)params->args[REACH];
    if (rc == 0 && 2 * state->reach >= params->slots && state->reach > 0) {
        rc = -EINVAL;
    }
    if (rc != 0) {
        free(state);
        return rc;
    }
    state->cycle.portion[0] = params->parties == 2 ? WIC_PATTERN_CHUNKS_MAX : params->slots;
    *out_state = state;
    return 0;
}

static int next(void *opaque, struct wic_step *out_step)
{
    struct state *state = opaque;
    int rc = wic_cycle_next(&state->cycle, 0, out_step);
    if (rc == 1 && state->reach > 0) {
        out_step->access = WIC_ADJACENT;
        out_step->reach = state->reach;
    }
    return rc;
}

static int told(void *opaque, const struct wic_step *step, const struct wic_outcome *outcome)
{
    wic_cycle_told(&((struct state *)opaque)->cycle, step, outcome);
    return 0;
}

const struct wic_pattern wic_pattern_unidirectional = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "unidirectional",
    .doc = "All chunks are sent from D0 to D1, in order: (D0->D1)^n. The default for tiles, unless "
           "a pipeline or an operator chooses another.",
    .args = args,
    .arg_count = sizeof(args) / sizeof(args[0]),
    .create = create,
    .next = next,
    .told = told,
    .destroy = free,
};
