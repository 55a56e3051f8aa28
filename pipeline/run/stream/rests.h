/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESTS_H
#define PB_RESTS_H
/* What float32 does not hold of the tiles on their way: a reader takes a place for the rests of a
 * tile before it takes a slot, fills it from the pixels in the slot, and the writer that gets the
 * tile finds it by the tile's number. So no executor has to know of it. Counts the pixels whose
 * digits are lost all the same (plan_digits.h). */
#include "pipeline/plan/plan.h"
#include "pipeline/product/product.h"

struct pb_rests;

/* plan: of the last pass, with n_wide > 0; borrowed. */
int pb_rests_create(const struct pb_plan *plan, struct pb_err *err, struct pb_rests **out_rests);
void pb_rests_destroy(struct pb_rests *rests); /* NULL is fine */
/* A place for a tile; parks until there is one, which it adds to *parked_ns. Holding no slot: tiles
 * go through the channel in their order, and one that waits here would hold up those that have a
 * place. 0 or -ECANCELED. Thread: reader. */
int pb_rests_take(struct pb_rests *rests, const struct pb_tile *tile, uint64_t *parked_ns);
/* Fills the tile's place and counts. Thread: the reader that took it. */
void pb_rests_fill(struct pb_rests *rests, const struct pb_tile *tile, const struct pb_tile_in *in);
/* The tile's planes, NaN where its values are. Thread: the writer that has the tile. */
const float *pb_rests_find(struct pb_rests *rests, const struct pb_tile *tile, const float *values,
                           size_t plane_px);
void pb_rests_give(struct pb_rests *rests, const struct pb_tile *tile);
void pb_rests_abort(struct pb_rests *rests); /* NULL is fine. Thread: any */
/* Pixels counted of plan->wide[i]. Thread: any. */
uint64_t pb_rests_counted(const struct pb_rests *rests, size_t i);
#endif
