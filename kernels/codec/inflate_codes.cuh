// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_INFLATE_CODES_CUH
#define PB_INFLATE_CODES_CUH
// The Huffman codes of a deflate block: their lengths are read by warp 0, the tables are filled by
// all threads. What is not a code is judged as libdeflate does: over-subscribed and incomplete
// codes are refused, but for those of no symbol, and of one symbol of one bit.
#include "kernels/codec/inflate_arena.cuh"

namespace pb_inflate
{
// How many symbols have each length, into mine.count. By one warp.
template <class SHAPE>
__device__ void count_lengths(arena<SHAPE> &mine, const uint8_t *lengths, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 32;
    if (lane < 16) {
        mine.count[lane] = 0;
    }
    __syncwarp();
    for (uint32_t s = lane; s - lane < n; s += 32) {
        const uint32_t length = s < n ? lengths[s] : 0;
        const uint32_t same = __match_any_sync(~0u, length);
        if (length != 0 && (same & ((1u << lane) - 1)) == 0) {
            mine.count[length] += static_cast<uint32_t>(__popc(same));
        }
        __syncwarp();
    }
}

// Symbols by length and number, into list; mine.count holds where each length begins.
template <class SHAPE>
__device__ void sort_symbols(arena<SHAPE> &mine, const uint8_t *lengths, uint32_t n, uint16_t *list)
{
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t s = lane; s - lane < n; s += 32) {
        const uint32_t length = s < n ? lengths[s] : 0;
        const uint32_t same = __match_any_sync(~0u, length);
        const uint32_t rank = static_cast<uint32_t>(__popc(same & ((1u << lane) - 1)));
        const uint32_t at = length != 0 ? mine.count[length] + rank : 0;
        __syncwarp();
        if (length != 0) {
            list[at] = static_cast<uint16_t>(s << 4 | length);
            if (rank == 0) {
                mine.count[length] += static_cast<uint32_t>(__popc(same));
            }
        }
        __syncwarp();
    }
}

// By one warp. False: it is none.
template <class SHAPE>
__device__ bool make_code(arena<SHAPE> &mine, const uint8_t *lengths, uint32_t n, code &c,
                          uint16_t *list)
{
    const uint32_t lane = threadIdx.x % 32;
    count_lengths(mine, lengths, n);
    uint32_t first = 0, index = 0, used = 0, my_first = 0, my_index = 0;
    for (uint32_t l = 1; l < 16; l++) {
        const uint32_t k = mine.count[l];
        if (l == lane) {
            my_first = first;
            my_index = index;
        }
        used += k << (15 - l);
        first = (first + k) << 1;
        index += k;
    }
    const uint32_t k = lane > 0 && lane < 16 ? mine.count[lane] : 0;
    const bool one_bit = used == 0 || (used == 16384 && index == 1);
    __syncwarp();
    if (lane > 0 && lane < 16) {
        c.limit[lane] =
            static_cast<uint16_t>(one_bit ? 32768u : min((my_first + k) << (15 - lane), 32768u));
        c.delta[lane] = static_cast<uint16_t>(my_index - my_first);
        mine.count[lane] = my_index;
    }
    __syncwarp();
    if (used != 32768 && !one_bit) {
        return false;
    }
    if (lane == 0) {
        list[0] = 1; // symbol 0 of one bit, where there is none
    }
    __syncwarp();
    sort_symbols(mine, lengths, n, list);
    if (lane == 0 && one_bit) {
        list[1] = list[0]; // both values of the bit
    }
    __syncwarp();
    return true;
}

// What a code of more than `from` bits stands for; 0: nothing.
__device__ __forceinline__ uint32_t long_code(const code &c, const uint16_t *list, uint32_t from,
                                              uint32_t bits)
{
    const uint32_t value = __brev(bits) >> 17;
    if (value >= c.limit[15]) {
        return 0;
    }
    uint32_t l = from + 1;
    while (l < 15 && value >= c.limit[l]) {
        l++;
    }
    return list[((value >> (15 - l)) + c.delta[l]) & 0xffff];
}

// Thread `thread` of `threads` fills its share.
__device__ __forceinline__ void fill_table(const code &c, const uint16_t *list, uint32_t bits,
                                           uint16_t *table, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = thread; i < 1u << bits; i += threads) {
        const uint32_t value = __brev(i) >> 17;
        uint32_t l = 1;
        while (l <= bits && value >= c.limit[l]) {
            l++;
        }
        table[i] = l <= bits ? list[((value >> (15 - l)) + c.delta[l]) & 0xffff] : 0;
    }
}

