/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/stream/block_room.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64 };

int pb_block_room_init(struct pb_block_room *room, uint64_t bytes, struct pb_err *err)
{
    if (bytes == 0)
        return 0;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return pb_fail(err, PB_E_MEMORY, "cannot get %llu bytes for finished blocks: %s",
                       (unsigned long long)bytes, strerror(errno));
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* one page fault for 2 MiB, if granted */
    room->memory = memory;
    room->bytes = bytes;
    return 0;
}

void pb_block_room_fini(struct pb_block_room *room)
{
    if (room->memory != NULL)
        (void)munmap(room->memory, room->bytes);
    room->memory = NULL;
}

const void *pb_block_room_keep(struct pb_block_room *room, const void *data, size_t bytes)
{
    const uint64_t takes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (room->memory == NULL || atomic_load(&room->used) + takes > room->bytes)
        return NULL;
    const uint64_t at = atomic_fetch_add(&room->used, takes);
    return at + takes <= room->bytes ? memcpy(room->memory + at, data, bytes) : NULL;
}
