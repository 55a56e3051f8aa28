/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_POOL_H
#define PB_TILE_POOL_H
/* The two channels between a process that computes and its client. Their slots are in a room
 * (tile_room.h), their words in a memfd of their own, whose size is sealed. The process that
 * computes makes both and trusts nothing in them: the positions of slots are in its own memory
 * (wic_channel_join). Thread: init. */
#include "config/base/err.h"
#include "pipeline/run/served/tile_room.h"
#include "wic/wic.h"

struct pb_tile_pool_shape {
    uint32_t in_slots, out_slots;
    size_t in_slot_bytes, out_slot_bytes;
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
#endif
