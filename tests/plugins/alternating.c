/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * An example plugin: (D0->D1, D1->D0)^N, a chunk each way in turn. */
#include "wic/pattern/pattern.h"

#include <errno.h>
#include <stdlib.h>

struct state {
    uint64_t turns; /* done of both directions */
    uint64_t pairs, chunk_bytes;
};

static int create(const struct wic_pattern_params *params, void **out_state)
{
    if (params->chunks[WIC_D0_TO_D1] != params->chunks[WIC_D1_TO_D0] || params->arg_count != 0) {
        return -EINVAL;
    }
    struct state *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return -ENOMEM;
    }
    state->pairs = params->chunks[WIC_D0_TO_D1];
    state->chunk_bytes = params->chunk_bytes;
    *out_state = state;
    return 0;
}

static int next(void *opaque, struct wic_step *out_step)
{
    struct state *state = opaque;
    if (state->turns == 2 * state->pairs) {
        return 0;
    }
    out_step->direction = state->turns % 2 == 0 ? WIC_D0_TO_D1 : WIC_D1_TO_D0;
    out_step->access = WIC_STREAMING;
    out_step->first = state->turns / 2;
    out_step->count = 1;
    out_step->chunk_bytes = state->chunk_bytes;
    state->turns++;
    return 1;
}

WIC_PATTERN_EXPORT = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "alternating",
    .doc = "a chunk from D0 to D1, then one back, and so on",
    .create = create,
    .next = next,
    .destroy = free,
};
