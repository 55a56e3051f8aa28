/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * ((D0->D1)^n0, (D1->D0)^n1)^N: n0 chunks down, then n1 up, and so on. For work that makes one
 * result of several inputs, or several of one. What is left at the end makes a shorter step. */
#include "wic/pattern/cycle.h"

enum { N0, N1 };

static const struct wic_pattern_arg args[] = {
    [N0] = {"n0", "Chunks from D0 to D1 in a cycle.", 1, 1048576, 4},
    [N1] = {"n1", "Chunks from D1 to D0 in a cycle.", 1, 1048576, 1},
};

static int create(const struct wic_pattern_params *params, void **out_state)
{
    struct wic_cycle *cycle = calloc(1, sizeof(*cycle));
    if (cycle == NULL) {
        return -ENOMEM;
    }
    int rc = wic_cycle_init(cycle, params);
    cycle->portion[0] = params->args[N0];
    cycle->portion[1] = params->args[N1];
    if (rc != 0) {
        free(cycle);
        return rc;
    }
    *out_state = cycle;
    return 0;
}

static int next(void *state, struct wic_step *out_step)
{
    return wic_cycle_next(state, 0, out_step);
}

static int told(void *state, const struct wic_step *step, const struct wic_outcome *outcome)
{
    wic_cycle_told(state, step, outcome);
    return 0;
}

WIC_PATTERN_EXPORT = {
    .abi = WIC_PATTERN_ABI,
    .size = sizeof(struct wic_pattern),
    .name = "multiple",
    .doc =
        "n0 chunks from D0 to D1, then n1 back, and so on: ((D0->D1)^n0, (D1->D0)^n1)^N. For one "
        "result of several inputs.",
    .args = args,
    .arg_count = sizeof(args) / sizeof(args[0]),
    .create = create,
    .next = next,
    .told = told,
    .destroy = free,
};
