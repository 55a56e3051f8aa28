// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_PACK_CUH
#define PB_DEFLATE_PACK_CUH
// The bits of a chunk, to where they belong. Each thread finds how many bits its part takes, a scan
// says where they go, then they are written into words in shared memory, which leave for the output
// side by side. A piece whose bits exceed that memory is written in several turns. The last bits of
// a piece that fill no word wait for the next one; the first and the last word of a chunk belong to
// its neighbours as well, and are added to what is there.
#include "kernels/codec/deflate_place.cuh"
#include "kernels/codec/deflate_symbols.cuh"

namespace pb_device
{
template <uint32_t THREADS> struct deflate_pack_arena {
    static constexpr uint32_t WORDS = THREADS * PART / 4 + PB_DEFLATE_HEAD_WORDS;
    deflate_piece<THREADS> piece;
    uint32_t code[PB_DEFLATE_SYMBOLS];
    uint32_t warp_bits[THREADS / 32];
    uint32_t held; // the bits of a piece that fill no word
    uint32_t word[WORDS];
};

// The bits of a thread, into the words [from, from + WORDS) of the piece. Whole words are its own,
// the first and the last one it shares.
template <uint32_t WORDS> struct bits_out {
    uint32_t *words;
    uint32_t from, at, n;
    uint64_t held;
    bool shares;

    __device__ bits_out(uint32_t *to, uint32_t first_word, uint32_t bit)
        : words(to), from(first_word), at(bit / 32), n(bit % 32), held(0), shares(bit % 32 > 0)
    {
    }
    __device__ __forceinline__ void put(uint32_t value, uint32_t bits) // bits <= 32
    {
        held |= static_cast<uint64_t>(value) << n;
        n += bits;
        if (n < 32) {
            return;
        }
        if (at - from < WORDS) {
            if (shares) {
                atomicOr(&words[at - from], static_cast<uint32_t>(held));
            } else {
                words[at - from] = static_cast<uint32_t>(held);
            }
        }
        shares = false;
        at++;
        held >>= 32;
        n -= 32;
    }
    __device__ void end()
    {
        if (n > 0 && at - from < WORDS) {
            atomicOr(&words[at - from], static_cast<uint32_t>(held));
        }
    }
};

// Counts the bits that a thread puts.
struct bits_counted {
    uint32_t bits = 0;
    __device__ __forceinline__ void put(uint32_t, uint32_t n)
    {
        bits += n;
    }
};

// What a thread does with the symbols of its part: their bits go to `bits`.
template <class Bits> struct symbol_bits {
    const uint32_t *code;
    Bits &bits;

    __device__ __forceinline__ void literals(uint32_t word) // codes are joined in pairs
    {
        const uint32_t a = code[word & 255], b = code[word >> 8 & 255];
        const uint32_t c = code[word >> 16 & 255], d = code[word >> 24];
        bits.put((a & 0xffff) | (b & 0xffff) << (a >> 16), (a >> 16) + (b >> 16));
        bits.put((c & 0xffff) | (d & 0xffff) << (c >> 16), (c >> 16) + (d >> 16));
    }
    __device__ __forceinline__ void mixed(uint32_t word, uint32_t runs, uint32_t match,
                                          uint32_t length)
    {
        uint32_t extra_bits, extra;
        const uint32_t a = code[pb_deflate_length_symbol(length, &extra_bits, &extra)];
        const uint32_t match_value = (a & 0xffff) | extra << (a >> 16);
        const uint32_t match_bits = (a >> 16) + extra_bits + 1; // distance 1: a 0
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) { // selects, so that threads stay in step
            const uint32_t b = (runs >> i & 1) == 0 ? code[word >> (8 * i) & 255] : 0;
            bits.put(i == match ? match_value : b & 0xffff, i == match ? match_bits : b >> 16);
        }
    }
};

template <uint32_t THREADS, class Bits>
__device__ __forceinline__ void put_symbols(const deflate_pack_arena<THREADS> &arena,
                                            const part_symbols &symbols, uint32_t thread,
                                            Bits &bits)
{
    symbols.visit(arena.piece, thread, symbol_bits<Bits>{arena.code, bits});
}

// Where a piece goes: bit `bit` of the words from `base` on.
struct piece_out {
    uint32_t *base;
    uint32_t bit;
};

