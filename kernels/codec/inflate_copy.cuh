// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_INFLATE_COPY_CUH
#define PB_INFLATE_COPY_CUH
// Bytes of the output: from the ring to memory with their checksum, and matches whose source is
// made in the same round.
#include "kernels/codec/inflate_arena.cuh"

namespace pb_inflate
{
constexpr uint32_t SHORT = 24; // bytes of a match that one lane copies

// --- ring to memory --------------------------------------------------------------------------

// Adds 16 bytes from place i on to the sums of Adler-32.
__device__ __forceinline__ void add_sums(state &s, const uint4 &v, uint32_t i)
{
    const uint32_t ones = 0x01010101u;
    const uint32_t sum =
        __dp4a(v.w, ones, __dp4a(v.z, ones, __dp4a(v.y, ones, __dp4a(v.x, ones, 0u))));
    const uint32_t inside =
        __dp4a(v.w, 0x0f0e0d0cu,
               __dp4a(v.z, 0x0b0a0908u, __dp4a(v.y, 0x07060504u, __dp4a(v.x, 0x03020100u, 0u))));
    s.sum += sum;
    s.weighted += (i % 65521u) * sum + inside;
}

// Bytes [s.flushed, s.done), whole words unless it is the end.
template <class SHAPE, class GROUP>
__device__ __forceinline__ void flush(const GROUP &group, arena<SHAPE> &mine, state &s, bool end)
{
    group.sync();
    const uint32_t to = end ? s.done : s.done & ~15u;
    for (uint32_t i = s.flushed + 16 * group.thread; i < to; i += 16 * SHAPE::THREADS) {
        if (to - i >= 16) {
            const uint4 v = *reinterpret_cast<const uint4 *>(&mine.ring[i & (SHAPE::RING - 1)]);
            *reinterpret_cast<uint4 *>(s.out + i) = v;
            add_sums(s, v, i);
            continue;
        }
        for (uint32_t k = i; k < to; k++) {
            const uint32_t v = mine.ring[k & (SHAPE::RING - 1)];
            s.out[k] = static_cast<uint8_t>(v);
            s.sum += v;
            s.weighted += (k % 65521u) * v;
        }
    }
    s.flushed = to;
    group.sync();
    if (s.progress != nullptr && group.thread == 0) {
        pb_codec_post(s.progress, to);
    }
}

// Adler-32 of what was flushed.
template <class SHAPE, class GROUP>
__device__ uint32_t adler(const GROUP &group, arena<SHAPE> &mine, const state &s)
{
    if (group.thread < 2) {
        mine.adler_sum[group.thread] = 0;
    }
    group.sync();
    atomicAdd(reinterpret_cast<unsigned long long *>(&mine.adler_sum[0]),
              static_cast<unsigned long long>(s.sum % 65521u));
    atomicAdd(reinterpret_cast<unsigned long long *>(&mine.adler_sum[1]),
              static_cast<unsigned long long>(s.weighted % 65521u));
    group.sync();
    const uint64_t n = s.done % 65521u, sum = mine.adler_sum[0] % 65521u,
                   weighted = mine.adler_sum[1] % 65521u;
    // The second half is n + the sum of (n - i) * byte i.
    const uint64_t high = (n + n * sum + 65521u - weighted) % 65521u;
    return static_cast<uint32_t>(high << 16 | (1 + sum) % 65521u);
}

// --- matches ---------------------------------------------------------------------------------

// The bytes of a match: its source lies in memory where the ring no longer has it.
struct source {
    uint32_t from;
    bool fill, in_memory;
};

template <class SHAPE>
__device__ __forceinline__ uint8_t byte_of(const arena<SHAPE> &mine, const state &s,
                                           const source &src, uint32_t offset)
{
    const uint32_t from = src.from + (src.fill ? 0 : offset);
    return src.in_memory ? s.out[from] : mine.ring[from & (SHAPE::RING - 1)];
}

// A short match whose source is complete, by one lane.
template <class SHAPE>
__device__ __forceinline__ void copy_short(arena<SHAPE> &mine, const state &s, uint32_t to,
                                           uint32_t length, uint32_t distance, const source &src)
{
    constexpr uint32_t MASK = SHAPE::RING - 1;
    if (src.fill) {
        const uint8_t v = byte_of(mine, s, src, 0);
        for (uint32_t b = 0; b < length; b++) {
            mine.ring[(to + b) & MASK] = v;
        }
    } else if (distance < 4) { // it reads what it writes
        for (uint32_t b = 0; b < length; b++) {
            mine.ring[(to + b) & MASK] = mine.ring[(src.from + b) & MASK];
        }
    } else {
        for (uint32_t b = 0; b < length; b += 4) {
            uint8_t v[4];
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) { // up to three bytes too many
                v[k] = mine.ring[(src.from + b + k) & MASK];
            }
            if (src.in_memory) {
                for (uint32_t k = 0; k < 4 && b + k < length; k++) {
                    v[k] = s.out[src.from + b + k];
                }
            }
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                if (b + k < length) {
                    mine.ring[(to + b + k) & MASK] = v[k];
                }
            }
        }
    }
}

