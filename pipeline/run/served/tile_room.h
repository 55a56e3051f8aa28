/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_ROOM_H
#define PB_TILE_ROOM_H
/* Slot memory that a process that computes shares with its client: a memfd whose size is sealed.
 * One serves the passes of a job one after the other, each of which divides it into its own slots
 * (tile_pool.h). Thread: init, one at a time. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_tile_room {
    void *slots; /* whole pages; NULL = not open */
    size_t bytes;
    int fd;      /* for the maker, else -1 */
    bool pinned; /* for the maker's device */
};

/* For the maker: at least `bytes` bytes, all pages allocated. memory: allocation failed. */
int pb_tile_room_make(size_t bytes, bool pin, struct pb_err *err, struct pb_tile_room *out_room);
/* For the other process. fd is borrowed. service.protocol: it has fewer bytes. */
int pb_tile_room_open(int fd, size_t bytes, struct pb_err *err, struct pb_tile_room *out_room);
/* A zeroed room is fine. Pinned memory is unpinned and unmapped when no kernel is resident, perhaps
 * later, and after earlier deferred frees (wic_gpu_free_later). Memory that a hung GPU may
 * still use is not freed. */
void pb_tile_room_close(struct pb_tile_room *room);

/* Makes a sealed memfd of that size with all pages allocated. Returns it, or the result of pb_fail.
 */
int pb_tile_room_file(size_t bytes, struct pb_err *err);
#endif
