/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_OUT_H
#define PB_PLAN_OUT_H
/* Output side of decoding on a device (pipeline/run/whole): the products whose blocks are made
 * there, the planes that are copied to the host, and the memory for both. A row of tiles (a strip)
 * stays on the device until all its products are made. Overviews are made from it row by row: each
 * level has the rows of a row of its blocks. Arithmetic; any thread. */
#include "pipeline/plan/plan.h"

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
