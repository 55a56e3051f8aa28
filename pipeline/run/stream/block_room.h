/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_ROOM_H
#define PB_BLOCK_ROOM_H
/* Memory of a run for finished blocks of products, which are written from there when all of them
 * are known: no thread waits for files while tiles are processed. Single blocks are never freed;
 * when it is full, products write blocks as they arrive. Pages are allocated when they are filled.
 */
#include "config/base/err.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct pb_block_room {
    unsigned char *memory; /* NULL: empty room */
    uint64_t bytes;
    _Atomic uint64_t used;
};

/* 0 bytes: an empty room. *room is zeroed before. */
int pb_block_room_init(struct pb_block_room *room, uint64_t bytes, struct pb_err *err);
/* Call it after all products that have blocks there. A zeroed room is fine. */
void pb_block_room_fini(struct pb_block_room *room);
/* Returns a copy that is valid until fini, or NULL if the room is full. Thread: any. */
const void *pb_block_room_keep(struct pb_block_room *room, const void *data, size_t bytes);
#endif