// The thread's first bit, and in *out_all those of the group.
template <uint32_t THREADS, class Group>
__device__ uint32_t scan_bits(deflate_pack_arena<THREADS> &arena, uint32_t bits, uint32_t *out_all,
                              const Group &group)
{
    const uint32_t lane = group.thread % 32, warp = group.thread / 32;
    uint32_t sum = bits, all = 0;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t up = __shfl_up_sync(ALL_LANES, sum, d);
        sum += lane >= d ? up : 0;
    }
    if (lane == 31) {
        arena.warp_bits[warp] = sum;
    }
    group.sync();
    for (uint32_t i = 0; i < THREADS / 32; i++) {
        sum += i < warp ? arena.warp_bits[i] : 0;
        all += arena.warp_bits[i];
    }
    *out_all = all;
    return sum - bits;
}

// Those of the piece's n whole words that lie in [from, from + WORDS) leave. first_shared: word 0
// is also another chunk's.
template <uint32_t THREADS, class Group>
__device__ void flush_words(deflate_pack_arena<THREADS> &arena, uint32_t *base, uint32_t from,
                            uint32_t n, bool first_shared, const Group &group)
{
    constexpr uint32_t WORDS = deflate_pack_arena<THREADS>::WORDS;
    for (uint32_t i = group.thread; i < WORDS && from + i < n; i += THREADS) {
        if (from + i == 0 && first_shared) {
            atomicOr(base, arena.word[0]);
        } else {
            base[from + i] = arena.word[i];
        }
    }
}

// The table of the chunk, into the words.
template <uint32_t THREADS, class Group>
__device__ void put_head(deflate_pack_arena<THREADS> &arena, const pb_deflate_code &code,
                         uint32_t bit, const Group &group)
{
    static_assert(deflate_pack_arena<THREADS>::WORDS > PB_DEFLATE_HEAD_WORDS + 1, "in one turn");
    for (uint32_t i = group.thread; i < (code.head_bits + 31) / 32; i += THREADS) {
        const uint64_t v = static_cast<uint64_t>(code.head[i]) << (bit % 32);
        atomicOr(&arena.word[bit / 32 + i], static_cast<uint32_t>(v));
        if (v >> 32 != 0) {
            atomicOr(&arena.word[bit / 32 + i + 1], static_cast<uint32_t>(v >> 32));
        }
    }
}

struct piece_task {
    const encode_chunk &chunk;
    const pb_deflate_code &code;
    uint32_t adler;
    uint32_t from; // of the chunk's bytes
    bool ends;     // the chunk
};

// Bits behind the last symbol: in the last chunk up to a whole byte, and the checksum, most
// significant byte first.
template <class Bits> __device__ void put_end(const piece_task &task, uint32_t bit, Bits &bits)
{
    if (task.chunk.last) {
        bits.put(0, (0 - bit) & 7);
        for (uint32_t k = 0; k < ADLER_BYTES; k++) {
            bits.put(task.adler >> (24 - 8 * k) & 255, 8);
        }
    }
}

// Returns where the next piece goes.
template <uint32_t THREADS, class Group>
__device__ piece_out pack_piece(deflate_pack_arena<THREADS> &arena, const piece_task &task,
                                piece_out out, const part_symbols &symbols, const Group &group)
{
    constexpr uint32_t WORDS = deflate_pack_arena<THREADS>::WORDS;
    const bool begins = task.from == 0, ends_here = task.ends && group.thread == THREADS - 1;
    const uint32_t end_code = arena.code[PB_DEFLATE_END];
    const uint32_t head = begins ? task.code.head_bits : 0;
    bits_counted counted;
    put_symbols(arena, symbols, group.thread, counted);
    if (ends_here) {
        counted.put(0, end_code >> 16);
    }
    uint32_t all;
    const uint32_t first = out.bit + head + scan_bits(arena, counted.bits, &all, group);
    bits_counted behind;
    if (task.ends) {
        put_end(task, out.bit + head + all, behind);
    }
    const uint32_t end = out.bit + head + all + behind.bits;
    for (uint32_t from = 0; from == 0 || from < (end + 31) / 32; from += WORDS) {
        for (uint32_t i = group.thread; i < WORDS && from + i <= end / 32; i += THREADS) {
            arena.word[i] = from + i == 0 && !begins ? arena.held : 0;
        }
        group.sync();
        if (begins && from == 0) {
            put_head(arena, task.code, out.bit, group);
        }
        bits_out<WORDS> bits(arena.word, from, first);
        put_symbols(arena, symbols, group.thread, bits);
        if (ends_here) {
            bits.put(end_code & 0xffff, end_code >> 16);
            put_end(task, first + counted.bits, bits);
        }
        bits.end();
        group.sync();
        flush_words(arena, out.base, from, end / 32, begins && out.bit > 0, group);
        const uint32_t rest = end / 32 - from; // the word that is not full
        if (group.thread == 0 && rest < WORDS && end % 32 > 0) {
            if (task.ends) {
                atomicOr(&out.base[end / 32], arena.word[rest]);
            } else {
                arena.held = arena.word[rest];
            }
        }
        group.sync();
    }
    if (group.thread == 0 && end % 32 == 0) {
        arena.held = 0; // read behind the barrier that follows the next piece's load
    }
    return {out.base + end / 32, end % 32};
}

