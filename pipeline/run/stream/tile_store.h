/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_STORE_H
#define PB_TILE_STORE_H
/* Tiles of a pass in the format of slots, kept from its first round for the later ones, which
 * then read no file. Created if the plan has memory for them (pb_plan.kept_bytes). */
#include "pipeline/plan/plan.h"

struct pb_tile_store;

/* plan: borrowed. */
int pb_tile_store_create(const struct pb_plan *plan, struct pb_err *err,
                         struct pb_tile_store **out_store);
/* In the first round: keeps a tile after its slot is filled. Thread: any, each tile once. */
void pb_tile_store_put(struct pb_tile_store *store, const struct pb_tile *tile, const void *slot);
/* In later rounds: fills the slot of a tile. Thread: any. */
void pb_tile_store_get(const struct pb_tile_store *store, const struct pb_tile *tile, void *slot);
/* Marks that all tiles are kept. No pass may be running. */
void pb_tile_store_close(struct pb_tile_store *store);
bool pb_tile_store_is_closed(const struct pb_tile_store *store);
void pb_tile_store_destroy(struct pb_tile_store *store); /* NULL is fine */
#endif
