// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_SYMBOLS_CUH
#define PB_DEFLATE_SYMBOLS_CUH
// The symbols of a thread's part of a piece, in order: matches and literals.
#include "kernels/codec/deflate_chunk.cuh"

namespace pb_device
{
// What begins in a thread's part: a chunk's symbols are those of its parts, in order. Runs are
// marked first, a bit a byte, so that all threads of a warp then go through their bytes in step.
template <uint32_t WORDS> struct part_symbols {
    static constexpr uint32_t PART = 32 * WORDS;
    uint32_t lo;             // of the chunk
    uint32_t covered[WORDS]; // bytes of runs, and those behind the chunk's end
    uint32_t begins[WORDS];  // a match
    uint32_t change[WORDS];  // bytes that differ from the one before
    uint32_t next[WORDS];    // of the chunk: the first such byte behind the word

    // A run from start to `to`, which may begin before the part and end behind it.
    __device__ __forceinline__ void mark_run(uint32_t start, uint32_t to)
    {
        const uint32_t from = start > lo ? start - lo : 0, end = min(to - lo, PART);
        uint32_t at = start, left = to - start;
#pragma unroll
        for (uint32_t k = 0; k < WORDS; k++) {
            covered[k] |= below(~0u, 32 * k, end) & ~below(~0u, 32 * k, from);
        }
        if (lo > start + 2 * PB_DEFLATE_RUN_MAX) { // the matches before the part are not looked at
            const uint32_t skip = (lo - start) / PB_DEFLATE_RUN_MAX - 1;
            at += PB_DEFLATE_RUN_MAX * skip;
            left -= PB_DEFLATE_RUN_MAX * skip;
        }
        while (left > 0 && at < lo + PART) {
            const uint32_t n = pb_deflate_part_of(left), bit = at - lo;
#pragma unroll
            for (uint32_t k = 0; k < WORDS; k++) {
                begins[k] |= at >= lo && bit / 32 == k ? 1u << (bit % 32) : 0;
            }
            at += n;
            left -= n;
        }
    }
    __device__ part_symbols(const equal_part<WORDS> &equal, const part_place &place, uint32_t part,
                            uint32_t n)
        : lo(part)
    {
        uint32_t state = place.state;
#pragma unroll
        for (uint32_t k = WORDS; k-- > 0;) {
            covered[k] = ~below(~0u, lo + 32 * k, n);
            begins[k] = 0;
            change[k] = ~equal.word[k];
            next[k] = k + 1 == WORDS ? place.next
                      : change[k + 1] != 0
                          ? lo + 32 * k + 31 +
                                static_cast<uint32_t>(__ffs(static_cast<int>(change[k + 1])))
                          : next[k + 1];
        }
        const auto take = [&](uint32_t a, uint32_t b) {
            uint32_t start;
            if (run_in(a, b, &state, &start)) {
                mark_run(start, b);
            }
        };
        const uint32_t open = for_stretches(equal, lo, place.open, take);
        if (open != NOWHERE && place.next - open >= 4) {
            take(open, place.next); // goes on behind the part
        }
    }
    // A run goes on up to the next change.
    __device__ __forceinline__ uint32_t length_at(uint32_t k, uint32_t bit) const
    {
        const uint32_t rest = change[k] >> bit, at = lo + 32 * k + bit;
        const uint32_t end =
            rest != 0 ? at + static_cast<uint32_t>(__ffs(static_cast<int>(rest))) - 1 : next[k];
        return pb_deflate_part_of(end - at);
    }
    // Calls visitor.literals(word) for words of literals, in order, and for the others
    // visitor.mixed(word, runs, match, length): bit i of `runs` is set where byte i is no literal;
    // at byte `match` a match of `length` begins, 4: none does.
    template <class Piece, class Visitor>
    __device__ __forceinline__ void visit(const Piece &piece, uint32_t thread,
                                          Visitor visitor) const
    {
#pragma unroll
        for (uint32_t k = 0; k < WORDS; k++) {
            for (uint32_t bit = 0; bit < 32; bit += 4) {
                const uint32_t runs = covered[k] >> bit & 15, matches = begins[k] >> bit & 15;
                if (runs == 15 && matches == 0) {
                    continue;
                }
                const uint32_t word = piece.word(thread * PART + 32 * k + bit);
                if (runs == 0) {
                    visitor.literals(word);
                    continue;
                }
                // One at most: a match has three bytes or more, and the search goes on behind the
                // byte that ends a run.
                uint32_t match = 4, length = PB_DEFLATE_RUN_MAX;
                if (matches != 0) {
                    match = static_cast<uint32_t>(__ffs(static_cast<int>(matches))) - 1;
                    length = length_at(k, bit + match);
                }
                visitor.mixed(word, runs, match, length);
            }
        }
    }
};

// The piece of the chunk that begins at `from` into shared memory, and what begins in the thread's
// part of it. Every thread of the group; a barrier follows before the next piece is taken.
template <class Piece, class Group>
__device__ part_symbols<Piece::PART_WORDS> take_piece(Piece &piece, const encode_chunk &chunk,
                                                      uint32_t from, deflate_carry *carry,
                                                      const Group &group)
{
    load_piece(piece, chunk, from, Piece::BYTES + AHEAD, group);
    group.sync();
    const auto e = compare_part(piece, from, chunk.bytes, *carry, group);
    const uint32_t ahead = stretch_end_ahead(piece, from, chunk.bytes, group.thread % 32);
    const part_place place = find_place(piece, e, from, ahead, carry, group);
    return {e, place, from + group.thread * Piece::PART, chunk.bytes};
}
} // namespace pb_device
#endif
