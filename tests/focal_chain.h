/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_FOCAL_CHAIN_H
#define PB_FOCAL_CHAIN_H
/* Random chains of several stages: convolutions of every kind, size and edge rule, straight over
 * one another or over expressions of earlier bands. Bands a and b without nodata, because a wide
 * neighbourhood with a single invalid pixel is invalid and equal results would prove little. */
#include "kernels/chain/chain.h"
#include "tests/op_params.h"

#include <stdio.h>
#include <string.h>

#define FOCAL_CHAIN_LEVELS 4

struct focal_chain_level {
    struct op_params convolve, math;
    struct pb_item kernel, size, edge, weight[15 * 15], band, expr;
    char smooth[24], mixed[24], text[64];
};

static inline uint32_t focal_chain_random(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

static inline void focal_chain_give(struct op_params *params, const char *op, const char *param,
                                    const struct pb_item *items, size_t n)
{
    (void)op_give(pb_op_find(op), params, param, items, n);
}

/* smooth = a focal operation over `from`; reach: at most so large a radius. */
static inline void focal_chain_convolve(struct focal_chain_level *level, uint32_t *random,
                                        const char *from, int reach)
{
    static const char *const kernels[] = {"gaussian", "box", "sobel"};
    static const char *const edges[] = {"reflect", "clamp", "nodata"};
    const uint32_t side = 3 + 2 * focal_chain_random(random, (uint32_t)reach);
    const uint32_t kind = focal_chain_random(random, 4);

    level->edge = (struct pb_item){.text = edges[focal_chain_random(random, 3)]};
    level->band = (struct pb_item){.key = level->smooth, .text = from};
    focal_chain_give(&level->convolve, "convolve", "edge", &level->edge, 1);
    focal_chain_give(&level->convolve, "convolve", "bands", &level->band, 1);
    if (kind < 3) {
        level->kernel = (struct pb_item){.text = kernels[kind]};
        level->size = (struct pb_item){.num = side};
        focal_chain_give(&level->convolve, "convolve", "kernel", &level->kernel, 1);
        focal_chain_give(&level->convolve, "convolve", "size", &level->size, 1);
        return;
    }
    for (uint32_t i = 0; i < side * side; i++)
        level->weight[i] = (struct pb_item){
            .text = "", .num = (double)focal_chain_random(random, 2001) / 1000.0 - 1.0};
    focal_chain_give(&level->convolve, "convolve", "weights", level->weight, side * side);
}

/* 1 to 4 levels. Returns what pb_chain_create does. */
static inline int focal_chain_make(uint32_t *random, enum pb_type type, int reach,
                                   struct pb_diag *diag, struct pb_chain **out_chain)
{
    static struct focal_chain_level levels[FOCAL_CHAIN_LEVELS];
    const struct pb_chain_input inputs[] = {{.name = "a",
                                             .type = type,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 0.01,
                                             .offset = 0.0},
                                            {.name = "b",
                                             .type = type,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 0.01,
                                             .offset = 0.5}};
    const size_t n = 1 + focal_chain_random(random, FOCAL_CHAIN_LEVELS);
    struct pb_chain_step steps[2 * FOCAL_CHAIN_LEVELS];
    const char *outputs[] = {"a", levels[0].smooth, levels[n - 1].mixed};
    const char *before = "a", *older = "b";
    size_t at;

    memset(levels, 0, sizeof levels);
    for (size_t i = 0; i < n; i++) {
        struct focal_chain_level *const level = &levels[i];

        (void)snprintf(level->smooth, sizeof level->smooth, "s%zu", i);
        (void)snprintf(level->mixed, sizeof level->mixed, "m%zu", i);
        (void)snprintf(level->text, sizeof level->text, "(%s - %s) * 0.5 + sqrt(abs(b))",
                       level->smooth, older);
        focal_chain_convolve(level, random, before, reach);
        level->expr = (struct pb_item){.key = level->mixed, .text = level->text};
        focal_chain_give(&level->math, "math", "bands", &level->expr, 1);
        steps[2 * i] = (struct pb_chain_step){pb_op_find("convolve"), &level->convolve};
        steps[2 * i + 1] = (struct pb_chain_step){pb_op_find("math"), &level->math};
        older = before;
        before = focal_chain_random(random, 3) ? level->mixed : level->smooth;
    }
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = steps,
                                       .n_steps = 2 * n,
                                       .outputs = outputs,
                                       .n_outputs = 3};
    return pb_chain_create(&spec, diag, &at, out_chain);
}
#endif
