/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SPARE_ROOM_H
#define PB_SPARE_ROOM_H
/* Pre-pinned memory (tile_room.h) for the next job, made in the background when a job no longer
 * needs its own, because pinning takes 0.7 ms a MiB. It is new memory: the process that had the
 * other room may still have it mapped. One room a process, as large as the last one; freed if no
 * job has taken it for PB_SPARE_ROOM_KEEP_MS. No plan counts it, therefore a room that does not fit
 * into the memory that a service may use in addition to its jobs is not made. Thread: any. */
#include "pipeline/run/served/tile_room.h"

#include <stdint.h>

#define PB_SPARE_ROOM_KEEP_MS 10000
#define PB_SPARE_ROOM_MOST    ((size_t)256 << 20) /* bytes; half of that memory */

/* Does nothing if a room exists or is being made, or for more than PB_SPARE_ROOM_MOST. device: the
 * device that pins it, < 0 = not pinned. Without memory for it no room is made. */
void pb_spare_room_make(size_t bytes, int32_t device);
/* Takes the room if it has from least to most bytes, and is pinned according to `pin`; waits for
 * one that is being made. Else frees it, before the caller makes its own, and leaves *out_room
 * unchanged. */
bool pb_spare_room_take(size_t least, size_t most, bool pin, struct pb_tile_room *out_room);
/* Frees the room, also while it is being made. */
void pb_spare_room_drop(void);
#endif
