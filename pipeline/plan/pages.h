/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_PAGES_H
#define PB_PLAN_PAGES_H
/* Planes of a scene in managed memory, of which a part is on the device at a time
 * (run/whole/whole_pages.h): their sizes, for the sources, tiles and whole.how of a plan.
 * Arithmetic only, from facts that a request to another process has; any thread. */
#include "pipeline/plan/plan.h"

/* Upper bound of the bytes of the sources' planes. */
uint64_t pb_plan_planes_bytes(const struct pb_plan *plan);
/* Least device memory for managed planes and the blocks that are decoded into them: that of a tile
 * and of a piece of each source. */
uint64_t pb_plan_pages_least(const struct pb_plan *plan);
/* Sizes of managed planes and of the blocks that are decoded into them. */
struct pb_plan_pages {
    uint64_t chunk_bytes;         /* part of the planes that is moved at once */
    uint32_t decoding, computing; /* chunks that each may have on the device */
    uint64_t lot_bytes;           /* memory of blocks; there are two lots */
};
/* For a plan whose planes are managed, within compute.device_memory and after all that is made on
 * the device has its part. Arithmetic only, from facts that a request to another process has. */
struct pb_plan_pages pb_plan_pages(const struct pb_plan *plan);
#endif
