/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_INFLATE_LANE_H
#define PB_INFLATE_LANE_H
/* A deflate stream in progress and the tables of its current block. Private to inflate_*.c.
 *
 * An entry of `codes` represents as many of the next table_bits bits as are whole symbols of the
 * usual kinds: up to two literals, then a match of at most PB_INFLATE_SHORT bytes, whose distance
 * follows in the stream.
 *   bits 0-5    count of bits of all of it; 0: another kind of entry, below
 *   bits 6-7    number of literals; bits 8-23: the literals, the first one lowest
 *   bits 24-30  length of the match, 0 = no match; bit 31: there is a match
 * All others have bits 0-7 and 31 clear and an enum pb_inflate_kind in bits 24-30.
 *   LENGTH      bits 8-11 bits of the code, 12-14 extra bits, 15-23 base
 *   END         bits 8-11 bits of the code
 *   SUBTABLE    bits 8-11 bits of its index, 12-23 its beginning after the main table; its
 *               entries have one symbol and count all bits of the code
 * An entry of `distances`: bits 0-4 bits of code and extra bits, 8-11 of the code, 16-31 base; or
 * PB_INFLATE_FAR, bits 8-11 bits of the subtable's index, 16-30 its beginning, bit 31. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PB_INFLATE_CODE_BITS = 12,    /* main table of codes for long blocks of items */
    PB_INFLATE_SMALL_BITS = 10,   /* the same for all others */
    PB_INFLATE_DISTANCE_BITS = 8, /* main table of distances */
    PB_INFLATE_SHORT = 8,
    PB_INFLATE_FAR = 1 << 15,
    PB_INFLATE_DISTANCE_MAX = 1 << 15,
    PB_INFLATE_LENS = 288 + 32 + 138 /* a last run may reach beyond the symbols */
};
enum pb_inflate_kind { PB_INFLATE_SUBTABLE = 1, PB_INFLATE_END = 2, PB_INFLATE_LENGTH = 3 };
#define PB_INFLATE_MATCH (UINT32_C(1) << 31)

enum pb_inflate_state {
    PB_INFLATE_IDLE,   /* no stream */
    PB_INFLATE_HEADER, /* before the header of a block */
    PB_INFLATE_CODES,  /* in a block of codes */
    PB_INFLATE_DONE,
    PB_INFLATE_TOO_LONG, /* the output is full */
    PB_INFLATE_BAD
};

/* Loop for the symbols that are frequent in a block. */
enum pb_inflate_loop {
    PB_INFLATE_LITERALS,
    PB_INFLATE_ITEMS,  /* literals and short matches; only then the entries include matches */
    PB_INFLATE_MATCHES /* long matches */
};

struct pb_inflate_lane {
    enum pb_inflate_state state;
    bool is_last; /* the current block is the last */
    enum pb_inflate_loop loop;
    const uint8_t *in, *in_end;
    const uint8_t *in_fast; /* the fast loops end here, and at out_fast */
    uint8_t *out, *out_start, *out_end;
    uint8_t *out_fast;
    /* An output through a window: the lane pauses between symbols from `pause` on. NULL: it runs to
     * its end. */
    uint8_t *pause;
    size_t window_bytes;
    size_t most;     /* bytes that the stream may have from out_start on */
    uint8_t *summed; /* the bytes before it are in `sum` */
    uint32_t sum;    /* Adler-32 */
    uint64_t bits;   /* the next bits of the input, first lowest */
    uint32_t left;   /* count of these bits */
    uint32_t over;   /* count of zero bytes that were appended to the input */
    /* The head of the block that the tables were made for: it begins after head_skip bits of a byte
     * and has head_bits. head NULL = no such block. */
    const uint8_t *head;
    uint32_t head_skip, head_bits;
    uint32_t table_bits;
    uint64_t mask; /* mask of table_bits bits */
    /* With subtables: those of 8 entries have 4 symbols or more out of 288; for the 32 distances
     * they have 146 entries at most (zlib's examples/enough.c). */
    uint32_t codes[(1 << PB_INFLATE_CODE_BITS) + 576];
    uint32_t distances[(1 << PB_INFLATE_DISTANCE_BITS) + 146];
    uint8_t lens[PB_INFLATE_LENS];
    uint16_t sorted[288];
};

/* Fills bits up to 56 or more, from the input or with zeros. False: far more was read than the
 * input has.
 */
bool pb_inflate_refill(struct pb_inflate_lane *lane);
/* Reads a block's header. Returns the state after it (inflate_codes.c). */
enum pb_inflate_state pb_inflate_header(struct pb_inflate_lane *lane);
/* Decodes a block to its end, each symbol checked. Returns the state after it (inflate_careful.c).
 */
enum pb_inflate_state pb_inflate_careful(struct pb_inflate_lane *lane);
/* Decode while the lanes are in CODES and have room; a lane's state may change. Two lanes must have
 * equal loops (inflate_fast.c). */
bool pb_inflate_has_room(const struct pb_inflate_lane *lane);
void pb_inflate_fast(struct pb_inflate_lane *lane);
void pb_inflate_fast_two(struct pb_inflate_lane *a, struct pb_inflate_lane *b);

enum { PB_INFLATE_IN_ROOM = 64, PB_INFLATE_OUT_ROOM = 704 };

static inline unsigned pb_inflate_kind_of(uint32_t entry)
{
    return entry >> 24;
}

/* Entry in the subtable of a SUBTABLE entry. */
static inline uint32_t pb_inflate_in_subtable(const struct pb_inflate_lane *lane, uint32_t entry,
                                              uint64_t bits)
{
    uint32_t index = (uint32_t)(bits >> lane->table_bits) & ((1u << (entry >> 8 & 15)) - 1);
    return lane->codes[(1u << lane->table_bits) + (entry >> 12 & 0xfff) + index];
}

/* Entry of the next distance. */
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
