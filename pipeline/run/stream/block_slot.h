/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_SLOT_H
#define PB_BLOCK_SLOT_H
/* A slot of results with finished blocks of products instead of the planes of a tile: its
 * user bytes are a struct pb_block_slot, and its payload begins with a list of the blocks, of
 * PB_BLOCK_SLOT_HEAD bytes. A slot of a tile without payload is a tile that a gate leaves out.
 * Plain data. */
#include "pipeline/plan/staged.h"
#include "kernels/tile_slot.h"

#include <stddef.h>

#define PB_BLOCK_SLOT_MARK UINT32_MAX /* not the number of any tile */

struct pb_block_slot {
    uint32_t mark; /* PB_BLOCK_SLOT_MARK */
    uint32_t n;    /* blocks */
    /* These blocks complete n_tiles tiles; 0 if planes of tiles are sent, too. */
    uint32_t first_tile, n_tiles;
};
_Static_assert(offsetof(struct pb_tile, number) == offsetof(struct pb_block_slot, mark),
               "a tile and blocks are told apart by their first word");

#define PB_ANSWER_SLOT_MARK (UINT32_MAX - 1) /* not the number of any tile */

/* User bytes of a slot of results without payload: answers of a gate that another process
 * computes. */
struct pb_answer_slot {
    uint32_t mark; /* PB_ANSWER_SLOT_MARK */
    uint32_t first_tile, n;
    uint64_t passes; /* bit i: tile first_tile + i passes */
};
_Static_assert(offsetof(struct pb_tile, number) == offsetof(struct pb_answer_slot, mark),
               "a tile and answers are told apart by their first word");

struct pb_block_entry {
    uint32_t product; /* number of the product in the pipeline */
    uint32_t level, col, row;
    uint32_t is_mask, is_raw; /* is_raw: as in pb_cog_block */
    uint64_t at, bytes;       /* in the payload */
    uint64_t moved;
};

enum { PB_BLOCK_SLOT_MOST = PB_BLOCK_SLOT_HEAD / sizeof(struct pb_block_entry) };
#endif
