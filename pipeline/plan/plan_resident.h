/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_RESIDENT_H
#define PB_PLAN_RESIDENT_H
#include "pipeline/plan/plan.h"

/* For the chain, grid, slot format (plane by plane) and kind of memory of the plan: by which
 * transport tiles come to the resident kernel, and in what pieces; or why none stays.
 * Arithmetic only. */
struct pb_plan_resident pb_plan_resident(const struct pb_plan *plan,
                                         const struct pb_plan_request *request);
/* Why tiles go by streams although compute.sync is wic; "" = they do not, or it is not. Borrowed
 * from the plan. */
const char *pb_plan_stream_why(const struct pb_plan *plan, const struct pb_config *config);
/* The parts of a core in which whole tiles are worked on. */
void pb_plan_cut_parts(const struct pb_plan *plan, int32_t *out_w, int32_t *out_h);
/* Why slots are not managed although compute.buffers says so; "" = they are, or it does not. Static
 * text. */
const char *pb_plan_buffers_why(const struct pb_plan *plan, const struct pb_plan_request *request);
/* How many units of plan->resident.chunks a tile with this core is: lines, or parts, which are
 * those of plan->sums where there are such. */
uint32_t pb_plan_parts(const struct pb_plan *plan, const struct pb_rect *core);
/* Bytes of such a line in the tile's slot; 0: units are parts. */
uint32_t pb_plan_part_bytes(const struct pb_plan *plan, const struct pb_tile *tile);
#endif
