/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_ROOM_H
#define PB_TILE_ROOM_H
/* Slot memory that a process that computes shares with its client: a memfd whose size is sealed.
 * One serves the passes of a job one after the other, each of which divides it into its own slots:
 * a pool. Thread: init, one at a time; of a spare room: any. */
#include "config/base/err.h"
#include "wic/wic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The two channels between a process that computes and its client. Their slots are in a room,
 * their words in a memfd of their own, whose size is sealed. The process that computes makes both
 * and trusts nothing in them: the positions of slots are in its own memory (wic_channel_join). */
struct pb_tile_pool_shape {
    uint32_t in_slots, out_slots;
    size_t in_slot_bytes, out_slot_bytes;
    uint32_t spin_limit; /* as in wic_options */
};

struct pb_tile_pool {
    void *base; /* mapped words; NULL = not open */
    size_t bytes;
    struct wic_channel *in, *out;
};

/* Bytes in a room for slots of this shape. */
size_t pb_tile_pool_room_bytes(const struct pb_tile_pool_shape *shape);
/* For the maker. The room is borrowed until close, and is large enough. *out_fd, of the words, is
 * the caller's. check and context: for the channel `in`, see struct wic_join. memory: allocation
 * failed; -EINVAL: invalid shape. */
int pb_tile_pool_create(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                        int (*check)(void *context, struct wic_slot *slot), void *context,
                        struct pb_err *err, struct pb_tile_pool *out_pool, int *out_fd);
/* For the other process. fd is borrowed. service.protocol: it does not have that shape. */
int pb_tile_pool_open(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                      int fd, struct pb_err *err, struct pb_tile_pool *out_pool);
/* A zeroed pool is fine. */
void pb_tile_pool_close(struct pb_tile_pool *pool);

/* Pre-pinned memory for the next job, made in the background when a job no longer
 * needs its own, because pinning takes 0.7 ms a MiB. It is new memory: the process that had the
 * other room may still have it mapped. One room a process, as large as the last one; freed if no
 * job has taken it for PB_SPARE_ROOM_KEEP_MS. No plan counts it, therefore a room that does not fit
 * into the memory that a service may use in addition to its jobs is not made. Thread: any. */
#define PB_SPARE_ROOM_KEEP_MS 10000
#define PB_SPARE_ROOM_MOST    ((size_t)256 << 20) /* bytes; half of that memory */

/* Does nothing if a room exists or is being made, or for more than PB_SPARE_ROOM_MOST. device: the
 * device that pins it, < 0 = not pinned. Without memory for it no room is made. */
void pb_spare_room_make(size_t bytes, int32_t device);
/* Takes the room if it has from least to most bytes, and is pinned according to `pin`; waits for
 * one that is being made. Else frees it, before the caller makes its own, and leaves *out_room
 * unchanged. */
bool pb_spare_room_take(size_t least, size_t most, bool pin, struct pb_tile_room *out_room);
#endif
