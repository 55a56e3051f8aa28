/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_ROOM_H
#define PB_BLOCK_ROOM_H
/* Memory of a run for finished blocks of products, which are written from there when all of them
 * are known: while tiles go through nobody waits for files. Blocks are never given back one by one;
 * when it is full, products write what comes. Pages are taken when they are filled. */
#include "config/base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct pb_block_room {
    unsigned char *memory; /* NULL: there is none */
    uint64_t bytes;
    _Atomic uint64_t used;
};

/* 0 bytes: an empty room. Zeroed before. */
int pb_block_room_init(struct pb_block_room *room, uint64_t bytes, struct pb_err *err);
/* After all products that have blocks there. A zeroed room is fine. */
void pb_block_room_fini(struct pb_block_room *room);
/* A copy that stays, or NULL: it is full. Thread: any. */
const void *pb_block_room_keep(struct pb_block_room *room, const void *data, size_t bytes);
#endif
