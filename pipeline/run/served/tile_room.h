/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_ROOM_H
#define PB_TILE_ROOM_H
/* The memory of the slots that a process that computes shares with the one that it computes for: a
 * memfd whose size is sealed. One serves the passes of a job one after the other, each of which
 * divides it into slots anew (tile_pool.h). Thread: init, one at a time. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct pb_tile_room {
    void *slots; /* whole pages; NULL = none */
    size_t bytes;
    int fd;      /* the maker's, else -1 */
    bool pinned; /* for the maker's device */
};

/* The maker's: of at least so many bytes; all pages are there. memory: there is not so much. */
int pb_tile_room_make(size_t bytes, bool pin, struct pb_err *err, struct pb_tile_room *out_room);
/* The other process'. fd is borrowed. service.protocol: it has fewer bytes. */
int pb_tile_room_open(int fd, size_t bytes, struct pb_err *err, struct pb_tile_room *out_room);
/* A zeroed room is fine. What is pinned is unpinned and unmapped when no kernel is there, perhaps
 * later, and after what was put off before (pb_residency_free_later). Memory that a GPU which does
 * not answer may still use stays. */
void pb_tile_room_close(struct pb_tile_room *room);

/* A memfd of that size, sealed, whose pages are all there; or what pb_fail returns. */
int pb_tile_room_file(size_t bytes, struct pb_err *err);
#endif
