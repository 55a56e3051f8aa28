// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_INFLATE_CUH
#define PB_INFLATE_CUH
// Inflate, one thread block a stream. Few streams are at hand (a scene has some 500 blocks), so the
// threads of a block share one. A round takes as many pieces of the bit stream as there are
// threads.
//   1 Every thread walks over its piece from a guessed start and counts the bytes it makes. For
//     every 32 bits it notes the first symbol that starts there and the bytes before it.
//   2 Threads whose start is not where the piece before ends walk again from there, until they meet
//     a noted symbol.
//   3 Sums of bytes give every piece its place. The pieces are decoded once more, and written:
//     literals, and short matches that read what was there before the round. Other matches are put
//     on a list, and their bytes marked as missing.
//   4 Matches whose source misses nothing are copied, until the list is empty.
// A round that makes more than fits is repeated with less: what it writes is the same. No symbols
// are stored between the passes; a list of them took more time than to decode again.
#include "kernels/codec/inflate_round.cuh"

namespace pb_inflate
{
// The symbols of a block.
template <class SHAPE, class GROUP>
__device__ uint32_t symbols(const GROUP &group, arena<SHAPE> &mine, state &s,
                            const pb_codec_watch &watch)
{
    const uint64_t begin = s.at;
    const uint32_t first_round = s.rounds + 1;
    uint32_t pieces = SHAPE::THREADS, status = PB_DECODED;
    bool end = false;
    while (status == PB_DECODED && !end) {
        // Each round but those of which less is tried takes bits; each try halves one of two small
        // numbers.
        if (s.rounds++ % 8 == 0) {
            if (group.thread == 0) {
                mine.status = watch.look();
            }
            group.sync();
            status = mine.status;
        }
        if (status == PB_DECODED) {
            status = round_of(group, mine, s, &pieces, &end);
        }
    }
    const auto words = static_cast<uint32_t>((s.at - begin) / (32 * SHAPE::THREADS)) + 1;
    if (s.rounds == first_round && 4 * words <= SHAPE::WORDS) {
        s.words = words; // a short block: more threads get a piece of one like it
    }
    return status;
}

// A stored block.
template <class SHAPE, class GROUP>
__device__ uint32_t stored(const GROUP &group, arena<SHAPE> &mine, state &s)
{
    s.at = (s.at + 7) & ~static_cast<uint64_t>(7);
    if (s.at + 32 > s.end) {
        return PB_DECODE_BAD;
    }
    const uint32_t word = peek(mine, bring(group, mine, s, s.at, 4)), n = word & 0xffff;
    s.at += 32;
    if ((word >> 16 ^ 0xffff) != n) {
        return PB_DECODE_BAD;
    }
    if (n > s.most - s.done) {
        return PB_DECODE_LONG;
    }
    if (s.at + 8ull * n > s.end) {
        return PB_DECODE_BAD;
    }
    const uint8_t *from = reinterpret_cast<const uint8_t *>(s.in) + s.at / 8;
    for (uint32_t left = n; left > 0;) {
        const uint32_t k = min(left, SHAPE::RING / 4);
        for (uint32_t i = group.thread; i < k; i += SHAPE::THREADS) {
            mine.ring[(s.done + i) & (SHAPE::RING - 1)] = from[i];
        }
        s.done += k;
        from += k;
        left -= k;
        flush(group, mine, s, false);
    }
    s.written = max(s.written, s.done);
    s.at += 8ull * n;
    return PB_DECODED;
}

// True if the codes of a block whose head was staged with them at `at` are those of the tables:
// encoders that alternate blocks of one code with stored blocks repeat it.
template <class SHAPE, class GROUP>
__device__ bool has_equal_codes(const GROUP &group, const arena<SHAPE> &mine, const state &s,
                                uint32_t at)
{
    if (s.codes_bits == 0 || s.at + s.codes_bits > s.end) {
        return false;
    }
    const auto *const words = reinterpret_cast<const uint32_t *>(s.in) + (s.codes_at >> 5);
    const auto shift = static_cast<uint32_t>(s.codes_at & 31);
    bool differs = false;
    for (uint32_t i = group.thread; 32 * i < s.codes_bits; i += SHAPE::THREADS) {
        const uint32_t high = shift > 0 ? words[i + 1] : 0;
        const uint32_t bits = min(s.codes_bits - 32 * i, 32u);
        const uint32_t other = peek(mine, at + 32 * i) ^ __funnelshift_r(words[i], high, shift);
        differs = differs || other << (32 - bits) != 0;
    }
    return !group.any(differs);
}

// A block of any kind. *out_last: the stream says it is the last.
template <class SHAPE, class GROUP>
__device__ uint32_t block(const GROUP &group, arena<SHAPE> &mine, state &s,
                          const pb_codec_watch &watch, bool *out_last)
{
    if (s.at + 3 > s.end) {
        return PB_DECODE_BAD;
    }
    // Encoders make blocks of some thousand bytes; a stream of tiny ones would take the device
    // long.
    if (++s.blocks > 64 + (s.end >> 8)) {
        return PB_DECODE_HOST;
    }
    const uint32_t head = bring(group, mine, s, s.at, 200), word = peek(mine, head);
    const uint32_t type = word >> 1 & 3;
    *out_last = (word & 1) != 0;
    s.at += 3;
    if (type == 0) {
        return stored(group, mine, s);
    }
    if (type == 3) {
        return PB_DECODE_BAD;
    }
    if (type == 2 && has_equal_codes(group, mine, s, head + 3)) {
        s.at += s.codes_bits;
    } else if (type == 2 || !s.fixed) {
        uint32_t used = 0;
        const uint32_t status = make_tables(group, mine, type == 1, head + 3, &used);
        s.fixed = type == 1;
        if (status != PB_DECODED) {
            return status;
        }
        s.codes_at = s.at;
        s.codes_bits = type == 2 ? used : 0;
        s.at += used;
    }
    return symbols(group, mine, s, watch);
}

// Length codes 257 to 285 and distance codes: RFC 1951, 3.2.5.
__device__ __forceinline__ uint32_t length_base(uint32_t i)
{
    const uint32_t extra = i < 8 || i >= 28 ? 0 : (i - 4) / 4;
    const uint32_t base = i < 8 ? i + 3 : i >= 28 ? 258 : ((4 + i % 4) << extra) + 3;
    return base << 8 | extra;
}
__device__ __forceinline__ uint32_t distance_base(uint32_t i)
{
    const uint32_t extra = i < 4 || i >= 30 ? 0 : i / 2 - 1;
    const uint32_t base = i < 2 ? i + 1 : ((2 + i % 2) << extra) + 1;
    return base << 8 | extra;
}

template <class SHAPE, class GROUP>
__device__ void start(const GROUP &group, arena<SHAPE> &mine, const pb_decode_stream &stream,
                      uint32_t *progress, state &s)
{
    const uint32_t skew = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream.in) & 15);
    s = state();
    s.in = reinterpret_cast<const uint4 *>(stream.in - skew);
    s.in_words = static_cast<uint32_t>((static_cast<uint64_t>(skew) + stream.in_bytes + 15) / 16);
    s.at = 8ull * skew;
    s.end = s.at + 8ull * stream.in_bytes;
    s.out = stream.out;
    s.most = stream.most;
    s.words = SHAPE::WORDS;
    s.progress = progress;
    for (uint32_t i = group.thread; i < sizeof mine.missing / 4; i += SHAPE::THREADS) {
        mine.missing[i] = 0;
    }
    if (group.thread < 32) {
        mine.length_base[group.thread] = length_base(group.thread);
        mine.distance_base[group.thread] = distance_base(group.thread);
    }
}

