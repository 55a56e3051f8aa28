/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * As multiple, with the direction and the number of chunks anew each time. By chance: drawn from
 * the parameters' seed, so that all parties, and another run, draw the same. By data: the value
 * that the sender of a step tells is the next step, 2 * chunks + direction (0 down, 1 up), cut to
 * what is left; 0 is a step of n0 chunks down, as the first one. */
#include "wic/pattern/cycle.h"

struct state {
    struct wic_cycle cycle;
    uint64_t random;
    uint64_t value; /* told last */
    uint32_t peer;
    int by_data, shuffled;
};

enum { N0, N1, BY_DATA, SHUFFLED };

static const struct wic_pattern_arg args[] = {
    [N0] = {"n0", "Chunks from D0 to D1 at a time, at most.", 1, 1048576, 4},
    [N1] = {"n1", "Chunks from D1 to D0 at a time, at most.", 1, 1048576, 4},
    [BY_DATA] = {"by_data",
                 "0: direction and number are drawn by chance. 1: the value reported with a step "
                 "decides them for the next one.",
                 0, 1, 0},
    [SHUFFLED] = {"shuffled",
                  "1: the order of a step's chunks is drawn as well; needs known totals.", 0, 1, 0},
};

/* splitmix64 */
static uint64_t draw(struct state *state)
{
    uint64_t z = state->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int create(const struct wic_pattern_params *params, void **out_state)
{
    struct state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return -ENOMEM;
    }
    int rc = wic_cycle_init(&state->cycle, params);
    state->cycle.portion[0] = params->args[N0];
    state->cycle.portion[1] = params->args[N1];
    state->by_data = params->args[BY_DATA] != 0;
    state->shuffled = params->args[SHUFFLED] != 0;
    state->random = params->seed;
    if (state->shuffled && wic_cycle_is_open(&state->cycle)) {
        rc = -EINVAL;
    }
    if (rc != 0) {
        free(state);
        return rc;
    }
    *out_state = state;
    return 0;
}

/* The next party with which something is left. */
static uint32_t next_peer(struct state *state)
{
    const struct wic_cycle *cycle = &state->cycle;
    do {
        state->peer = 1 + state->peer % (cycle->parties - 1);
    } while ((cycle->way[0][state->peer].left | cycle->way[1][state->peer].left) == 0);
    return state->peer;
}

static int next_by_data(struct state *state, struct wic_step *out_step)
{
    struct wic_cycle *cycle = &state->cycle;
    uint64_t value = state->value;
    int up = value % 2 != 0;
    state->value = 0;
    if (value == 0 || (cycle->way[0][state->peer].left | cycle->way[1][state->peer].left) == 0) {
        up = 0;
        next_peer(state);
    }
    if (cycle->way[up][state->peer].left == 0) {
        up = !up;
    }
    uint64_t most = cycle->portion[up];
    most = value / 2 > 0 && value / 2 < most ? value / 2 : most;
    int rc = wic_cycle_step(cycle, state->peer, up, most, out_step);
    out_step->flags = WIC_STEP_TOLD;
    return rc;
}

static int next_by_chance(struct state *state, struct wic_step *out_step)
{
    struct wic_cycle *cycle = &state->cycle;
    uint32_t peer = next_peer(state);
    int up = draw(state) % 2 != 0;
    if (cycle->way[up][peer].left == 0) {
        up = !up;
    }
    int rc = wic_cycle_step(cycle, peer, up, 1 + draw(state) % cycle->portion[up], out_step);
    if (state->shuffled) {
        out_step->access = WIC_RANDOM;
        out_step->seed = draw(state);
    }
    return rc;
}

static int next(void *opaque, struct wic_step *out_step)
{
    struct state *state = opaque;
    if (wic_cycle_is_over(&state->cycle)) {
        return 0;
    }
    return state->by_data ? next_by_data(state, out_step) : next_by_chance(state, out_step);
}

static int told(void *opaque, const struct wic_step *step, const struct wic_outcome *outcome)
{
    struct state *state = opaque;
    wic_cycle_told(&state->cycle, step, outcome);
    state->value = outcome->value;
    return 0;
}

WIC_PATTERN_EXPORT = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "probabilistic",
    .doc = "Direction and number of chunks are chosen for each step, at most n0 to D1 and n1 to "
           "D0, by chance or by the data. For work whose amount is known only while it runs.",
    .args = args,
    .arg_count = sizeof(args) / sizeof(args[0]),
    .create = create,
    .next = next,
    .told = told,
    .destroy = free,
};
