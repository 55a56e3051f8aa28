/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_DIGITS_H
#define PB_PLAN_DIGITS_H
/* Steps compute in float32, whose 24 bits do not hold all integers of 32 bits nor doubles. Of bands
 * of such types that reach a product as they are, what is missing goes beside the planes, as planes
 * of rests (codec/rest.h); of those that do not, the pixels that lose digits are counted. */
#include "pipeline/plan/plan.h"

/* The bands of the pipeline's files; all borrowed. */
struct pb_plan_digits_inputs {
    const struct pb_chain_input *input;
    const int32_t *number;                /* in its file, from 1 */
    const uint32_t *file;                 /* index into plan->source */
    const struct pb_chain_source *source; /* by window */
    size_t n;
};

/* Fills plan->output_bands, tags, kept, wide, n_wide, floats, n_floats, rest, rest_of and n_rest of
 * the last pass, whose chain, names and sources are known. */
int pb_plan_digits(struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_digits_inputs *in, struct pb_err *err);
/* Host memory of the rests of the tiles that are on their way. */
uint64_t pb_plan_rest_bytes(const struct pb_plan *plan);
/* Tiles that have room for rests at a time. */
uint32_t pb_plan_rest_slots(const struct pb_plan *plan);
/* Floats of the rests of the largest tile. */
size_t pb_plan_rest_px(const struct pb_plan *plan);
#endif