// Whether a zlib stream begins so.
__device__ __forceinline__ bool is_zlib(uint32_t word)
{
    const uint32_t head = (word & 255) << 8 | (word >> 8 & 255);
    return head % 31 == 0 && (head >> 8 & 15) == 8 && head >> 12 <= 7 && (head & 32) == 0;
}

// One zlib stream, by all threads of the group, SHAPE::THREADS of them. Returns an enum
// pb_decode_status, the same in all; *out_bytes: what was made.
template <class SHAPE, class GROUP>
__device__ uint32_t run(const GROUP &group, arena<SHAPE> &mine, const pb_decode_stream &stream,
                        uint32_t *progress, const pb_codec_watch &watch, uint32_t *out_bytes)
{
    state s;
    start(group, mine, stream, progress, s);
    if (stream.in_bytes < 6 || !is_zlib(peek(mine, bring(group, mine, s, s.at, 4)))) {
        return PB_DECODE_BAD;
    }
    s.at += 16;
    s.end -= 32; // the Adler-32 follows; padding may
    uint32_t status = PB_DECODED;
    for (bool last = false; !last && status == PB_DECODED;) {
        status = block(group, mine, s, watch, &last);
    }
    flush(group, mine, s, true);
    if (status != PB_DECODED) {
        return status;
    }
    const uint64_t at = (s.at + 7) & ~static_cast<uint64_t>(7);
    if (at > s.end) {
        return PB_DECODE_BAD;
    }
    const uint32_t stored_sum = __byte_perm(peek(mine, bring(group, mine, s, at, 4)), 0, 0x0123);
    if (stored_sum != adler(group, mine, s)) {
        return PB_DECODE_BAD;
    }
    *out_bytes = s.done;
    return s.done < stream.least ? PB_DECODE_SHORT : PB_DECODED;
}
} // namespace pb_inflate
#endif