// A chunk that is stored; whole words of it are copied.
template <uint32_t THREADS, class Group>
__device__ void put_stored(const piece_task &task, uint8_t *out, const Group &group)
{
    const encode_chunk &chunk = task.chunk;
    const uint64_t at = task.code.at, head = (at + 3 + 7) / 8;
    auto *const words = reinterpret_cast<uint32_t *>(out);
    const uint32_t n = chunk.bytes + 4 + (chunk.last ? ADLER_BYTES : 0);
    const auto byte_at = [&](uint32_t i) -> uint32_t { // behind the three bits
        if (i < 4) {
            return (i < 2 ? chunk.bytes : ~chunk.bytes) >> (8 * (i % 2)) & 255;
        }
        return i - 4 < chunk.bytes ? chunk.in[i - 4]
                                   : task.adler >> (24 - 8 * (i - 4 - chunk.bytes)) & 255;
    };
    if (group.thread == 0) {
        atomicOr(&words[at / 32], (chunk.last ? 1u : 0u) << (at % 32));
    }
    const uint64_t first = head / 4, end = (head + n + 3) / 4;
    for (uint64_t w = first + group.thread; w < end; w += THREADS) {
        uint32_t value = 0;
        for (uint32_t k = 0; k < 4; k++) {
            const uint64_t p = 4 * w + k;
            if (p >= head && p < head + n) {
                value |= byte_at(static_cast<uint32_t>(p - head)) << (8 * k);
            }
        }
        if (w == at / 32 || 4 * w + 4 > head + n) {
            atomicOr(&words[w], value);
        } else {
            words[w] = value;
        }
    }
}
} // namespace pb_device

// Every thread of the group calls it; a barrier follows before the arena is used again.
template <uint32_t THREADS, class Group>
__device__ void pb_deflate_pack(const pb_encode_view &view, uint32_t index,
                                pb_device::deflate_pack_arena<THREADS> &arena, const Group &group)
{
    using namespace pb_device;
    constexpr uint32_t BYTES = deflate_piece<THREADS>::BYTES;
    const encode_chunk chunk = chunk_of(view, index);
    const pb_deflate_code &code = view.code[index];
    const uint32_t adler = view.batch.encoded[chunk.block].adler;
    if (code.stored != 0) {
        put_stored<THREADS>({chunk, code, adler, 0, true}, view.batch.out, group);
        return;
    }
    for (uint32_t i = group.thread; i < PB_DEFLATE_SYMBOLS; i += THREADS) {
        arena.code[i] = code.code[i];
    }
    auto *const words = reinterpret_cast<uint32_t *>(view.batch.out);
    piece_out out = {words + code.at / 32, static_cast<uint32_t>(code.at % 32)};
    deflate_carry carry;
    for (uint32_t from = 0; from < chunk.bytes; from += BYTES) {
        const part_symbols symbols = take_piece(arena.piece, chunk, from, &carry, group);
        const bool ends = from + BYTES >= chunk.bytes;
        out = pack_piece(arena, {chunk, code, adler, from, ends}, out, symbols, group);
    }
}
#endif
