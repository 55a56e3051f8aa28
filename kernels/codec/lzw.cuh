// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_LZW_CUH
#define PB_LZW_CUH
// TIFF's LZW, one thread block a stream: codes of 9 to 12 bits, most significant bit first, one
// wider a code early; 256 clears the table, 257 ends. Files from before TIFF 5 are left to the
// host.
//
// The widths change at known counts after a clear, so the place of every code of a segment (from
// clear to clear) is arithmetic, and its end is found by a look at all of them.
//   1 All codes of the segment are taken out of the bits. Code k adds the string 258 + k: that of
//     code k and the byte after it.
//   2 A code 258 + j stands for the string of code j and the first byte of code j + 1. The lengths
//     and the first bytes of strings follow by pointer jumping: word k holds a code whose string
//     begins that of code k, and how many bytes more this one has. A word is read and written
//     whole, and each that was ever stored is true, so threads need not wait for each other inside
//     a round.
//   3 Sums of lengths are places in the output.
//   4 Every string is written from its end: its last byte is the first one of a code that is known.
//     No string waits for another.
#include "kernels/codec/decode_device.h"

#include "kernels/codec/codec_group.cuh"

namespace pb_lzw
{
constexpr uint32_t CLEAR = 256, END = 257, FIRST = 258;
constexpr uint32_t TABLE = 4096 - FIRST;        // strings that it takes
constexpr uint32_t OVERRUN = 1023;              // codes after it is full, as the host allows
constexpr uint32_t CODES = TABLE + 1 + OVERRUN; // of a segment, the first adds nothing
constexpr uint32_t NONE = 0xffffffff;

template <uint32_t THREADS_> struct shape {
    static constexpr uint32_t THREADS = THREADS_, WARPS = THREADS_ / 32,
                              EACH = (CODES + THREADS_ - 1) / THREADS_;
};

typedef shape<PB_DECODE_THREADS> standard; // what kernels use

template <class SHAPE> struct alignas(16) arena {
    // A code that begins the string, below 256 or an earlier code's number + 258; << 16: the bytes
    // beyond it.
    uint32_t word[CODES + 1];
    uint32_t place[CODES + 1]; // in the segment's output
    uint16_t code[CODES + 1];
    uint8_t first[CODES + 1];
    uint32_t warp_sum[SHAPE::WARPS], stop, kind, status;
};

// Where code k of a segment begins, in bits from its start; and its width.
__device__ __forceinline__ uint32_t width_of(uint32_t k)
{
    return k < 254 ? 9 : k < 766 ? 10 : k < 1790 ? 11 : 12;
}
__device__ __forceinline__ uint32_t begin_of(uint32_t k)
{
    return k < 254    ? 9 * k
           : k < 766  ? 254 * 9 + 10 * (k - 254)
           : k < 1790 ? 254 * 9 + 512 * 10 + 11 * (k - 766)
                      : 254 * 9 + 512 * 10 + 1024 * 11 + 12 * (k - 1790);
}

// The same in all threads.
struct state {
    const uint8_t *in;
    uint64_t at, end; // bits
    uint8_t *out;
    uint32_t least, most, done;
};

// Up to 12 bits from bit `at`, which lie in the stream: three bytes hold them.
__device__ __forceinline__ uint32_t bits_at(const state &s, uint64_t at, uint32_t width)
{
    const uint64_t byte = at >> 3, last = (s.end >> 3) - 1;
    const uint32_t a = s.in[byte], b = byte < last ? s.in[byte + 1] : 0,
                   c = byte + 1 < last ? s.in[byte + 2] : 0;
    return (a << 16 | b << 8 | c) >> (24 - width - (at & 7)) & ((1u << width) - 1);
}

// What follows the last pixel may be padding: less than two bytes, or zeros.
template <class SHAPE, class GROUP>
__device__ bool is_padding(const GROUP &group, const state &s, uint64_t at)
{
    if (s.end - at < 16) {
        return true;
    }
    uint64_t byte = at >> 3;
    bool other = false;
    if ((at & 7) != 0) {
        other = (s.in[byte++] & ((1u << (8 - (at & 7))) - 1)) != 0;
    }
    for (uint64_t i = byte + group.thread; i < s.end >> 3 && !other; i += SHAPE::THREADS) {
        other = s.in[i] != 0;
    }
    return !group.any(other);
}

// Step 1. What ends the segment: a code or the stream's end, at mine.stop; a code that cannot be
// there is an end, too.
enum : uint32_t { BY_CLEAR, BY_END, BY_WRONG, BY_OVERRUN };

template <class SHAPE, class GROUP>
__device__ void take_codes(const GROUP &group, arena<SHAPE> &mine, const state &s)
{
    if (group.thread == 0) {
        mine.stop = CODES;
    }
    group.sync();
    uint32_t stop = CODES;
    for (uint32_t k = group.thread; k <= CODES && k < stop; k += SHAPE::THREADS) {
        const uint64_t at = s.at + begin_of(k);
        const uint32_t width = width_of(k),
                       code = at + width <= s.end ? bits_at(s, at, width) : END;
        mine.code[k] = static_cast<uint16_t>(code);
        if (code == CLEAR || code == END || (code >= FIRST && code - FIRST >= k)) {
            stop = k;
        }
    }
    atomicMin(&mine.stop, stop);
    group.sync();
    if (group.thread == 0) {
        const uint32_t code = mine.code[mine.stop];
        mine.kind = code == CLEAR                                ? BY_CLEAR
                    : code == END                                ? BY_END
                    : mine.stop == CODES && code < FIRST + TABLE ? BY_OVERRUN
                                                                 : BY_WRONG;
    }
    group.sync();
}

// Step 2, of n codes.
template <class SHAPE, class GROUP>
__device__ void link_strings(const GROUP &group, arena<SHAPE> &mine, uint32_t n)
{
    volatile uint32_t *const word = mine.word;
    for (uint32_t k = group.thread; k < n; k += SHAPE::THREADS) {
        const uint32_t code = mine.code[k];
        word[k] = code;
    }
    group.sync();
    // A code j is a string of FIRST + j without its last byte. Chains halve in each round: 13 do.
    for (uint32_t round = 0; round < 14; round++) {
        bool open = false;
        for (uint32_t k = group.thread; k < n; k += SHAPE::THREADS) {
            const uint32_t mine_word = word[k], begins = mine_word & 0xffff;
            if (begins >= FIRST) {
                const uint32_t other = word[begins - FIRST];
                const uint32_t next = (other & 0xffff) | ((mine_word >> 16) + (other >> 16) + 1)
                                                             << 16;
                word[k] = next;
                open = open || (next & 0xffff) >= FIRST;
            }
        }
        if (!group.any(open)) {
            break;
        }
    }
    for (uint32_t k = group.thread; k < n; k += SHAPE::THREADS) {
        mine.first[k] = static_cast<uint8_t>(word[k]);
    }
    group.sync();
}

// Step 3: mine.place of n codes, and of the end. Each thread takes EACH codes side by side.
template <class SHAPE, class GROUP>
__device__ uint64_t find_places(const GROUP &group, arena<SHAPE> &mine, uint32_t n)
{
    const uint32_t t = group.thread, lane = t % 32, from = t * SHAPE::EACH,
                   to = min(from + SHAPE::EACH, n);
    uint32_t bytes = 0; // at most CODES * TABLE / 2 in all: 10 MB
    for (uint32_t k = from; k < to; k++) {
        bytes += (mine.word[k] >> 16) + 1;
    }
    uint32_t sum = bytes;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t up = __shfl_up_sync(~0u, sum, d);
        sum += lane >= d ? up : 0;
    }
    if (lane == 31) {
        mine.warp_sum[t / 32] = sum;
    }
    group.sync();
    uint32_t all = 0;
#pragma unroll
    for (uint32_t i = 0; i < SHAPE::WARPS; i++) {
        sum += i < t / 32 ? mine.warp_sum[i] : 0;
        all += mine.warp_sum[i];
    }
    uint32_t place = sum - bytes;
    for (uint32_t k = from; k < to; k++) {
        mine.place[k] = place;
        place += (mine.word[k] >> 16) + 1;
    }
    if (t == 0) {
        mine.place[n] = all;
    }
    group.sync();
    return all;
}

