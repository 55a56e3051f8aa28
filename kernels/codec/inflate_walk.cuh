// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_INFLATE_WALK_CUH
#define PB_INFLATE_WALK_CUH
// Symbols of a piece of the bit stream, and a walk over a piece that counts the bytes it makes. The
// start of a piece is guessed at first: Huffman codes fall into step by themselves, after some 70
// bits mostly. Lanes of a warp stay in step by votes: loops left by `break` run several times
// slower.
#include "kernels/codec/inflate_codes.cuh"

namespace pb_inflate
{
// 32 bits are read again for every symbol: held words that are refilled took more time.
struct reader {
    uint32_t held, at; // at: of the next bit, in `staged`
};

// Now 32 bits are held.
template <class SHAPE> __device__ __forceinline__ void refill(const arena<SHAPE> &mine, reader &r)
{
    r.held = peek(mine, r.at);
}

__device__ __forceinline__ void skip(reader &r, uint32_t bits)
{
    r.held >>= bits;
    r.at += bits;
}

// The rest of a match whose length has the symbol. Returns its distance, or 1 when it is not
// wanted; ~0: it is none.
template <bool DISTANCE, class SHAPE>
__device__ __forceinline__ uint32_t match(const arena<SHAPE> &mine, reader &r, uint32_t symbol,
                                          uint32_t *length)
{
    const uint32_t base = mine.length_base[symbol - 257], extra = base & 255;
    *length = (base >> 8) + (r.held & ((1u << extra) - 1));
    skip(r, extra);
    refill(mine, r);
    uint32_t d = mine.distance_table[r.held & ((1u << DISTANCE_BITS) - 1)];
    if (d == 0) {
        d = long_code(mine.distances, mine.distance_list, DISTANCE_BITS, r.held);
    }
    const uint32_t bits = d & 15, code = d >> 4;
    uint32_t distance = 1, more = (max(code, 2u) >> 1) - 1;
    if (DISTANCE) {
        const uint32_t far = mine.distance_base[code & 31];
        more = far & 255;
        distance = (far >> 8) + ((r.held >> bits) & ((1u << more) - 1));
    }
    skip(r, bits + more);
    if (d == 0 || code > 29) {
        *length = STOP_ODD;
        return ~0u;
    }
    return distance;
}

// The next symbol. Returns 0 for a literal (*value: the byte), the distance of a match (*value: its
// length), ~0 at an end (*value: how). Symbols that deflate does not define are an end. DISTANCE:
// whether it is wanted, else 1 is returned.
template <bool DISTANCE, class SHAPE>
__device__ __forceinline__ uint32_t token(const arena<SHAPE> &mine, reader &r, uint32_t *value)
{
    refill(mine, r);
    uint32_t entry = mine.literal_table[r.held & ((1u << LITERAL_BITS) - 1)];
    if (entry == 0) {
        entry = long_code(mine.literals, mine.literal_list, LITERAL_BITS, r.held);
    }
    const uint32_t symbol = entry >> 4;
    skip(r, entry & 15);
    *value = symbol;
    if (symbol > 256 && symbol < 286) {
        return match<DISTANCE>(mine, r, symbol, value);
    }
    if (symbol > 255 || entry == 0) {
        *value = symbol == 256 ? STOP_END : STOP_ODD;
        return ~0u;
    }
    return 0;
}

// The next symbol after a literal, whose bits are held, if it is a literal as well and of a short
// code: two in a step save what a step costs.
template <class SHAPE>
__device__ __forceinline__ bool second_literal(const arena<SHAPE> &mine, reader &r, uint32_t *value)
{
    const uint32_t entry = mine.literal_table[r.held & ((1u << LITERAL_BITS) - 1)];
    if (entry - 1 >= (256u << 4) - 1) {
        return false;
    }
    skip(r, entry & 15);
    *value = entry >> 4;
    return true;
}

// A thread's piece. start: of its first symbol; end: of the first one after it; stop: why it ends;
// bytes: that it makes. total: bytes of the walk that left the notes.
struct piece {
    uint32_t start, end, stop, bytes, total;
};

// A thread's part in a walk. Bits are counted in `staged`.
struct stretch {
    uint32_t *note;
    uint32_t start;     // where it begins
    uint32_t low, high; // the piece
    bool runs, merges;  // merges: it ends where it meets a walk before
};

// Notes where symbols start, and finds where the walk before has been. True: here.
__device__ __forceinline__ bool note_symbol(const stretch &way, uint32_t bit, uint32_t bytes,
                                            uint32_t *noted, uint32_t *old_bytes)
{
    const uint32_t word = bit >> 5;
    if (word < *noted) {
        return false;
    }
    const uint32_t old = way.merges ? way.note[word] : 0;
    if ((old & 63) == (32 | (bit & 31))) {
        *old_bytes = old >> 6;
        return true;
    }
    while (*noted < word) {
        way.note[(*noted)++] = 0;
    }
    way.note[(*noted)++] = bytes << 6 | 32 | (bit & 31);
    return false;
}

// The piece as the walk before left it from `at` on, but with other bytes before that.
__device__ __forceinline__ void merge(const stretch &way, piece &p, uint32_t at, uint32_t noted,
                                      uint32_t bytes, uint32_t old_bytes)
{
    const uint32_t delta = (old_bytes - bytes) << 6; // notes count as the first walk did
    for (uint32_t i = 0; i < noted; i++) {
        way.note[i] += way.note[i] != 0 ? delta : 0;
    }
    for (uint32_t i = noted; i < (at - way.low) >> 5; i++) {
        way.note[i] = 0;
    }
    p.start = way.start;
    p.bytes = bytes + ((p.total - old_bytes) & 0x3ffffff);
}

// By whole warps.
template <class SHAPE>
__device__ __forceinline__ void walk(const arena<SHAPE> &mine, piece &p, const stretch &way)
{
    uint32_t bytes = 0, noted = 0, old_bytes = 0, stop = GOES_ON;
    bool met = false, runs = way.runs;
    reader r = {0, way.start};
    while (runs = runs && r.at < way.high, __any_sync(~0u, runs)) {
        if (runs && note_symbol(way, r.at - way.low, bytes, &noted, &old_bytes)) {
            met = true;
            runs = false;
        }
        if (runs) {
            uint32_t value;
            const uint32_t distance = token<false>(mine, r, &value);
            if (distance == ~0u) {
                stop = value;
                runs = false;
            } else {
                bytes += distance != 0 ? value : 1;
            }
            // One that starts in 32 bits without a note is left to be noted.
            if (distance == 0 && (r.at - way.low) >> 5 < noted && second_literal(mine, r, &value)) {
                bytes++;
            }
        }
    }
    if (met) {
        merge(way, p, r.at, noted, bytes, old_bytes);
    } else if (way.runs) {
        while (noted < (way.high - way.low) >> 5) {
            way.note[noted++] = 0;
        }
        p.start = way.start;
        p.end = r.at;
        p.stop = stop;
        p.bytes = p.total = bytes;
    }
}

// Where symbols seem to start at or after way.low, found from `from` on.
template <class SHAPE>
__device__ __forceinline__ uint32_t guess(const arena<SHAPE> &mine, const stretch &way,
                                          uint32_t from)
{
    bool runs = way.runs;
    reader r = {0, runs ? from : way.low};
    while (runs = runs && r.at < way.low, __any_sync(~0u, runs)) {
        uint32_t value;
        if (runs && token<false>(mine, r, &value) == ~0u) {
            r.at = way.low;
        }
    }
    return r.at < way.high ? r.at : way.low;
}
} // namespace pb_inflate
#endif
