/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_BLOCKS_H
#define PB_PLAN_BLOCKS_H
/* Memory on the device for the blocks of a pass's sources and for the planes that are made of
 * them, for the tiles and whole.how of a plan. Arithmetic only, from facts that a request to
 * another process has; any thread. */
#include "pipeline/plan/plan.h"

/* Upper bound of the bytes of all blocks, stored and decoded, of all planes, and of a gate. */
uint64_t pb_plan_blocks_all(const struct pb_plan *plan);
/* Upper estimate of the bytes of two bands of one row of tiles each. */
uint64_t pb_plan_blocks_least(const struct pb_plan *plan);
/* Bytes of a decoded block of a mask. */
uint64_t pb_plan_mask_block_bytes(const struct pb_mask_blocks *mask);
#endif
