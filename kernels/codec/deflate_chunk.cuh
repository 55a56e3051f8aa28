// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_CHUNK_CUH
#define PB_DEFLATE_CHUNK_CUH
// The runs of a chunk, as the CPU's search finds them (pipeline/codec/deflate_runs.c).
//
// A thread group takes a chunk in pieces of equal parts, one a thread. The CPU searches a stretch
// of equal bytes in steps of four, and the step after a run begins at the run's end: these bytes
// depend on all before them. The search is an automaton of four states (the position modulo four),
// and each stretch is a function on them. Functions compose, therefore a scan over the threads
// gives each one its first state. struct deflate_carry has the state between two pieces.
#include "kernels/codec/encode_view.cuh"

namespace pb_device
{
constexpr uint32_t AHEAD = 640; // bytes after a piece: more than two matches take
constexpr uint32_t NOWHERE = 0xffffffff, ALL_LANES = 0xffffffff;

// A piece in shared memory: a part of PART_BYTES for each of N threads. Parts are 4 bytes apart,
// against bank conflicts.
template <uint32_t N, uint32_t PART_BYTES> struct deflate_piece {
    static constexpr uint32_t THREADS = N, WARPS = N / 32, PART = PART_BYTES;
    static constexpr uint32_t PART_WORDS = PART / 32, BYTES = THREADS * PART;
    static_assert(PART % 32 == 0 && AHEAD % PART == 0 && AHEAD / 32 <= 32,
                  "whole words, a lane each");
    alignas(16) uint8_t data[(THREADS + AHEAD / PART) * (PART + 4)];
    uint32_t warp_last[WARPS], warp_first[WARPS], warp_map[WARPS];

    __device__ const uint32_t &word(uint32_t p) const // p: a multiple of 4
    {
        return *reinterpret_cast<const uint32_t *>(&data[p + p / PART * 4]);
    }
    __device__ uint32_t byte(uint32_t p) const
    {
        return data[p + p / PART * 4];
    }
};

template <uint32_t THREADS> using chunk_piece = deflate_piece<THREADS, 128>;

// All positions are of the chunk.
struct deflate_carry {
    uint32_t open = 0;  // behind the last byte that differs from the one before it
    uint32_t state = 1; // of the search, which starts at byte 1
    uint32_t byte = 0;  // the last one
};

// Bytes from `from` on, zeros behind the chunk's end. A barrier has to follow.
template <class Piece, class Group>
__device__ void load_piece(Piece &piece, const encode_chunk &chunk, uint32_t from, uint32_t bytes,
                           const Group &group)
{
    const auto *const in = reinterpret_cast<const uint64_t *>(chunk.in + from);
    const uint32_t left = chunk.bytes - from;
    for (uint32_t i = group.thread; i < bytes / 8; i += Piece::THREADS) {
        uint64_t v = 0;
        if (8 * i < left) {
            v = in[i];
        }
        if (8 * i < left && 8 * i + 8 > left) {
            v &= (UINT64_C(1) << (8 * (left - 8 * i))) - 1;
        }
        const uint32_t p = 8 * i + i / (Piece::PART / 8) * 4;
        *reinterpret_cast<uint32_t *>(&piece.data[p]) = static_cast<uint32_t>(v);
        *reinterpret_cast<uint32_t *>(&piece.data[p + 4]) = static_cast<uint32_t>(v >> 32);
    }
}

// Bit b: byte b of the 32 from p on equals the one before it; before: that of the first.
template <class Piece>
__device__ __forceinline__ uint32_t equal_bytes(const Piece &piece, uint32_t p, uint32_t before)
{
    uint32_t bits = 0;
    before <<= 24;
#pragma unroll
    for (uint32_t j = 0; j < 8; j++) {
        const uint32_t w = piece.word(p + 4 * j);
        const uint32_t equal = __vcmpeq4(w, w << 8 | before >> 24) & 0x01010101;
        bits |= (equal * 0x10204080u >> 28) << (4 * j);
        before = w;
    }
    return bits;
}

// The bits of positions at or behind n go.
__device__ __forceinline__ uint32_t below(uint32_t bits, uint32_t from, uint32_t n)
{
    if (from + 32 <= n) {
        return bits;
    }
    return from < n ? bits & ((1u << (n - from)) - 1) : 0;
}

// The bits of a thread's part.
template <uint32_t WORDS> struct equal_part {
    uint32_t word[WORDS];
};

template <class Piece, class Group>
__device__ __forceinline__ equal_part<Piece::PART_WORDS>
compare_part(const Piece &piece, uint32_t from, uint32_t n, const deflate_carry &carry,
             const Group &group)
{
    const uint32_t lo = group.thread * Piece::PART;
    uint32_t before = lo > 0 ? piece.byte(lo - 1) : carry.byte;
    equal_part<Piece::PART_WORDS> e;
#pragma unroll
    for (uint32_t k = 0; k < Piece::PART_WORDS; k++) {
        e.word[k] = below(equal_bytes(piece, lo + 32 * k, before), from + lo + 32 * k, n);
        before = piece.byte(lo + 32 * k + 31);
    }
    if (from + lo == 0) {
        e.word[0] &= ~1u;
    }
    return e;
}

// The first position behind a piece that ends a stretch, as far as bytes are loaded; by a whole
// warp.
template <class Piece>
__device__ uint32_t stretch_end_ahead(const Piece &piece, uint32_t from, uint32_t n, uint32_t lane)
{
    constexpr uint32_t END = Piece::BYTES;
    const uint32_t p = END + 32 * lane;
    uint32_t first = from + END + AHEAD;
    if (lane < AHEAD / 32) {
        const uint32_t e = below(equal_bytes(piece, p, piece.byte(p - 1)), from + p, n);
        if (~e != 0) {
            first = from + p + static_cast<uint32_t>(__ffs(static_cast<int>(~e))) - 1;
        }
    }
    for (int d = 16; d > 0; d /= 2) {
        first = min(first, __shfl_xor_sync(ALL_LANES, first, d));
    }
    return min(first, n);
}

// Functions on the four states, two bits each.
constexpr uint32_t SAME_STATE = 0xe4;

__device__ __forceinline__ uint32_t state_after(uint32_t map, uint32_t state)
{
    return map >> (2 * state) & 3;
}

__device__ __forceinline__ uint32_t composed(uint32_t first, uint32_t then)
{
    uint32_t map = 0;
#pragma unroll
    for (uint32_t s = 0; s < 4; s++) {
        map |= state_after(then, state_after(first, s)) << (2 * s);
    }
    return map;
}

// What a stretch does to the search: it goes on behind the byte that ends the run, if there is one.
__device__ __forceinline__ uint32_t stretch_map(uint32_t from, uint32_t to)
{
    const uint32_t n = to - from, next = (to + 1) & 3;
    uint32_t map = 0;
    if (n >= 7) {
        return next * 0x55;
    }
#pragma unroll
    for (uint32_t s = 0; s < 4; s++) {
        map |= (((s - from) & 3) + 4 <= n ? next : s) << (2 * s);
    }
    return map;
}

// The run inside a stretch: false when the search steps over it.
__device__ __forceinline__ bool run_in(uint32_t from, uint32_t to, uint32_t *state, uint32_t *start)
{
    *start = from + ((*state - from) & 3);
    if (*start + 4 > to) {
        return false;
    }
    *state = (to + 1) & 3;
    return true;
}

// Calls f(from, to) for every stretch of four or more equal bytes that ends in the part, which
// begins at lo, in order; returns where one that goes on began, or NOWHERE. open: where one that
// comes in began, or NOWHERE.
template <uint32_t WORDS, class F>
__device__ __forceinline__ uint32_t for_stretches(const equal_part<WORDS> &e, uint32_t lo,
                                                  uint32_t open, const F &f)
{
#pragma unroll
    for (uint32_t k = 0; k < WORDS; k++) {
        uint32_t x = e.word[k];
        const uint32_t base = lo + 32 * k;
        if (x == ~0u) {
            open = open == NOWHERE ? base : open;
            continue;
        }
        if (open != NOWHERE) {
            const uint32_t end = static_cast<uint32_t>(__ffs(static_cast<int>(~x))) - 1;
            if (base + end - open >= 4) {
                f(open, base + end);
            }
            open = NOWHERE;
            x &= ~0u << end; // end < 32
        }
        const uint32_t top = static_cast<uint32_t>(__clz(static_cast<int>(~x))); // those go on
        uint32_t rest = top > 0 ? x & (~0u >> top) : x;
        if ((rest & rest >> 1 & rest >> 2 & rest >> 3) == 0) {
            rest = 0;
        }
        while (rest != 0) {
            const uint32_t s = static_cast<uint32_t>(__ffs(static_cast<int>(rest))) - 1;
            const uint32_t t = s + static_cast<uint32_t>(__ffs(static_cast<int>(~(rest >> s)))) - 1;
            if (t - s >= 4) {
                f(base + s, base + t);
            }
            rest &= t < 32 ? ~0u << t : 0;
        }
        if (top > 0) {
            open = base + 32 - top;
        }
    }
    return open;
}

struct part_place {
    uint32_t open;  // where the stretch began that comes into the part, or NOWHERE
    uint32_t state; // of the search, before the first stretch that ends in the part
    uint32_t next;  // the first position behind the part that ends a stretch, or ahead
};

// Position + 1 of the part's last byte that differs from the one before it, 0: none; and position
// of the first one, NOWHERE: none.
template <uint32_t WORDS>
__device__ __forceinline__ void find_changes(const equal_part<WORDS> &e, uint32_t lo,
                                             uint32_t *out_last, uint32_t *out_first)
{
    *out_last = 0;
    *out_first = NOWHERE;
#pragma unroll
    for (uint32_t k = 0; k < WORDS; k++) {
        const int change = static_cast<int>(~e.word[k]);
        if (change != 0) {
            const uint32_t at = lo + 32 * k;
            *out_last = at + 32 - static_cast<uint32_t>(__clz(change));
            *out_first = min(*out_first, at + static_cast<uint32_t>(__ffs(change)) - 1);
        }
    }
}

// Every thread of the group; ahead: where a stretch ends that goes on behind the piece. The carry
// becomes that of the next piece.
template <class Piece, class Group>
__device__ part_place find_place(Piece &piece, const equal_part<Piece::PART_WORDS> &e,
                                 uint32_t from, uint32_t ahead, deflate_carry *carry,
                                 const Group &group)
{
    constexpr uint32_t WARPS = Piece::WARPS;
    const uint32_t lane = group.thread % 32, warp = group.thread / 32;
    const uint32_t lo = from + group.thread * Piece::PART;
    uint32_t last, first;
    find_changes(e, lo, &last, &first);
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t up = __shfl_up_sync(ALL_LANES, last, d);
        const uint32_t down = __shfl_down_sync(ALL_LANES, first, d);
        last = lane >= d ? max(last, up) : last;
        first = lane + d < 32 ? min(first, down) : first;
    }
    if (lane == 31) {
        piece.warp_last[warp] = last;
    }
    if (lane == 0) {
        piece.warp_first[warp] = first;
    }
    group.sync();
    uint32_t before = carry->open, behind = ahead, all = carry->open;
    for (uint32_t i = 0; i < WARPS; i++) {
        before = i < warp ? max(before, piece.warp_last[i]) : before;
        behind = i > warp ? min(behind, piece.warp_first[i]) : behind;
        all = max(all, piece.warp_last[i]);
    }
    const uint32_t up = __shfl_up_sync(ALL_LANES, last, 1);
    const uint32_t down = __shfl_down_sync(ALL_LANES, first, 1);
    before = max(before, lane > 0 ? up : 0);
    part_place place;
    place.open = before < lo ? before : NOWHERE;
    place.next = min(behind, lane < 31 ? down : NOWHERE);

    uint32_t map = SAME_STATE;
    for_stretches(e, lo, place.open,
                  [&](uint32_t a, uint32_t b) { map = composed(map, stretch_map(a, b)); });
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t earlier = __shfl_up_sync(ALL_LANES, map, d);
        map = lane >= d ? composed(earlier, map) : map;
    }
    if (lane == 31) {
        piece.warp_map[warp] = map;
    }
    group.sync();
    uint32_t state = carry->state, end_state = carry->state;
    for (uint32_t i = 0; i < WARPS; i++) {
        state = i < warp ? state_after(piece.warp_map[i], state) : state;
        end_state = state_after(piece.warp_map[i], end_state);
    }
    const uint32_t earlier = __shfl_up_sync(ALL_LANES, map, 1);
    place.state = lane > 0 ? state_after(earlier, state) : state;
    carry->open = all;
    carry->state = end_state;
    carry->byte = piece.byte(Piece::BYTES - 1);
    return place;
}
} // namespace pb_device
#endif
