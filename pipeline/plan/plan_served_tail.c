/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_served_tail.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 8, ROOM_LEAST = 4096 };

int pb_served_tail_add(struct pb_served_tail *tail, const void *from, size_t bytes,
                       struct pb_err *err)
{
    const size_t padded = (bytes + ALIGN - 1) / ALIGN * ALIGN, end = tail->bytes + padded;
    if (end > tail->room) {
        const size_t room = end > 2 * tail->room ? end + ROOM_LEAST : 2 * tail->room;
        unsigned char *more = realloc(tail->data, room);
        if (more == NULL)
            return pb_fail(err, PB_E_MEMORY, "out of memory for the facts of a scene");
        tail->data = more;
        tail->room = room;
    }
    if (bytes > 0)
        memcpy(tail->data + tail->bytes, from, bytes);
    memset(tail->data + tail->bytes + bytes, 0, padded - bytes);
    tail->bytes = end;
    return 0;
}

const void *pb_served_tail_take(struct pb_served_tail *tail, size_t n, size_t bytes)
{
    const size_t left = tail->bytes - tail->at;
    const size_t wanted = bytes == 0 || n <= left / bytes ? n * bytes : left + 1;
    if (wanted > left || left - wanted < (ALIGN - wanted % ALIGN) % ALIGN)
        return NULL;
    static const double none = 0; /* place of no bytes of no tail */
    const void *taken = tail->data != NULL ? (const void *)(tail->data + tail->at) : &none;
    tail->at += (wanted + ALIGN - 1) / ALIGN * ALIGN;
    return taken;
}

void pb_served_tail_free(struct pb_served_tail *tail)
{
    free(tail->data);
    *tail = (struct pb_served_tail){.data = NULL};
}
