/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TILE_POOL_H
#define PB_TILE_POOL_H
/* The memory that a process that computes shares with the one that it computes for: the words of
 * two channels and the slots of both, in one memfd whose size is sealed. The process that computes
 * makes it and trusts nothing in it: what says where a slot lies is in memory of its own
 * (wic_channel_join). Thread: init. */
#include "config/base/err.h"
#include "wic/wic.h"

struct pb_tile_pool_shape {
    uint32_t in_slots, out_slots;
    size_t in_slot_bytes, out_slot_bytes;
};

struct pb_tile_pool {
    void *base; /* the whole mapping; NULL = none */
    size_t bytes;
    void *slots; /* those of `in`, then those of `out` */
    size_t slots_bytes;
    struct wic_channel *in, *out;
};

/* The maker's: *out_fd is the caller's. check and context: of the channel `in`, see struct
 * wic_join. memory: there is not so much; -EINVAL: no shape. */
int pb_tile_pool_create(const struct pb_tile_pool_shape *shape,
                        int (*check)(void *context, struct wic_slot *slot), void *context,
                        struct pb_err *err, struct pb_tile_pool *out_pool, int *out_fd);
/* The other process'. fd is borrowed. service.protocol: it is not of that shape. */
int pb_tile_pool_open(const struct pb_tile_pool_shape *shape, int fd, struct pb_err *err,
                      struct pb_tile_pool *out_pool);
/* A zeroed pool is fine. */
void pb_tile_pool_close(struct pb_tile_pool *pool);
#endif
