/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Decodes symbols near the end of the input or the output: tests the bounds for every byte. */
#include "pipeline/codec/inflate_lane.h"

#include <string.h>

static void drop(struct pb_inflate_lane *l, unsigned n)
{
    l->bits >>= n;
    l->left -= n;
}

/* Decodes literals and the length that follows them, 0 = no length. PB_INFLATE_CODES: continue. */
static enum pb_inflate_state take_symbols(struct pb_inflate_lane *l, size_t *out_length)
{
    uint32_t e = l->codes[l->bits & l->mask];
    if (pb_inflate_kind_of(e) == PB_INFLATE_SUBTABLE)
        e = pb_inflate_in_subtable(l, e, l->bits);
    if (e & 0xff) {
        size_t n = e >> 6 & 3;
        *out_length = e >> 24 & 127;
        if (n + *out_length > (size_t)(l->out_end - l->out))
            return PB_INFLATE_TOO_LONG;
        for (size_t i = 0; i < n; i++)
            *l->out++ = (uint8_t)(e >> (8 + 8 * i));
        drop(l, e & 15);
        return PB_INFLATE_CODES;
    }
    drop(l, e >> 8 & 15);
    if (pb_inflate_kind_of(e) == PB_INFLATE_END)
        return l->is_last ? PB_INFLATE_DONE : PB_INFLATE_HEADER;
    unsigned extra = e >> 12 & 7;
    *out_length = (e >> 15 & 511) + (l->bits & ((1u << extra) - 1));
    drop(l, extra);
    return *out_length > (size_t)(l->out_end - l->out) ? PB_INFLATE_TOO_LONG : PB_INFLATE_CODES;
}

/* Copies from `distance` bytes before, in parts that double because they are repeated. */
static void repeat(uint8_t *to, size_t distance, size_t length)
{
    for (size_t part = distance; length > 0; part *= 2) {
        size_t n = part < length ? part : length;
        memcpy(to, to - part, n);
        to += n;
        length -= n;
    }
}

enum pb_inflate_state pb_inflate_careful(struct pb_inflate_lane *l)
{
    for (;;) {
        size_t length = 0;
        if (!pb_inflate_refill(l))
            return PB_INFLATE_BAD;
        enum pb_inflate_state state = take_symbols(l, &length);
        if (state != PB_INFLATE_CODES)
            return state;
        if (length == 0)
            continue;
        uint32_t d = pb_inflate_distance(l, l->bits);
        size_t distance = pb_inflate_distance_of(d, l->bits);
        drop(l, d & 31);
        if (distance > (size_t)(l->out - l->out_start))
            return PB_INFLATE_BAD;
        repeat(l->out, distance, length);
        l->out += length;
    }
}
