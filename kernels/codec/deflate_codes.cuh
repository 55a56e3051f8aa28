// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_CODES_CUH
#define PB_DEFLATE_CODES_CUH
// The code of a chunk and the table that tells a decoder, by a warp: what pipeline/codec/huffman.c
// and deflate_runs.c make of the same counts. Sorting ranks all symbols at once; the merge over two
// queues is sequential and done by one lane: thousands of warps wait for their own at the same
// time.
#include "kernels/codec/encode_view.cuh"

namespace pb_device
{
struct deflate_codes_arena {             // of a warp
    uint32_t key[PB_DEFLATE_SYMBOLS];    // count << 9 | symbol
    uint32_t sorted[PB_DEFLATE_SYMBOLS]; // the same, by count, then by symbol
    uint32_t weight[PB_DEFLATE_SYMBOLS]; // of inner nodes
    uint32_t of_depth[16];               // leaves
    uint32_t next[16];                   // code of a length
    uint32_t small_count[PB_DEFLATE_LENGTHS], small_code[PB_DEFLATE_LENGTHS];
    uint32_t head[PB_DEFLATE_HEAD_WORDS];
    uint16_t parent[2 * PB_DEFLATE_SYMBOLS];
    uint16_t depth[PB_DEFLATE_SYMBOLS];
    uint8_t length[PB_DEFLATE_ALL_SYMBOLS];
    uint8_t distance[PB_DEFLATE_DISTANCES];                                // lengths of distances
    uint8_t symbol[PB_DEFLATE_ALL_SYMBOLS], extra[PB_DEFLATE_ALL_SYMBOLS]; // of the table
    uint8_t small_length[PB_DEFLATE_LENGTHS + 1];
};

constexpr uint32_t WHOLE_WARP = 0xffffffff;

// Returns how many symbols occur; those are sorted.
inline __device__ uint32_t sort_symbols(deflate_codes_arena &arena, const uint32_t *count,
                                        uint32_t n, uint32_t lane)
{
    uint32_t used = 0;
    for (uint32_t first = 0; first < n; first += 32) {
        const uint32_t s = first + lane, c = s < n ? count[s] : 0;
        const uint32_t mask = __ballot_sync(WHOLE_WARP, c > 0);
        if (c > 0) {
            arena.key[used + static_cast<uint32_t>(__popc(mask & ((1u << lane) - 1)))] = c << 9 | s;
        }
        used += static_cast<uint32_t>(__popc(mask));
    }
    __syncwarp();
    for (uint32_t i = lane; i < used; i += 32) {
        const uint32_t own = arena.key[i];
        uint32_t rank = 0;
        for (uint32_t k = 0; k < used; k++) {
            rank += arena.key[k] < own;
        }
        arena.sorted[rank] = own;
    }
    __syncwarp();
    return used;
}

// By one lane. The next two leaves are held in registers, so that a step waits for one load.
inline __device__ void merge_queues(deflate_codes_arena &arena, uint32_t used)
{
    uint32_t next_leaf = 0, next_node = 0;
    uint32_t leaf = arena.sorted[0] >> 9, after = arena.sorted[1] >> 9;
    for (uint32_t node = 0; node + 1 < used; node++) {
        uint32_t weight = 0;
        for (int child = 0; child < 2; child++) {
            const uint32_t inner = next_node < node ? arena.weight[next_node] : 0;
            if (next_leaf < used && (next_node >= node || leaf <= inner)) {
                weight += leaf;
                arena.parent[next_leaf++] = static_cast<uint16_t>(node);
                leaf = after;
                after = next_leaf + 1 < used ? arena.sorted[next_leaf + 1] >> 9 : 0;
            } else {
                weight += inner;
                arena.parent[used + next_node++] = static_cast<uint16_t>(node);
            }
        }
        arena.weight[node] = weight;
    }
    arena.depth[used - 2] = 0;
    for (uint32_t node = used - 2; node-- > 0;) {
        arena.depth[node] = static_cast<uint16_t>(arena.depth[arena.parent[used + node]] + 1);
    }
}

// By one lane: as the CPU does it, each step takes a leaf of the deepest level and hangs it beside
// one higher up, until the Kraft sum fits.
inline __device__ void repair_depths(uint32_t *of_depth, uint32_t limit)
{
    uint32_t sum = 0;
    for (uint32_t d = 1; d <= limit; d++) {
        sum += of_depth[d] << (limit - d);
    }
    for (; sum > 1u << limit; sum--) {
        uint32_t d = limit - 1;
        while (of_depth[d] == 0) {
            d--;
        }
        of_depth[limit]--;
        of_depth[d]--;
        of_depth[d + 1] += 2;
    }
}

// As pb_huffman_lengths.
inline __device__ void make_lengths(deflate_codes_arena &arena, const uint32_t *count, uint32_t n,
                                    uint32_t limit, uint8_t *out_length, uint32_t lane)
{
    for (uint32_t s = lane; s < n; s += 32) {
        out_length[s] = 0;
    }
    if (lane < 16) {
        arena.of_depth[lane] = 0;
    }
    const uint32_t used = sort_symbols(arena, count, n, lane);
    if (used < 2) {
        if (used == 1 && lane == 0) {
            out_length[arena.sorted[0] & 511] = 1;
        }
        __syncwarp();
        return;
    }
    if (lane == 0) {
        merge_queues(arena, used);
    }
    __syncwarp();
    for (uint32_t i = lane; i < used; i += 32) {
        const uint32_t depth = arena.depth[arena.parent[i]] + 1u;
        atomicAdd(&arena.of_depth[depth < limit ? depth : limit], 1u);
    }
    __syncwarp();
    if (lane == 0) {
        repair_depths(arena.of_depth, limit);
    }
    __syncwarp();
    uint32_t given = 0; // the most frequent get the shortest
    for (uint32_t d = 1; d <= limit; d++) {
        const uint32_t k = arena.of_depth[d];
        for (uint32_t i = lane; i < k; i += 32) {
            out_length[arena.sorted[used - 1 - given - i] & 511] = static_cast<uint8_t>(d);
        }
        given += k;
    }
    __syncwarp();
}

// Symbols of each length, into arena.next.
inline __device__ void count_lengths(deflate_codes_arena &arena, const uint8_t *length, uint32_t n,
                                     uint32_t lane)
{
    if (lane < 16) {
        arena.next[lane] = 0;
    }
    __syncwarp();
    for (uint32_t s = lane; s < n; s += 32) {
        if (length[s] > 0) {
            atomicAdd(&arena.next[length[s]], 1u);
        }
    }
    __syncwarp();
}

// As pb_huffman_codes: bits << 16 | code.
inline __device__ void make_codes(deflate_codes_arena &arena, const uint8_t *length, uint32_t n,
                                  uint32_t *out_code, uint32_t lane)
{
    count_lengths(arena, length, n, lane);
    uint32_t first = 0, code = 0;
    for (uint32_t l = 1; l < 16; l++) {
        code <<= 1;
        first = l == lane ? code : first;
        code += arena.next[l];
    }
    __syncwarp();
    if (lane < 16) {
        arena.next[lane] = first;
    }
    __syncwarp();
    for (uint32_t first_symbol = 0; first_symbol < n; first_symbol += 32) {
        const uint32_t s = first_symbol + lane, l = s < n ? length[s] : 0;
        const uint32_t same = __match_any_sync(WHOLE_WARP, l);
        const uint32_t rank = static_cast<uint32_t>(__popc(same & ((1u << lane) - 1)));
        const uint32_t own = arena.next[l] + rank;
        __syncwarp();
        if (s < n) {
            out_code[s] = l > 0 ? l << 16 | __brev(own) >> (32 - l) : 0;
        }
        if (l > 0 && rank == 0) {
            arena.next[l] += static_cast<uint32_t>(__popc(same));
        }
        __syncwarp();
    }
}

// By one lane: the lengths of n symbols, run-length coded. Returns how many symbols that takes.
inline __device__ uint32_t list_lengths(deflate_codes_arena &arena, uint32_t n)
{
    uint32_t listed = 0;
    for (uint32_t i = 0, end; i < n; i = end) {
        const uint32_t length = arena.length[i];
        for (end = i + 1; end < n && arena.length[end] == length; end++) {
        }
        arena.symbol[listed] = static_cast<uint8_t>(length);
        arena.extra[listed++] = 0;
        arena.small_count[length]++;
        for (uint32_t left = end - i - 1; left > 0;) {
            uint32_t symbol, extra;
            left -= pb_deflate_repeat(length, left, &symbol, &extra);
            arena.symbol[listed] = static_cast<uint8_t>(symbol);
            arena.extra[listed++] = static_cast<uint8_t>(extra);
            arena.small_count[symbol]++;
        }
    }
    return listed;
}

// Of one lane.
struct head_bits {
    uint32_t *word;
    uint32_t bits = 0;
    __device__ void put(uint32_t value, uint32_t n)
    {
        const uint32_t w = bits / 32, shift = bits % 32;
        word[w] |= value << shift;
        if (shift + n > 32) {
            word[w + 1] |= value >> (32 - shift);
        }
        bits += n;
    }
};

// By one lane. Returns its bits.
inline __device__ uint32_t write_head(deflate_codes_arena &arena, bool last, uint32_t n_litlen,
                                      uint32_t n_distances, uint32_t listed)
{
    const uint8_t order[PB_DEFLATE_LENGTHS] = PB_DEFLATE_LENGTHS_ORDER;
    uint32_t n_order = PB_DEFLATE_LENGTHS;
    while (n_order > 4 && arena.small_length[order[n_order - 1]] == 0) {
        n_order--;
    }
    head_bits head = {arena.head};
    head.put((last ? 1u : 0u) | 2u << 1, 3);
    head.put(n_litlen - 257, 5);
    head.put(n_distances - 1, 5);
    head.put(n_order - 4, 4);
    for (uint32_t i = 0; i < n_order; i++) {
        head.put(arena.small_length[order[i]], 3);
    }
    for (uint32_t i = 0; i < listed; i++) {
        const uint32_t symbol = arena.symbol[i], code = arena.small_code[symbol];
        head.put(code & 0xffff, code >> 16);
        head.put(arena.extra[i], pb_deflate_repeat_bits(symbol));
    }
    return head.bits;
}

// The table of the lengths that are there, into arena.head; of distances, it has n_distances > 0.
// Returns its bits.
inline __device__ uint32_t make_head(deflate_codes_arena &arena, uint32_t n_distances, bool last,
                                     uint32_t lane)
{
    uint32_t n_litlen = 257;
    for (uint32_t s = lane; s < PB_DEFLATE_LITLEN; s += 32) {
        n_litlen = arena.length[s] > 0 && s + 1 > n_litlen ? s + 1 : n_litlen;
    }
    for (int d = 16; d > 0; d /= 2) {
        const uint32_t other = __shfl_xor_sync(WHOLE_WARP, n_litlen, d);
        n_litlen = other > n_litlen ? other : n_litlen;
    }
    for (uint32_t i = lane; i < PB_DEFLATE_HEAD_WORDS; i += 32) {
        arena.head[i] = 0;
    }
    if (lane < PB_DEFLATE_LENGTHS) {
        arena.small_count[lane] = 0;
    }
    __syncwarp();
    uint32_t listed = 0, bits = 0;
    if (lane < n_distances) {
        arena.length[n_litlen + lane] = arena.distance[lane];
    }
    __syncwarp();
    if (lane == 0) {
        listed = list_lengths(arena, n_litlen + n_distances);
    }
    __syncwarp();
    make_lengths(arena, arena.small_count, PB_DEFLATE_LENGTHS, PB_DEFLATE_LENGTHS_BITS,
                 arena.small_length, lane);
    make_codes(arena, arena.small_length, PB_DEFLATE_LENGTHS, arena.small_code, lane);
    if (lane == 0) {
        bits = write_head(arena, last, n_litlen, n_distances, listed);
    }
    __syncwarp();
    return __shfl_sync(WHOLE_WARP, bits, 0);
}

// The lengths of runs, whose only distance, 1, takes a bit. A barrier has to follow. Returns how
// many they are.
inline __device__ uint32_t one_distance(deflate_codes_arena &arena, uint32_t lane)
{
    if (lane == 0) {
        arena.distance[0] = 1;
    }
    return 1;
}

// The code of counted distances. Returns how many lengths its table has.
inline __device__ uint32_t make_distances(deflate_codes_arena &arena, const uint32_t *count,
                                          uint32_t *out_code, uint32_t lane)
{
    make_lengths(arena, count, PB_DEFLATE_DISTANCES, PB_DEFLATE_CODE_BITS, arena.distance, lane);
    make_codes(arena, arena.distance, PB_DEFLATE_DISTANCES, out_code, lane);
    const bool used = lane < PB_DEFLATE_DISTANCES && arena.distance[lane] > 0;
    const uint32_t mask = __ballot_sync(WHOLE_WARP, used);
    // A table has one length at least.
    return mask > 1 ? 32 - static_cast<uint32_t>(__clz(static_cast<int>(mask)))
                    : one_distance(arena, lane);
}
} // namespace pb_device

