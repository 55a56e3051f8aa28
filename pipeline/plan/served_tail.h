/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_SERVED_TAIL_H
#define PB_PLAN_SERVED_TAIL_H
#include "config/base/err.h"
#include "kernels/ground_unit.h"

#include <stdbool.h>
#include <stddef.h>

/* Facts of variable size that follow a request (served.h), in the order in which the plan uses
 * them: the writer appends, the reader takes. Both processes run the same program, therefore
 * structs are copied as they are; their pointers have no meaning. Each part begins at a multiple of
 * 8 bytes. Thread: any, one at a time. */

struct pb_served_tail {
    unsigned char *data; /* owned */
    size_t bytes, room;
    size_t at; /* bytes that have been taken */
};

/* Appends a copy. Returns 0 or memory. */
int pb_served_tail_add(struct pb_served_tail *tail, const void *from, size_t bytes,
                       struct pb_err *err);
/* The next n * bytes; NULL: fewer are left. Valid until the tail is freed. */
const void *pb_served_tail_take(struct pb_served_tail *tail, size_t n, size_t bytes);
void pb_served_tail_free(struct pb_served_tail *tail);
/* True if a bool of such a struct has one of its two values: any other is undefined behaviour. */
static inline bool pb_served_is_bool(const bool *value)
{
    return *(const unsigned char *)value <= 1;
}
/* True if x is of the size of coordinates and scales on a raster. */
bool pb_served_is_near(double x);
/* The same for a scale, which is above 0. */
bool pb_served_is_scale(double x);
bool pb_served_is_unit(const struct pb_ground_unit *unit);
#endif
