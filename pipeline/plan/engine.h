/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_ENGINE_H
#define PB_PLAN_ENGINE_H
/* The engine of a pass: limits that hold (pipeline/device/engine_limits.def), the transfers of a
 * resident kernel, and tiles that a GPU sums up. Pure; any thread. */
#include "pipeline/device/engine_limits.h"
#include "pipeline/plan/plan.h"

/* For the chain, grid, slot format (plane by plane) and kind of memory of the plan: the
 * transport and the pieces by which the resident kernel gets tiles; or why no kernel is resident.
 * Arithmetic only. */
struct pb_plan_resident pb_plan_resident(const struct pb_plan *plan,
                                         const struct pb_plan_request *request);
/* Why tiles use streams although compute.sync is wic; "" = not the case. Borrowed
 * from the plan. */
const char *pb_plan_stream_why(const struct pb_plan *plan, const struct pb_config *config);
/* First pass whose planes are managed, or the first of those that need all of the scene at once;
 * the last pass if planes of no pass are managed. */
const struct pb_plan *pb_plan_buffers_pass(const struct pb_plan *plan);
/* Memory that a GPU works with: "managed" if planes of the scene are, in any pass; else that of the
 * slots, "pinned" or "host". Static text. */
const char *pb_plan_buffers(const struct pb_plan *plan);
/* Why planes are managed although compute.buffers is auto, or are not although it is managed; "" =
 * neither. Static text. */
const char *pb_plan_buffers_why(const struct pb_plan *plan);
/* Count of units of plan->resident.chunks in a tile with this core: lines, or parts, which are
 * those of plan->sums if it is used. */
uint32_t pb_plan_parts(const struct pb_plan *plan, const struct pb_rect *core);
/* Bytes of such a line in the tile's slot; 0: units are parts. */
uint32_t pb_plan_part_bytes(const struct pb_plan *plan, const struct pb_tile *tile);
/* Bytes of the tile's results in an output slot. */
size_t pb_plan_out_bytes(const struct pb_plan *plan, const struct pb_tile *tile);

/* A pass for an engine, or one of its files. */
struct pb_engine_case {
    const struct pb_plan *plan;
    const struct pb_plan_request *request;
    int32_t side; /* GPU: side of tiles; 0: none has planes that are small enough */
    const struct pb_raster_info *info; /* FILE */
};

/* Reason why the engine does not do it, which is the first row of the table that holds; NULL: it
 * does, unless a limit of memory or shared memory holds, which the engine's own module finds.
 * Static, or a text of the request. */
const char *pb_engine_refuses(enum pb_engine_name engine, const struct pb_engine_case *facts);

/* Returns true if the GPU decodes blocks of a codec, which is a value of TIFF's tag 259. */
bool pb_engine_decodes(uint16_t codec);

/* Count of cores that compute: compute.threads, or those of the machine. */
double pb_plan_cores(const struct pb_config *config);

/* An engine that a plan does not use, or uses in part. */
struct pb_engine_reason {
    enum pb_engine_name engine;
    const char *reason;
};
enum { PB_ENGINE_REASONS_MAX = PB_ENGINES };
/* Lists them, except those of products, with the reasons. Returns the count. */
size_t pb_engine_reasons(const struct pb_plan *plan,
                         struct pb_engine_reason out[PB_ENGINE_REASONS_MAX]);

/* Sets plan->layout.sums by the chain, grid and device of the plan: decides if a GPU sums up the
 * tiles of this pass, and the parts for it. Arithmetic only. */
void pb_plan_sums_set(struct pb_plan *plan);
/* Needs of a block of `threads` threads for a part, with at most shared_limit bytes of shared
 * memory. Results as for pb_chain_sums_measure. */
int pb_plan_sums_measure(const struct pb_plan *plan, uint32_t threads, uint32_t shared_limit,
                         struct pb_chain_block_needs *out_needs,
                         struct pb_chain_sums_scratch *out_scratch);
/* Bytes of the largest tile's pixels in a slot. */
size_t pb_plan_sums_tile_bytes(const struct pb_plan *plan);
/* Fills the head of slots in a round, of which plan->format.head_bytes are used. */
void pb_plan_sums_head(const struct pb_plan *plan, uint32_t round, struct pb_slot_head *out_head);
#endif
