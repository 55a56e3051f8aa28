/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_GATE_H
#define PB_PLAN_GATE_H
/* The part of a plan that is about the chain's gate: which bands are read first, and the memory of
 * looking at them. Pure. */
#include "pipeline/plan/plan.h"

/* Splits the bands of a source. Where all bands of a pixel decode together, all are first. */
void pb_plan_gate_split(struct pb_plan *plan, uint32_t source, const struct pb_raster_info *info);
/* Sets plan->gate but for sizes, once bands and grid are known. */
void pb_plan_gate_set(struct pb_plan *plan);
/* Sets the sizes. largest: a tile that no other one exceeds. */
void pb_plan_gate_size(struct pb_plan *plan, const struct pb_tile *largest);
/* Bytes that all readers together hold for it. */
uint64_t pb_plan_gate_bytes(const struct pb_plan *plan, const struct pb_plan_request *request);
/* The side of tiles when products depend on it, before the products' blocks: a share of a tile must
 * pass. 0: it is free. */
int32_t pb_plan_gate_side(const struct pb_plan *plan);

/* What is read first of a tile: its core is the gate's. */
struct pb_tile pb_plan_gate_tile(const struct pb_plan *plan, const struct pb_tile *tile);
/* Blocks of a source's file, of one band; 0: none is read later. */
uint64_t pb_plan_gate_blocks(const struct pb_plan_source *source,
                             const struct pb_raster_info *info);
#endif
