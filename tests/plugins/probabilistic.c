/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * An example plugin with arguments and chance: each step's direction and number of chunks are drawn
 * anew, at most n0 chunks D0->D1 or n1 chunks D1->D0 (both 4 unless given). All chance comes from
 * the parameters' seed, so that both sides, and another run, draw the same. */
#include "wic/pattern/pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct state {
    uint64_t left[2], moved[2], most[2];
    uint64_t chunk_bytes, random;
};

/* splitmix64 */
static uint64_t draw(struct state *state)
{
    uint64_t z = state->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int read_args(const struct wic_pattern_params *params, struct state *state)
{
    for (uint64_t i = 0; i < params->arg_count; i++) {
        const struct wic_pattern_arg *arg = &params->args[i];
        if (arg->value == 0) {
            return -EINVAL;
        }
        if (strcmp(arg->name, "n0") == 0) {
            state->most[0] = arg->value;
        } else if (strcmp(arg->name, "n1") == 0) {
            state->most[1] = arg->value;
        } else {
            return -EINVAL;
        }
    }
    return 0;
}

static int create(const struct wic_pattern_params *params, void **out_state)
{
    struct state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return -ENOMEM;
    }
    *state = (struct state){.left = {params->chunks[0], params->chunks[1]},
                            .most = {4, 4},
                            .chunk_bytes = params->chunk_bytes,
                            .random = params->seed};
    int rc = read_args(params, state);
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
    if (state->left[0] == 0 && state->left[1] == 0) {
        return 0;
    }
    uint32_t direction = draw(state) % 2 == 0 ? WIC_D0_TO_D1 : WIC_D1_TO_D0;
    if (state->left[direction] == 0) {
        direction = 1 - direction;
    }
    uint64_t count = 1 + draw(state) % state->most[direction];
    count = count < state->left[direction] ? count : state->left[direction];
    out_step->direction = direction;
    out_step->access = WIC_RANDOM;
    out_step->seed = draw(state);
    out_step->first = state->moved[direction];
    out_step->count = count;
    out_step->chunk_bytes = state->chunk_bytes;
    state->moved[direction] += count;
    state->left[direction] -= count;
    return 1;
}

WIC_PATTERN_EXPORT = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "probabilistic",
    .doc = "direction and number of chunks by chance, at most n0 to D1 and n1 to D0 at a time",
    .create = create,
    .next = next,
    .destroy = free,
};