// Lengths of the code of code lengths: where each stands is RFC 1951's order.
template <class SHAPE> __device__ bool read_precode(arena<SHAPE> &mine, uint32_t at, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 32;
    if (lane < 19) {
        mine.lengths[lane] = 0;
    }
    __syncwarp();
    if (lane < n) {
        const uint32_t symbol = lane < 3          ? 16 + lane
                                : lane == 3       ? 0
                                : (lane & 1) != 0 ? 7 - (lane - 5) / 2
                                                  : 8 + (lane - 4) / 2;
        mine.lengths[symbol] = peek(mine, at + 3 * lane) & 7;
    }
    __syncwarp();
    if (!make_code(mine, mine.lengths, 19, mine.distances, mine.distance_list)) {
        return false;
    }
    fill_table(mine.distances, mine.distance_list, DISTANCE_BITS, mine.distance_table, lane, 32);
    __syncwarp();
    return true;
}

// Lengths of both codes, `total` of them from bit *at on. By one warp, all lanes alike. A
// repetition past the last one is left to the host: some libraries take it. Returns a status.
template <class SHAPE>
__device__ uint32_t read_lengths(arena<SHAPE> &mine, uint32_t total, uint32_t *at)
{
    const uint32_t lane = threadIdx.x % 32;
    uint32_t last = 0, i = 0;
    while (i < total) { // at most `total` times
        uint32_t word = peek(mine, *at);
        const uint32_t entry = mine.distance_table[word & ((1u << DISTANCE_BITS) - 1)];
        const uint32_t symbol = entry >> 4, bits = entry & 15;
        uint32_t repeat = 1, extra = 0;
        if (entry == 0 || (symbol == 16 && i == 0)) {
            return PB_DECODE_BAD;
        }
        word >>= bits;
        if (symbol < 16) {
            last = symbol;
        } else {
            extra = symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
            repeat = (symbol == 18 ? 11 : 3) + (word & ((1u << extra) - 1));
            last = symbol == 16 ? last : 0;
        }
        *at += bits + extra;
        if (repeat > total - i) {
            return PB_DECODE_HOST;
        }
        for (uint32_t k = lane; k < repeat; k += 32) {
            mine.lengths[i + k] = static_cast<uint8_t>(last);
        }
        i += repeat;
    }
    __syncwarp();
    return PB_DECODED;
}

// Both codes of a dynamic block whose head was staged at `at`. By warp 0. Returns a status.
template <class SHAPE> __device__ uint32_t dynamic_codes(arena<SHAPE> &mine, uint32_t *at)
{
    const uint32_t word = peek(mine, *at);
    const uint32_t n_literals = 257 + (word & 31), n_distances = 1 + (word >> 5 & 31),
                   n_lengths = 4 + (word >> 10 & 15);
    *at += 14;
    if (!read_precode(mine, *at, n_lengths)) {
        return PB_DECODE_BAD;
    }
    *at += 3 * n_lengths;
    const uint32_t status = read_lengths(mine, n_literals + n_distances, at);
    if (status != PB_DECODED) {
        return status;
    }
    const bool good =
        mine.lengths[256] != 0 && // or the block would have no end
        make_code(mine, mine.lengths, n_literals, mine.literals, mine.literal_list) &&
        make_code(mine, mine.lengths + n_literals, n_distances, mine.distances, mine.distance_list);
    return good ? PB_DECODED : PB_DECODE_BAD;
}

template <class SHAPE> __device__ void fixed_codes(arena<SHAPE> &mine)
{
    for (uint32_t i = threadIdx.x % 32; i < SYMBOLS + DISTANCES; i += 32) {
        mine.lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < 288 ? 8 : 5;
    }
    __syncwarp();
    make_code(mine, mine.lengths, SYMBOLS, mine.literals, mine.literal_list);
    make_code(mine, mine.lengths + SYMBOLS, DISTANCES, mine.distances, mine.distance_list);
}

// The tables of a block whose head, of type 1 or 2, was staged with its codes at `at`. Returns a
// status, and in *out_bits those that they took.

template <class SHAPE, class GROUP>
__device__ uint32_t make_tables(const GROUP &group, arena<SHAPE> &mine, bool fixed, uint32_t at,
                                uint32_t *out_bits)
{
    if (group.thread < 32) {
        uint32_t end = at;
        uint32_t status = PB_DECODED;
        if (fixed) {
            fixed_codes(mine);
        } else {
            status = dynamic_codes(mine, &end);
        }
        if (group.thread == 0) {
            mine.used_bits = end - at;
            mine.status = status;
        }
    }
    group.sync();
    const uint32_t status = mine.status;
    *out_bits = mine.used_bits;
    if (status == PB_DECODED) {
        fill_table(mine.literals, mine.literal_list, LITERAL_BITS, mine.literal_table, group.thread,
                   SHAPE::THREADS);
        fill_table(mine.distances, mine.distance_list, DISTANCE_BITS, mine.distance_table,
                   group.thread, SHAPE::THREADS);
    }
    group.sync();
    return status;
}
} // namespace pb_inflate
#endif