// Step 4, of code k: from its end. Its string is that of code j and the first byte of code j + 1.
template <class SHAPE>
__device__ __forceinline__ void write_string(const arena<SHAPE> &mine, uint8_t *out, uint32_t k)
{
    uint32_t code = mine.code[k], at = mine.place[k + 1];
    while (code >= FIRST) { // each string is shorter by one
        out[--at] = mine.first[code - FIRST + 1];
        code = mine.code[code - FIRST];
    }
    out[--at] = static_cast<uint8_t>(code);
}

// One segment. Returns a status, and in *out_end whether it is the last one.
template <class SHAPE, class GROUP>
__device__ uint32_t segment(const GROUP &group, arena<SHAPE> &mine, state &s, bool *out_end)
{
    take_codes(group, mine, s);
    uint32_t n = mine.stop, kind = mine.kind;
    link_strings(group, mine, n);
    const uint64_t bytes = find_places(group, mine, n);
    const uint32_t room = s.most - s.done;
    if (bytes > room || bytes == room) {
        // The first code after the last pixel: padding, or one too many.
        uint32_t low = 0, high = n;
        while (low < high) {
            const uint32_t k = (low + high) / 2;
            if (mine.place[k] < room) {
                low = k + 1;
            } else {
                high = k;
            }
        }
        const bool exact = mine.place[low] == room;
        const uint64_t at = s.at + begin_of(low);
        if (exact && (at >= s.end || is_padding<SHAPE>(group, s, at))) {
            kind = BY_END;
            n = low;
        } else if (bytes > room) {
            return PB_DECODE_LONG;
        }
    }
    if (kind == BY_WRONG || kind == BY_OVERRUN) {
        return PB_DECODE_BAD;
    }
    const uint32_t made = mine.place[n];
    for (uint32_t k = group.thread; k < n; k += SHAPE::THREADS) {
        write_string(mine, s.out + s.done, k);
    }
    group.sync();
    s.done += made;
    s.at += begin_of(n) + width_of(n); // the clear
    *out_end = kind == BY_END;
    return PB_DECODED;
}

