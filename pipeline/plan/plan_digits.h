/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_DIGITS_H
#define PB_PLAN_DIGITS_H
/* Steps compute in float32, whose 24 bits cannot hold all integers of 32 bits nor all doubles. If a
 * band of such a type is copied unchanged to a product, the digits that float32 loses are kept in
 * separate residual planes (codec/rest.h); in other such bands the pixels that lose digits are
 * counted. */
#include "pipeline/plan/plan.h"

/* Bands of the pipeline's files; all borrowed. */
struct pb_plan_digits_inputs {
    const struct pb_chain_input *input;
    const int32_t *number;                /* band number in its file, from 1 */
    const uint32_t *file;                 /* index into plan->source */
    const struct pb_chain_source *source; /* indexed by window */
    size_t n;
};

/* Fills plan->output_bands, tags, kept, wide, n_wide, floats, n_floats, rest, rest_of and n_rest of
 * the last pass, whose chain, names and sources are known. */
int pb_plan_digits(struct pb_plan *plan, const struct pb_plan_request *request,
                   const struct pb_plan_digits_inputs *in, struct pb_err *err);
/* Host memory for the residuals of the tiles in flight. */
uint64_t pb_plan_rest_bytes(const struct pb_plan *plan);
/* Count of tiles that can have residuals at a time. */
uint32_t pb_plan_rest_slots(const struct pb_plan *plan);
/* Count of floats for the residuals of the largest tile. */
size_t pb_plan_rest_px(const struct pb_plan *plan);
#endif