// Whether no byte of [from, to) of the round is missing.
template <class SHAPE>
__device__ __forceinline__ bool is_complete(const arena<SHAPE> &mine, uint32_t from, uint32_t to)
{
    if (from >= to) {
        return true;
    }
    const volatile uint32_t *const m = mine.missing;
    const uint32_t first = from >> 5, last = (to - 1) >> 5;
    uint32_t lost = m[first] & ~0u << (from & 31);
    if (first == last) {
        return (lost & ~0u >> (31 - ((to - 1) & 31))) == 0;
    }
    for (uint32_t i = first + 1; i < last; i++) {
        lost |= m[i];
    }
    return (lost | (m[last] & ~0u >> (31 - ((to - 1) & 31)))) == 0;
}

// Bytes [from, to) of the round are missing, or no longer.
template <bool MISSING, class SHAPE>
__device__ __forceinline__ void mark(arena<SHAPE> &mine, uint32_t from, uint32_t to)
{
    uint32_t *m = mine.missing + (from >> 5);
    for (uint32_t left = to - from, at = from & 31; left > 0; m++, at = 0) {
        const uint32_t n = min(left, 32 - at), bits = (~0u >> (32 - n)) << at;
        if (MISSING) {
            atomicOr(m, bits);
        } else {
            atomicAnd(m, ~bits);
        }
        left -= n;
    }
}

// A match of the list.
struct waiting {
    uint32_t place, length, distance; // place: in the round
    bool fill;
};

template <class SHAPE> __device__ __forceinline__ waiting take(const arena<SHAPE> &mine, uint32_t i)
{
    const uint32_t word = mine.match[i];
    waiting w;
    w.place = word & 0x7fff;
    w.fill = (word >> 15 & 1) != 0;
    w.length = word >> 16;
    w.distance = mine.distance[i] + 1u;
    return w;
}

template <class SHAPE>
__device__ __forceinline__ bool is_ready(const arena<SHAPE> &mine, const waiting &w)
{
    // A match that overlaps itself needs what is before it; all before the round is there.
    const uint32_t need = w.fill ? 1 : min(w.length, w.distance);
    if (w.place + need <= w.distance) {
        return true;
    }
    const uint32_t from = w.place > w.distance ? w.place - w.distance : 0;
    return is_complete(mine, from, w.place + need - w.distance);
}

// The source of a match that ends a chain of them.
template <class SHAPE> __device__ __forceinline__ source source_of(const state &s, const waiting &w)
{
    source src;
    src.from = s.done + w.place - w.distance;
    src.fill = w.fill;
    src.in_memory = src.from + SHAPE::RING < s.written;
    return src;
}

// Copies those of the warp's ready matches that are long, one after the other, by all lanes.
template <class SHAPE>
__device__ __forceinline__ void copy_long(arena<SHAPE> &mine, const state &s, const waiting &w,
                                          uint32_t whose)
{
    const uint32_t lane = threadIdx.x % 32;
    while (whose != 0) { // the same in all lanes
        const int who = __ffs(static_cast<int>(whose)) - 1;
        waiting one;
        whose &= whose - 1;
        one.place = __shfl_sync(~0u, w.place, who);
        one.length = __shfl_sync(~0u, w.length, who);
        one.distance = __shfl_sync(~0u, w.distance, who);
        one.fill = __shfl_sync(~0u, static_cast<uint32_t>(w.fill), who) != 0;
        const source src = source_of<SHAPE>(s, one);
        const uint32_t to = s.done + one.place;
        for (uint32_t b = lane; b < one.length; b += 32) {
            const uint32_t offset = one.distance >= one.length ? b : b % one.distance;
            mine.ring[(to + b) & (SHAPE::RING - 1)] = byte_of(mine, s, src, offset);
        }
    }
}

// A look at match i of the list, which is open in lanes that say so. Returns whether it was copied.
template <class SHAPE>
__device__ __forceinline__ bool try_match(arena<SHAPE> &mine, const state &s, uint32_t i, bool open)
{
    waiting w = {0, 0, 1, false};
    bool ready = false;
    if (open) {
        w = take(mine, i);
        ready = is_ready(mine, w);
    }
    __threadfence_block(); // pairs with the one before a source was marked
    const uint32_t whose = __ballot_sync(~0u, ready && w.length > SHORT);
    if (ready && w.length <= SHORT) {
        copy_short(mine, s, s.done + w.place, w.length, w.distance, source_of<SHAPE>(s, w));
    }
    copy_long(mine, s, w, whose);
    __threadfence_block();
    __syncwarp();
    if (ready) {
        mark<false>(mine, w.place, w.place + w.length);
    }
    return ready;
}

// Copies the n matches of the list, each when its source is complete. Warps see what others have
// copied without a barrier. The first open match of the round is always ready, so all come to an
// end.
template <class SHAPE, class GROUP>
__device__ void copy_matches(const GROUP &group, arena<SHAPE> &mine, const state &s, uint32_t n)
{
    constexpr uint32_t EACH = (SHAPE::LIST + SHAPE::THREADS - 1) / SHAPE::THREADS;
    uint32_t open = 0;
    for (uint32_t k = 0; k < EACH; k++) {
        open |= static_cast<uint32_t>(k * SHAPE::THREADS + group.thread < n) << k;
    }
    while (__any_sync(~0u, open != 0)) {
        for (uint32_t k = 0; k < EACH; k++) {
            const bool is_open = (open >> k & 1) != 0;
            if (__any_sync(~0u, is_open) &&
                try_match(mine, s, k * SHAPE::THREADS + group.thread, is_open)) {
                open &= ~(1u << k);
            }
        }
    }
}
} // namespace pb_inflate
#endif