// By a warp; a barrier of the warp follows before the arena is used again. distances: those of the
// chunk; NULL: it has runs only.
inline __device__ void pb_deflate_codes(const pb_device::encode_chunk &chunk,
                                        const pb_deflate_sums &sums, pb_pairs_distances *distances,
                                        pb_device::deflate_codes_arena &arena, pb_deflate_code *out,
                                        uint32_t lane)
{
    using namespace pb_device;
    make_lengths(arena, sums.count, PB_DEFLATE_LITLEN, PB_DEFLATE_CODE_BITS, arena.length, lane);
    make_codes(arena, arena.length, PB_DEFLATE_LITLEN, out->code, lane);
    const uint32_t n_distances =
        distances != nullptr ? make_distances(arena, distances->count, distances->code, lane)
                             : one_distance(arena, lane);
    const uint32_t head = make_head(arena, n_distances, chunk.last, lane);
    uint32_t coded = 0; // below 2^16 * 14 * 2
    for (uint32_t s = lane; s < PB_DEFLATE_LITLEN; s += 32) {
        coded += sums.count[s] * (out->code[s] >> 16);
    }
    if (distances != nullptr && lane < PB_DEFLATE_DISTANCES) {
        coded += distances->count[lane] * (distances->code[lane] >> 16);
    }
    for (int d = 16; d > 0; d /= 2) {
        coded += __shfl_xor_sync(WHOLE_WARP, coded, d);
    }
    for (uint32_t i = lane; i < (head + 31) / 32; i += 32) {
        out->head[i] = arena.head[i];
    }
    const uint32_t bits = coded + sums.more + head;
    if (lane == 0) {
        out->head_bits = head;
        out->stored = bits >= 8 * chunk.bytes;
        out->bits = bits;
    }
}
#endif
