// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_INFLATE_ARENA_CUH
#define PB_INFLATE_ARENA_CUH
// The shared memory of a thread block that inflates, and what its threads know of the stream.
#include "kernels/codec/decode_device.h"

#include "kernels/codec/codec_group.cuh"

namespace pb_inflate
{
// WARPS of a block; a round decodes 32 * WARPS pieces of 32 * WORDS bits, and writes at most ROUND
// bytes, into a ring of the last RING bytes. WARM: bits before its piece at which a thread begins
// its first walk, to have found the start of a symbol when it gets there.
template <uint32_t WARPS_, uint32_t WORDS_, uint32_t RING_, uint32_t ROUND_, uint32_t WARM_>
struct shape {
    static constexpr uint32_t WARPS = WARPS_, THREADS = 32 * WARPS_, WORDS = WORDS_, RING = RING_,
                              ROUND = ROUND_, WARM = WARM_, LIST = THREADS * WORDS * 2 / 3;
    static_assert((RING & (RING - 1)) == 0 && RING <= 32768,
                  "a power of two, the longest distance of a match");
    static_assert(ROUND + 512 <= RING && ROUND <= 32767, "data older than the ring is in memory");
    static_assert(ROUND >= 34 * 258, "a thread's 32 bits fit");
    static_assert((LIST + THREADS - 1) / THREADS <= 32, "a bit for each of a thread's matches");
};

// What kernels use: four blocks on a multiprocessor of 228 KiB. On an H200, 500 streams: 46 GB/s of
// UInt16 that shrink to 0.67, 52 of Float32 (0.88), 53 of bytes (0.40), 27 of a real band (0.22). A
// ring of half the size with longer pieces makes 58 of Float32, but 21 of the real band.
typedef shape<PB_DECODE_THREADS / 32, 6, 32768, 24576, 192> standard;

constexpr uint32_t LITERAL_BITS = 11, DISTANCE_BITS = 9; // of codes that a table holds
constexpr uint32_t SYMBOLS = 288, DISTANCES = 32;

// A canonical code. limit[l]: the first 15-bit value, most significant bit first, whose code is
// longer than l bits; delta[l]: from such a code to its place in the list of symbols.
struct code {
    uint16_t limit[16], delta[16];
};

template <class SHAPE> struct alignas(16) arena {
    uint8_t ring[SHAPE::RING];
    uint32_t staged[SHAPE::THREADS * SHAPE::WORDS + 24]; // input of a round
    union {
        // For every 32 bits of a piece, where its first symbol starts: bytes made before it in the
        // piece << 6 | 32 | bit; 0: none does.
        uint32_t note[SHAPE::THREADS * SHAPE::WORDS];
        // Matches that wait for bytes of the same round.
        struct {
            uint32_t match[SHAPE::LIST];    // place in the round | fill << 15 | length << 16
            uint16_t distance[SHAPE::LIST]; // - 1. fill: all bytes are the one there
        };
    };
    uint32_t missing[SHAPE::ROUND / 32 + 2];     // a bit for each byte of the round
    uint32_t length_base[32], distance_base[32]; // value << 8 | extra bits
    uint32_t end[SHAPE::THREADS];                // of pieces
    uint16_t literal_table[1 << LITERAL_BITS], distance_table[1 << DISTANCE_BITS];
    // In tables and lists: symbol << 4 | bits. 0 in a table: the code is longer, or there is none.
    uint16_t literal_list[SYMBOLS + 2], distance_list[DISTANCES + 2];
    code literals, distances;
    uint8_t lengths[SYMBOLS + DISTANCES];
    uint32_t count[16];
    uint32_t warp_sum[SHAPE::WARPS], warp_stop[SHAPE::WARPS];
    uint32_t n_matches, status, used_bits; // from one thread or warp to all
    uint64_t adler_sum[2];
};
static_assert(sizeof(arena<standard>) == PB_DECODE_SHARED_BYTES,
              "plans for other GPUs know what fits on a multiprocessor");

// How a piece ends. STOP_ODD: at a symbol that deflate does not define; some libraries take it.
enum : uint32_t { GOES_ON, STOP_END, STOP_ODD };

// The same in all threads, but for the sums.
struct state {
    const uint4 *in; // from the 16-byte word with the stream's first byte
    uint32_t in_words;
    uint64_t at, end; // bits from there: read so far, the end of what is deflated
    uint8_t *out;
    uint32_t most, done, flushed;
    uint32_t written; // to where the ring was written, by rounds that were repeated, too
    uint32_t words;   // of 32 bits in a piece, <= SHAPE::WORDS
    uint32_t blocks;  // that began
    uint32_t rounds;
    bool fixed;             // the tables are those of the fixed code
    uint64_t codes_at;      // bit where the codes begin that the tables were made of
    uint32_t codes_bits;    // count of their bits; 0 = no such codes
    uint64_t sum, weighted; // of this thread's bytes; times their places
    uint32_t *progress;
};

// Bits [at, at + 128 * n) into `staged`, zeros after the end. Returns where the first one is there.
template <class SHAPE, class GROUP>
__device__ __forceinline__ uint32_t bring(const GROUP &group, arena<SHAPE> &mine, const state &s,
                                          uint64_t at, uint32_t words)
{
    const uint32_t first = static_cast<uint32_t>(at >> 7),
                   n = min((words + 3) / 4 + 1, static_cast<uint32_t>(sizeof mine.staged / 16));
    group.sync();
    for (uint32_t i = group.thread; i < n; i += SHAPE::THREADS) {
        uint4 word = {0, 0, 0, 0};
        if (first + i < s.in_words) {
            word = s.in[first + i];
        }
        reinterpret_cast<uint4 *>(mine.staged)[i] = word;
    }
    group.sync();
    return static_cast<uint32_t>(at & 127);
}

// 32 staged bits.
template <class SHAPE>
__device__ __forceinline__ uint32_t peek(const arena<SHAPE> &mine, uint32_t at)
{
    return __funnelshift_r(mine.staged[at >> 5], mine.staged[(at >> 5) + 1], at & 31);
}
} // namespace pb_inflate
#endif
