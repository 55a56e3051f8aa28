/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The loops that decode most of a stream, for one lane or for two alternately, so that the
 * latencies of two streams overlap. Matches of 16-bit samples are short, and hard to predict;
 * therefore, if they are frequent, an entry of the table is decoded without a branch on the match:
 * its literals are stored, a distance is looked up (and masked out if there is no match), eight
 * bytes are copied. All other cases, long matches, distances shorter than the length, long codes,
 * are decoded by special(), which is all of the loop for blocks of long matches. Blocks of literals
 * have a loop that tests for other entries every four entries; such an entry uses no bits until
 * then.
 *
 * Room: an iteration reads at most 3 * 8 bytes and writes less than 2 * (2 + 258 + 40). */
#include "pipeline/codec/inflate_lane.h"

#include "kernels/pixel.h"

#include <string.h>

#define INLINE      static inline __attribute__((always_inline))
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Members of a lane that are kept in registers. Bits 6 and up of `left` may be anything. */
struct hot {
    uint64_t bits;
    const uint8_t *in;
    uint8_t *out;
    uint32_t left, entry;
};

INLINE uint64_t load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

INLINE void store(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, 8);
}

/* Stores the literals of an entry; if it has only one or none, the rest is overwritten later. */
INLINE void store_literals(uint8_t *p, uint32_t entry)
{
    uint16_t v = (uint16_t)(entry >> 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap16(v);
#endif
    memcpy(p, &v, 2);
}

/* Fills up to 56 bits or more; bits above them are also the input's, and are read again. */
INLINE void refill(struct hot *h)
{
    h->bits |= load(h->in) << (h->left & 63);
    h->in += 7;
    h->in -= h->left >> 3 & 7;
    h->left |= 56;
}

INLINE void look_up(struct hot *h, const struct pb_inflate_lane *l)
{
    h->entry = l->codes[h->bits & l->mask];
}

/* Writes up to 40 bytes more than `length`. */
INLINE void copy(uint8_t *to, size_t distance, size_t length)
{
    static const uint8_t steps[8] = {0, 8, 8, 6, 8, 5, 6, 7}; /* multiples of the distance */
    const uint8_t *from = to - distance;
    const uint8_t *end = to + length;
    if (distance >= 16) {
        do {
            memcpy(to, from, 16);
            memcpy(to + 16, from + 16, 16);
            to += 32;
            from += 32;
        } while (to < end);
        return;
    }
    if (distance >= 8) {
        for (; to < end; to += 8, from += 8)
            memcpy(to, from, 8);
        return;
    }
    uint64_t v = load(from) & (((uint64_t)1 << 8 * distance) - 1);
    for (size_t n = 8 * distance; n < 64; n *= 2)
        v |= v << n;
    for (size_t step = steps[distance]; to < end; to += 4 * step) {
        store(to, v);
        store(to + step, v);
        store(to + 2 * step, v);
        store(to + 3 * step, v);
    }
}

/* Decodes any entry. False: the lane left CODES, or is BAD. */
INLINE bool special(struct hot *h, struct pb_inflate_lane *l)
{
    uint32_t e = h->entry;
    size_t length, distance = 0;
    if (unlikely(pb_inflate_kind_of(e) == PB_INFLATE_SUBTABLE))
        e = pb_inflate_in_subtable(l, e, h->bits);
    if (e & 0xff) {
        store_literals(h->out, e);
        h->out += e >> 6 & 3;
        h->bits >>= e & 15;
        h->left -= e & 15;
        length = e >> 24 & 127;
    } else {
        unsigned n = e >> 8 & 15, extra = e >> 12 & 7;
        length = (e >> 15 & 511) + (h->bits >> n & ((1u << extra) - 1));
        h->bits >>= n + extra;
        h->left -= n + extra;
        if (unlikely(pb_inflate_kind_of(e) == PB_INFLATE_END)) {
            l->state = l->is_last ? PB_INFLATE_DONE : PB_INFLATE_HEADER;
            return false;
        }
    }
    uint8_t *to = h->out;
    if (length > 0) {
        uint32_t d = pb_inflate_distance(l, h->bits);
        distance = pb_inflate_distance_of(d, h->bits);
        h->bits >>= d & 31;
        h->left -= d & 31;
        if (unlikely(distance > (size_t)(to - l->out_start))) {
            l->state = PB_INFLATE_BAD;
            return false;
        }
        h->out += length;
    }
    refill(h);
    look_up(h, l);
    if (length > 0)
        copy(to, distance, length);
    return true;
}

/* Decodes an entry of literals and a short match. False: it is another kind of entry, and nothing
 * was done. Without a match the distance is 0, like the length; for the other kinds of entries, and
 * for one with a subtable, it is less than the length or beyond the largest distance. Without a
 * match, any eight bytes are copied that were not just stored, which would delay the copy. */
INLINE bool item(struct hot *h, const struct pb_inflate_lane *l)
{
    const uint32_t e = h->entry, length = e >> 24 & 127;
    const uint64_t bits = h->bits >> (e & 63);
    const uint32_t d = l->distances[bits & ((1 << PB_INFLATE_DISTANCE_BITS) - 1)] &
                       (0 - (e >> 31)); /* all bits, or none */
    const uint32_t distance = pb_inflate_distance_of(d, bits);
    uint8_t *to = h->out + (e >> 6 & 3);
    store_literals(h->out, e);
    if (unlikely(distance - length > PB_INFLATE_DISTANCE_MAX - 1 ||
                 distance > (size_t)(to - l->out_start)))
        return false;
    memcpy(to, length > 0 ? to - distance : l->lens, PB_INFLATE_SHORT);
    h->out = to + length;
    h->bits = bits >> (d & 31);
    h->left -= e + d;
    look_up(h, l);
    refill(h);
    return true;
}

/* Decodes an entry of literals. */
INLINE void literals(struct hot *h, const struct pb_inflate_lane *l, uint32_t *used)
{
    store_literals(h->out, h->entry);
    h->out += h->entry >> 6 & 3;
    *used += h->entry & 63;
    h->bits >>= h->entry & 63;
    look_up(h, l);
}

INLINE bool is_special(const struct hot *h)
{
    return unlikely((h->entry & 0xff) == 0);
}

INLINE void enter(struct hot *h, const struct pb_inflate_lane *l)
{
    *h = (struct hot){.bits = l->bits, .in = l->in, .out = l->out, .left = l->left};
    refill(h);
    look_up(h, l);
}

INLINE void leave(const struct hot *h, struct pb_inflate_lane *l)
{
    l->left = h->left & 63;
    l->bits = h->bits & (((uint64_t)1 << l->left) - 1);
    l->in = h->in;
    l->out = h->out;
}

INLINE bool has_room(const struct hot *h, const struct pb_inflate_lane *l)
{
    return h->in < l->in_fast && h->out < l->out_fast;
}

PB_CLONES_BITS static void items_one(struct pb_inflate_lane *l)
{
    struct hot h;
    enter(&h, l);
    while (has_room(&h, l) && (item(&h, l) || special(&h, l)))
        ;
    leave(&h, l);
}

PB_CLONES_BITS static void items_two(struct pb_inflate_lane *l, struct pb_inflate_lane *k)
{
    struct hot a, b;
    enter(&a, l);
    enter(&b, k);
    while (has_room(&a, l) && has_room(&b, k)) {
        if (!(item(&a, l) || special(&a, l)) || !(item(&b, k) || special(&b, k)) ||
            !(item(&a, l) || special(&a, l)) || !(item(&b, k) || special(&b, k)))
            break;
    }
    leave(&a, l);
    leave(&b, k);
}

PB_CLONES_BITS static void literals_one(struct pb_inflate_lane *l)
{
    struct hot h;
    enter(&h, l);
    while (has_room(&h, l)) {
        uint32_t used = 0;
        literals(&h, l, &used);
        literals(&h, l, &used);
        literals(&h, l, &used);
        literals(&h, l, &used);
        h.left -= used;
        refill(&h);
        if (is_special(&h) && !special(&h, l))
            break;
    }
    leave(&h, l);
}

PB_CLONES_BITS static void literals_two(struct pb_inflate_lane *l, struct pb_inflate_lane *k)
{
    struct hot a, b;
    enter(&a, l);
    enter(&b, k);
    while (has_room(&a, l) && has_room(&b, k)) {
        uint32_t used = 0, used_b = 0;
        literals(&a, l, &used);
        literals(&b, k, &used_b);
        literals(&a, l, &used);
        literals(&b, k, &used_b);
        literals(&a, l, &used);
        literals(&b, k, &used_b);
        literals(&a, l, &used);
        literals(&b, k, &used_b);
        a.left -= used;
        b.left -= used_b;
        refill(&a);
        refill(&b);
        if (is_special(&a) && !special(&a, l))
            break;
        if (is_special(&b) && !special(&b, k))
            break;
    }
    leave(&a, l);
    leave(&b, k);
}

PB_CLONES_BITS static void matches_one(struct pb_inflate_lane *l)
{
    struct hot h;
    enter(&h, l);
    while (has_room(&h, l) && special(&h, l))
        ;
    leave(&h, l);
}

PB_CLONES_BITS static void matches_two(struct pb_inflate_lane *l, struct pb_inflate_lane *k)
{
    struct hot a, b;
    enter(&a, l);
    enter(&b, k);
    while (has_room(&a, l) && has_room(&b, k) && special(&a, l) && special(&b, k))
        ;
    leave(&a, l);
    leave(&b, k);
}

bool pb_inflate_has_room(const struct pb_inflate_lane *l)
{
    return l->in < l->in_fast && l->out < l->out_fast;
}

void pb_inflate_fast(struct pb_inflate_lane *lane)
{
    (lane->loop == PB_INFLATE_ITEMS     ? items_one
     : lane->loop == PB_INFLATE_MATCHES ? matches_one
                                        : literals_one)(lane);
}

void pb_inflate_fast_two(struct pb_inflate_lane *a, struct pb_inflate_lane *b)
{
    (a->loop == PB_INFLATE_ITEMS     ? items_two
     : a->loop == PB_INFLATE_MATCHES ? matches_two
                                     : literals_two)(a, b);
}
