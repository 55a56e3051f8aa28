/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_RESIDENT_H
#define PB_PLAN_RESIDENT_H
#include "pipeline/plan/plan.h"

/* For the chain, grid, slot format (plane by plane) and kind of memory of the plan: the
 * transport and the pieces by which the resident kernel gets tiles; or why no kernel is resident.
 * Arithmetic only. */
struct pb_plan_resident pb_plan_resident(const struct pb_plan *plan,
                                         const struct pb_plan_request *request);
/* Why tiles use streams although compute.sync is wic; "" = not the case. Borrowed
 * from the plan. */
const char *pb_plan_stream_why(const struct pb_plan *plan, const struct pb_config *config);
/* Size of the parts of a core in which a kernel processes whole tiles. */
void pb_plan_cut_parts(const struct pb_plan *plan, int32_t *out_w, int32_t *out_h);
/* Why slots are not managed although compute.buffers is; "" = not the case. Static
 * text. */
const char *pb_plan_buffers_why(const struct pb_plan *plan, const struct pb_plan_request *request);
/* Count of units of plan->resident.chunks in a tile with this core: lines, or parts, which are
 * those of plan->sums if it is used. */
uint32_t pb_plan_parts(const struct pb_plan *plan, const struct pb_rect *core);
/* Bytes of such a line in the tile's slot; 0: units are parts. */
uint32_t pb_plan_part_bytes(const struct pb_plan *plan, const struct pb_tile *tile);
#endif
