/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESTS_H
#define PB_RESTS_H
/* Residuals: the digits that float32 loses, for the tiles in flight. A reader takes a place for the
 * residuals of a tile before it takes a slot, and fills it from the pixels in the slot; the writer
 * of the tile finds it by the tile's number. Therefore executors need no knowledge of it. Counts
 * the pixels whose digits are lost anyway (pipeline/plan/values.h). */
#include "pipeline/plan/plan.h"
#include "pipeline/product/product.h"

struct pb_rests;

/* plan: plan of the last pass, with n_wide > 0; borrowed. */
int pb_rests_create(const struct pb_plan *plan, struct pb_err *err, struct pb_rests **out_rests);
void pb_rests_destroy(struct pb_rests *rests); /* NULL is fine */
/* Takes a place for a tile; parks until one is free, and adds that time to *parked_ns. Call it
 * before acquiring a slot: tiles pass the channel in their order, and a tile that waits here would
 * block those that have a place. 0 or -ECANCELED. Thread: reader. */
int pb_rests_take(struct pb_rests *rests, const struct pb_tile *tile, uint64_t *parked_ns);
/* Fills the tile's place and counts. Thread: the reader that took it. */
void pb_rests_fill(struct pb_rests *rests, const struct pb_tile *tile, const struct pb_tile_in *in);
/* Residual planes of the tile, NaN where its values are NaN. Thread: the writer that has the tile.
 */
const float *pb_rests_find(struct pb_rests *rests, const struct pb_tile *tile, const float *values,
                           size_t plane_px);
void pb_rests_give(struct pb_rests *rests, const struct pb_tile *tile);
void pb_rests_abort(struct pb_rests *rests); /* NULL is fine. Thread: any */
/* Count of the pixels of plan->wide[i] that lost digits. Thread: any. */
uint64_t pb_rests_counted(const struct pb_rests *rests, size_t i);
#endif
