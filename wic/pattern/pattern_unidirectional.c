/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * (D0->D1)^N: all chunks go one way, in steps of at most a ring. Built in, with the interface of a
 * plugin. */
#include "wic/pattern/pattern.h"

#include "wic/pattern/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct state {
    uint64_t left, moved, chunk_bytes, most;
    uint32_t access, reach;
};

/* reach: how many chunks on either side a chunk is worked on with; 0 is streaming. */
static int read_args(const struct wic_pattern_params *params, struct state *state)
{
    for (uint64_t i = 0; i < params->arg_count; i++) {
        const struct wic_pattern_arg *arg = &params->args[i];
        if (strcmp(arg->name, "reach") == 0 && arg->value <= params->slots / 2) {
            state->reach = (uint32_t)arg->value;
        } else {
            return -EINVAL;
        }
    }
    state->access = state->reach > 0 ? WIC_ADJACENT : WIC_STREAMING;
    return 0;
}

static int create(const struct wic_pattern_params *params, void **out_state)
{
    if (params->chunks[WIC_D1_TO_D0] != 0) {
        return -EINVAL;
    }
    struct state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return -ENOMEM;
    }
    state->left = params->chunks[WIC_D0_TO_D1];
    state->chunk_bytes = params->chunk_bytes;
    state->most = params->slots;
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
    if (state->left == 0) {
        return 0;
    }
    uint64_t count = state->left < state->most ? state->left : state->most;
    out_step->direction = WIC_D0_TO_D1;
    out_step->access = state->access;
    out_step->reach = state->reach;
    out_step->first = state->moved;
    out_step->count = count;
    out_step->chunk_bytes = state->chunk_bytes;
    state->moved += count;
    state->left -= count;
    return 1;
}

const struct wic_pattern wic_pattern_unidirectional = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "unidirectional",
    .doc = "everything from D0 to D1, in order; reach=R: each chunk together with R on either side",
    .create = create,
    .next = next,
    .destroy = free,
};
