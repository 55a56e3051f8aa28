/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_STAGED_H
#define PB_PLAN_STAGED_H
/* Decoding on a device (pipeline/run/whole): blocks that are sent as they are stored, pixels that
 * stay for later passes, and the output side. */
#include "pipeline/plan/plan.h"

/* Sets plan->engine.whole by the chain, sources, sums, gate and kind of memory of the plan: decides
 * if blocks are sent to the GPU as they are stored, or why not. An existing why_not is kept, and
 * with an existing managed_why planes are not managed. Arithmetic only. */
void pb_plan_whole_set(struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if GPU decoding is useless for a plan whose plan->out is known: the host would
 * decode every block and make every product. Then whole.host_why is the reason. */
bool pb_plan_whole_is_vain(const struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if n_cores are a considerable part of the speed that they and a GPU with `streams`
 * decoding streams have together, so that both should decode. */
bool pb_plan_whole_shares(uint32_t streams, double n_cores);
/* For a pass that leaves its pixels on the GPU: also reads the bands that only later passes need,
 * after the pass's own, for files that are alone in a window, if there is room.
 * False: nothing changes. */
bool pb_plan_whole_widen(struct pb_plan *plan, const struct pb_plan_request *request);
/* Returns true if the pass before has left all pixels on the GPU that a pass reads. */
bool pb_plan_whole_holds(const struct pb_plan *before, const struct pb_plan *plan);
/* Memory of the readers, for the plan's number of them, that decode some of the blocks. */
struct pb_plan_decoding pb_plan_whole_decoding(const struct pb_plan *plan);

/* Output side of decoding on a device (pipeline/run/whole): the products whose blocks are made
 * there, the planes that are copied to the host, and the memory for both. A row of tiles (a strip)
 * stays on the device until all its products are made. Overviews are made from it row by row: each
 * level has the rows of a row of its blocks. Arithmetic; any thread. */

/* Rows of a level's blocks that are on the device. */
struct pb_out_level {
    int32_t w, h;    /* size of the level */
    int32_t rows;    /* rows in memory: one row of blocks, or more */
    uint32_t row_px; /* distance of rows */
    uint64_t plane_px;
};

/* Fills plan->out. After plan->whole is known. */
void pb_plan_out(struct pb_plan *plan, const struct pb_plan_request *request);
/* level: from 1. */
struct pb_out_level pb_plan_out_level(const struct pb_plan *plan, const struct pb_plan_made *made,
                                      uint32_t level);
/* Returns true if blocks of that level are made; level 0: the image. */
bool pb_plan_out_makes(const struct pb_plan_made *made, uint32_t level);
/* Format of its blocks or, layer 1, of their masks. */
struct pb_encode_format pb_plan_out_format(const struct pb_plan_made *made, uint32_t layer);
/* Returns true if tiles are sent to the host: with planes, or to be counted. */
bool pb_plan_out_has_planes(const struct pb_plan *plan);
/* Returns true if the device computes reduction i of an earlier pass. */
bool pb_plan_out_reduces(const struct pb_plan *plan, size_t i);
bool pb_plan_out_has_plane(const struct pb_plan *plan, uint32_t plane);
#endif
