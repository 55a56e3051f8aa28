// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_COUNT_CUH
#define PB_DEFLATE_COUNT_CUH
// What a chunk consists of: how often each symbol occurs, the bits that are not symbols, and the
// chunk's Adler sums. All bytes are counted as literals first, in histograms of their own for each
// eighth of the threads; runs take theirs back.
#include "kernels/codec/deflate_chunk.cuh"

namespace pb_device
{
constexpr uint32_t HISTOGRAMS = 8, HISTOGRAM_WORDS = 324; // 4 banks from one to the next
constexpr uint32_t ADLER = 65521;

template <uint32_t THREADS> struct deflate_count_arena {
    chunk_piece<THREADS> piece;
    uint32_t count[HISTOGRAMS][HISTOGRAM_WORDS];
    uint32_t warp_s1[THREADS / 32], warp_s2[THREADS / 32], warp_more[THREADS / 32];
};

// Of a thread.
struct deflate_thread_sums {
    uint64_t s2 = 0;
    uint32_t s1 = 0, more = 0;
};

// Sums of the bytes of a part; the last sum weights each with its position.
struct part_sums {
    uint32_t s1 = 0, weighted = 0;

    __device__ __forceinline__ void add(uint32_t word, uint32_t at)
    {
        const uint32_t sum = __dp4a(word, 0x01010101u, 0u);
        s1 += sum;
        weighted += __dp4a(word, 0x03020100u, 0u) + at * sum;
    }
    // left: bytes of the chunk from the part's first on; behind them are zeros.
    __device__ void add_to(deflate_thread_sums *sums, uint32_t left) const
    {
        sums->s1 += s1;
        sums->s2 += static_cast<uint64_t>(left) * s1 - weighted;
    }
};

// The bytes of the thread's part as literals. left: bytes of the chunk from the part's first on.
template <class Piece>
__device__ void count_literals(const Piece &piece, uint32_t thread, uint32_t left, uint32_t *count,
                               deflate_thread_sums *sums)
{
    constexpr uint32_t PART = Piece::PART;
    part_sums part;
#pragma unroll 4
    for (uint32_t i = 0; i < PART; i += 4) {
        const uint32_t w = piece.word(thread * PART + i);
        part.add(w, i);
        if (i + 4 <= left && w == (w & 255) * 0x01010101u) {
            atomicAdd(&count[w & 255], 4u);
            continue;
        }
        for (uint32_t k = 0; k < 4; k++) {
            if (i + k < left) {
                atomicAdd(&count[w >> (8 * k) & 255], 1u);
            }
        }
    }
    part.add_to(sums, left);
}

// A run of `bytes` bytes of one value, which are no literals then.
inline __device__ void count_run(uint32_t *count, uint32_t value, uint32_t bytes, uint32_t *more)
{
    uint32_t left = bytes;
    atomicAdd(&count[value], 0u - bytes);
    if (left > 2 * PB_DEFLATE_RUN_MAX) { // all matches but the last two or three
        const uint32_t n = left / PB_DEFLATE_RUN_MAX - 1;
        atomicAdd(&count[285], n);
        *more += n;
        left -= PB_DEFLATE_RUN_MAX * n;
    }
    while (left > 0) {
        const uint32_t part = pb_deflate_part_of(left);
        uint32_t extra_bits, extra;
        atomicAdd(&count[pb_deflate_length_symbol(part, &extra_bits, &extra)], 1u);
        *more += extra_bits + 1;
        left -= part;
    }
}

// The symbols of a chunk. A barrier follows.
template <class Piece, class Group>
__device__ void count_chunk(Piece &piece, const encode_chunk &chunk, uint32_t *count,
                            deflate_thread_sums *sums, const Group &group)
{
    deflate_carry carry;
    // The position behind the last byte, which ends its stretch, belongs to a piece as well.
    for (uint32_t from = 0; from <= chunk.bytes; from += Piece::BYTES) {
        const uint32_t lo = from + group.thread * Piece::PART, before = carry.byte;
        load_piece(piece, chunk, from, Piece::BYTES, group);
        group.sync();
        count_literals(piece, group.thread, lo < chunk.bytes ? chunk.bytes - lo : 0, count, sums);
        const auto e = compare_part(piece, from, chunk.bytes, carry, group);
        const part_place place = find_place(piece, e, from, 0, &carry, group);
        uint32_t state = place.state;
        for_stretches(e, lo, place.open, [&](uint32_t a, uint32_t b) {
            uint32_t start;
            if (run_in(a, b, &state, &start)) {
                const uint32_t value = b == from ? before : piece.byte(b - 1 - from);
                count_run(count, value, b - start, &sums->more);
            }
        });
        group.sync(); // the piece has been read
    }
}

// A barrier has to follow.
template <uint32_t THREADS, class Group>
__device__ void clear_counts(deflate_count_arena<THREADS> &arena, const Group &group)
{
    for (uint32_t i = group.thread; i < HISTOGRAMS * HISTOGRAM_WORDS; i += THREADS) {
        arena.count[i / HISTOGRAM_WORDS][i % HISTOGRAM_WORDS] = 0;
    }
}

template <uint32_t THREADS>
__device__ uint32_t sum_counts(const deflate_count_arena<THREADS> &arena, uint32_t symbol)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < HISTOGRAMS; k++) {
        n += arena.count[k][symbol];
    }
    return n;
}

template <uint32_t THREADS, class Group>
__device__ void write_sums(deflate_count_arena<THREADS> &arena, deflate_thread_sums sums,
                           pb_deflate_sums *out, const Group &group)
{
    constexpr uint32_t WARPS = THREADS / 32;
    const uint32_t warp = group.thread / 32;
    for (int d = 16; d > 0; d /= 2) {
        sums.s1 += __shfl_xor_sync(ALL_LANES, sums.s1, d);
        sums.s2 += __shfl_xor_sync(ALL_LANES, sums.s2, d);
        sums.more += __shfl_xor_sync(ALL_LANES, sums.more, d);
    }
    if (group.thread % 32 == 0) {
        arena.warp_s1[warp] = sums.s1;
        arena.warp_s2[warp] = static_cast<uint32_t>(sums.s2 % ADLER);
        arena.warp_more[warp] = sums.more;
    }
    group.sync();
    for (uint32_t i = group.thread; i < PB_DEFLATE_SYMBOLS; i += THREADS) {
        out->count[i] = (i == PB_DEFLATE_END ? 1 : 0) + sum_counts(arena, i);
    }
    if (group.thread == 0) {
        uint32_t s1 = 0, s2 = 0, more = 0;
        for (uint32_t i = 0; i < WARPS; i++) {
            s1 += arena.warp_s1[i];
            s2 += arena.warp_s2[i];
            more += arena.warp_more[i];
        }
        out->s1 = s1 % ADLER;
        out->s2 = s2 % ADLER;
        out->more = more;
    }
}
} // namespace pb_device

// Every thread of the group calls it; a barrier follows before the arena is used again.
template <uint32_t THREADS, class Group>
__device__ void pb_deflate_count(const pb_device::encode_chunk &chunk,
                                 pb_device::deflate_count_arena<THREADS> &arena,
                                 pb_deflate_sums *out, const Group &group)
{
    using namespace pb_device;
    deflate_thread_sums sums;
    clear_counts(arena, group);
    count_chunk(arena.piece, chunk, arena.count[group.thread % HISTOGRAMS], &sums, group);
    write_sums(arena, sums, out, group);
}
#endif
