/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPARE_ROOM_H
#define PB_SPARE_ROOM_H
/* A room (tile_room.h) for the next job, made in the background when a job is through with its own,
 * as pinning memory takes 0.7 ms a MiB. It is new memory: the process that had the other room may
 * still have it mapped. One a process, as large as the last one; it goes when no job has taken it
 * for PB_SPARE_ROOM_KEEP_MS. No plan counts it, so a large one, which would not go into the memory
 * that a service may take beside its jobs, is not made. Thread: any. */
#include "pipeline/run/served/tile_room.h"

#include <stdint.h>

#define PB_SPARE_ROOM_KEEP_MS 10000
#define PB_SPARE_ROOM_MOST    ((size_t)256 << 20) /* bytes; half of that memory */

/* Nothing where there is one, or one is being made, or for more than PB_SPARE_ROOM_MOST. device:
 * that pins it, < 0 = it is not pinned. A room for which there is no memory is not made. */
void pb_spare_room_make(size_t bytes, int32_t device);
/* Takes it when it has from least to most bytes, and is pinned or not as that; waits for one that
 * is being made. Else it goes, before the caller makes one of its own, and *out_room is as it
 * was. */
bool pb_spare_room_take(size_t least, size_t most, bool pin, struct pb_tile_room *out_room);
/* It goes, also when it is being made. */
void pb_spare_room_drop(void);
#endif
