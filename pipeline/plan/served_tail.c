/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/served_tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 8, ROOM_LEAST = 4096 };

int pb_served_tail_add(struct pb_served_tail *tail, const void *from, size_t bytes,
                       struct pb_err *err)
{
    const size_t padded = (bytes + ALIGN - 1) / ALIGN * ALIGN, end = tail->bytes + padded;
    if (bytes == 0)
        return 0;
    if (end > tail->room) {
        const size_t room = end > 2 * tail->room ? end + ROOM_LEAST : 2 * tail->room;
        unsigned char *more = realloc(tail->data, room);
        if (more == NULL)
            return pb_fail(err, PB_E_MEMORY, "out of memory for the facts of a scene");
        tail->data = more;
        tail->room = room;
    }
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

/* Limit of coordinates and scales on a raster. */
#define FAR 1e15

bool pb_served_is_near(double x)
{
    return isfinite(x) && fabs(x) <= FAR;
}

bool pb_served_is_scale(double x)
{
    return pb_served_is_near(x) && x >= 1 / FAR;
}

bool pb_served_is_unit(const struct pb_ground_unit *unit)
{
    const bool even = unit->law == PB_GROUND_EVEN;
    const bool known = even || unit->law == PB_GROUND_LATITUDE || unit->law == PB_GROUND_MERCATOR;
    bool fine = known && unit->square >= 0 && unit->square < 1 && unit->map_square >= 0 &&
                unit->map_square < 1 && pb_served_is_near(unit->origin);
    for (int i = 0; i < 2; i++)
        fine = fine && pb_served_is_near(unit->metres[i]) && unit->metres[i] >= 0;
    return fine && (even || (pb_served_is_scale(unit->axis) && pb_served_is_scale(unit->radians)));
}
