/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_GATE_H
#define PB_PLAN_GATE_H
/* The gate's part of a plan: the bands that are read first, and the memory of the gate. Pure. */
#include "pipeline/plan/plan.h"

/* Splits the bands of a source. If all bands of a pixel decode together, all are first. */
void pb_plan_gate_split(struct pb_plan *plan, uint32_t source, const struct pb_raster_info *info);
/* Sets plan->gate except its sizes, once bands and grid are known. */
void pb_plan_gate_set(struct pb_plan *plan);
/* Sets the sizes. largest: a tile that no other one exceeds. */
void pb_plan_gate_size(struct pb_plan *plan, const struct pb_tile *largest);
/* Bytes of the gate for all readers together. */
uint64_t pb_plan_gate_bytes(const struct pb_plan *plan, const struct pb_plan_request *request);
/* Side of tiles if products depend on it because a share of a tile must pass; it has precedence
 * over the products' blocks. 0: any side is allowed. */
int32_t pb_plan_gate_side(const struct pb_plan *plan);

/* Part of a tile that is read first: its core is the gate's. */
struct pb_tile pb_plan_gate_tile(const struct pb_plan *plan, const struct pb_tile *tile);
/* Count of the blocks of one band in a source's file; 0: no band is read later. */
uint64_t pb_plan_gate_blocks(const struct pb_plan_source *source,
                             const struct pb_raster_info *info);
#endif
