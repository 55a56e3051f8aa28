/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INFLATE_LANE_H
#define PB_INFLATE_LANE_H
/* A deflate stream in progress and the tables of its current block. Private to inflate_*.c.
 *
 * An entry of `codes` stands for all of the next table_bits bits that are whole symbols of the
 * usual kinds: up to two literals, then a match of at most PB_INFLATE_SHORT bytes, whose distance
 * follows in the stream.
 *   bits 0-5    bits of all of it; 0: another entry, below
 *   bits 6-7    number of literals, bits 8-23 they, the first one lowest
 *   bits 24-30  length of the match, 0 = none; bit 31: there is one
 * All others have bits 0-7 and 31 clear and an enum pb_inflate_kind in bits 24-30.
 *   LENGTH      bits 8-11 bits of the code, 12-14 extra bits, 15-23 base
 *   END         bits 8-11 bits of the code
 *   SUBTABLE    bits 8-11 bits of its index, 12-23 where it begins after the main table; its
 *               entries are of one symbol and count all bits of the code
 * An entry of `distances`: bits 0-4 bits of code and extra bits, 8-11 of the code, 16-31 base; or
 * PB_INFLATE_FAR, bits 8-11 bits of the subtable's index, 16-30 where it begins, bit 31. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PB_INFLATE_CODE_BITS = 12,    /* of the main table for long blocks */
    PB_INFLATE_SMALL_BITS = 10,   /* of short ones */
    PB_INFLATE_DISTANCE_BITS = 8, /* of the main table */
    PB_INFLATE_SHORT = 8,
    PB_INFLATE_FAR = 1 << 15,
    PB_INFLATE_DISTANCE_MAX = 1 << 15,
    PB_INFLATE_LENS = 288 + 32 + 138 /* a last run may reach too far */
};
enum pb_inflate_kind { PB_INFLATE_SUBTABLE = 1, PB_INFLATE_END = 2, PB_INFLATE_LENGTH = 3 };
#define PB_INFLATE_MATCH (UINT32_C(1) << 31)

enum pb_inflate_state {
    PB_INFLATE_IDLE,   /* nothing was started */
    PB_INFLATE_HEADER, /* in front of a block */
    PB_INFLATE_CODES,  /* in a block of codes */
    PB_INFLATE_DONE,
    PB_INFLATE_TOO_LONG, /* the output is full */
    PB_INFLATE_BAD
};

struct pb_inflate_lane {
    enum pb_inflate_state state;
    bool is_last; /* the block */
    bool items;   /* the entries have matches: they are frequent */
    const uint8_t *in, *in_end;
    const uint8_t *in_fast; /* the fast loops end here, and at out_fast */
    uint8_t *out, *out_start, *out_end;
    uint8_t *out_fast;
    uint64_t bits; /* the next ones, first lowest */
    uint32_t left; /* how many */
    uint32_t over; /* bytes of zeros that were appended to the input */
    uint32_t table_bits;
    uint64_t mask; /* of table_bits */
    /* With subtables: those of 8 entries have 4 symbols or more of 288; of the 32 distances they
     * take 146 entries at most (zlib's examples/enough.c). */
    uint32_t codes[(1 << PB_INFLATE_CODE_BITS) + 576];
    uint32_t distances[(1 << PB_INFLATE_DISTANCE_BITS) + 146];
    uint8_t lens[PB_INFLATE_LENS];
    uint16_t sorted[288];
};

/* Fills bits up to 56 and more, from the input or with zeros. False: far more than it has was read.
 */
bool pb_inflate_refill(struct pb_inflate_lane *lane);
/* Reads a block's header. Returns the state after it (inflate_codes.c). */
enum pb_inflate_state pb_inflate_header(struct pb_inflate_lane *lane);
/* Decodes a block to its end, each symbol checked. Returns the state after it (inflate_careful.c).
 */
enum pb_inflate_state pb_inflate_careful(struct pb_inflate_lane *lane);
/* Decode while the lanes are in CODES and have room; a lane's state may change. Of two, both have
 * items or neither has (inflate_fast.c). */
bool pb_inflate_has_room(const struct pb_inflate_lane *lane);
void pb_inflate_fast(struct pb_inflate_lane *lane);
void pb_inflate_fast_two(struct pb_inflate_lane *a, struct pb_inflate_lane *b);

enum { PB_INFLATE_IN_ROOM = 64, PB_INFLATE_OUT_ROOM = 704 };

static inline unsigned pb_inflate_kind_of(uint32_t entry)
{
    return entry >> 24;
}

/* The entry behind a SUBTABLE one. */
static inline uint32_t pb_inflate_in_subtable(const struct pb_inflate_lane *lane, uint32_t entry,
                                              uint64_t bits)
{
    uint32_t index = (uint32_t)(bits >> lane->table_bits) & ((1u << (entry >> 8 & 15)) - 1);
    return lane->codes[(1u << lane->table_bits) + (entry >> 12 & 0xfff) + index];
}

/* The entry of the distance that comes next. */
static inline uint32_t pb_inflate_distance(const struct pb_inflate_lane *lane, uint64_t bits)
{
    uint32_t entry = lane->distances[bits & ((1 << PB_INFLATE_DISTANCE_BITS) - 1)];
    if (entry & PB_INFLATE_FAR) {
        uint32_t index = (uint32_t)(bits >> PB_INFLATE_DISTANCE_BITS);
        entry = lane->distances[(entry >> 16 & 0x7fff) + (index & ((1u << (entry >> 8 & 15)) - 1))];
    }
    return entry;
}

static inline uint32_t pb_inflate_distance_of(uint32_t entry, uint64_t bits)
{
    uint32_t all = (uint32_t)bits & ((1u << (entry & 31)) - 1);
    return (entry >> 16) + (all >> (entry >> 8 & 31));
}
#endif