// One stream, by all threads of the group, SHAPE::THREADS of them. Returns an enum
// pb_decode_status, the same in all; *out_bytes: what was made.
template <class SHAPE, class GROUP>
__device__ uint32_t run(const GROUP &group, arena<SHAPE> &mine, const pb_decode_stream &stream,
                        uint32_t *progress, const pb_codec_watch &watch, uint32_t *out_bytes)
{
    state s;
    s.in = stream.in;
    s.at = 0;
    s.end = 8ull * stream.in_bytes;
    s.out = stream.out;
    s.least = stream.least;
    s.most = stream.most;
    s.done = 0;
    if (stream.in_bytes >= 2 && s.in[0] == 0 && (s.in[1] & 1) != 0) {
        return PB_DECODE_HOST;
    }
    uint32_t status = PB_DECODED;
    bool end = false;
    // Each segment takes a code; encoders clear when the table is full.
    for (uint32_t segments = 0; status == PB_DECODED && !end; segments++) {
        if (segments > 64 + stream.in_bytes / 128) {
            return PB_DECODE_HOST; // many small ones would take the device long
        }
        if (segments % 4 == 0) {
            if (group.thread == 0) {
                mine.status = watch.look();
            }
            group.sync();
            status = mine.status;
        }
        if (status == PB_DECODED) {
            status = segment(group, mine, s, &end);
        }
        if (progress != nullptr && group.thread == 0) {
            pb_codec_post(progress, s.done);
        }
    }
    *out_bytes = s.done;
    if (status == PB_DECODED && s.done < s.least) {
        return PB_DECODE_SHORT;
    }
    return status;
}
} // namespace pb_lzw
#endif
