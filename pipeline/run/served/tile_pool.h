/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_POOL_H
#define PB_TILE_POOL_H
/* The two channels between a process that computes and the one that it computes for. Their slots
 * lie in a room (tile_room.h), their words in a memfd of their own, whose size is sealed. The
 * process that computes makes both and trusts nothing in them: what says where a slot lies is in
 * memory of its own (wic_channel_join). Thread: init. */
#include "config/base/err.h"
#include "pipeline/run/served/tile_room.h"
#include "wic/wic.h"

struct pb_tile_pool_shape {
    uint32_t in_slots, out_slots;
    size_t in_slot_bytes, out_slot_bytes;
};

struct pb_tile_pool {
    void *base; /* the words as they are mapped; NULL = none */
    size_t bytes;
    struct wic_channel *in, *out;
};

/* Bytes that slots of this shape take in a room. */
size_t pb_tile_pool_room_bytes(const struct pb_tile_pool_shape *shape);
/* The maker's. The room is borrowed until close, and is large enough. *out_fd, of the words, is the
 * caller's. check and context: of the channel `in`, see struct wic_join. memory: there is not so
 * much; -EINVAL: no shape. */
int pb_tile_pool_create(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                        int (*check)(void *context, struct wic_slot *slot), void *context,
                        struct pb_err *err, struct pb_tile_pool *out_pool, int *out_fd);
/* The other process'. fd is borrowed. service.protocol: it is not of that shape. */
int pb_tile_pool_open(const struct pb_tile_pool_shape *shape, const struct pb_tile_room *room,
                      int fd, struct pb_err *err, struct pb_tile_pool *out_pool);
/* A zeroed pool is fine. */
void pb_tile_pool_close(struct pb_tile_pool *pool);
#endif
