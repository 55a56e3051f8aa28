// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_PACK_CUH
#define PB_DEFLATE_PACK_CUH
// The bits of a chunk, to their place. Each thread finds how many bits its part takes, a scan gives
// their places, then they are written into words in shared memory, which are copied to the output
// side by side. A piece whose bits exceed that memory is written in several turns. The last bits of
// a piece that fill no word wait for the next one; words that a chunk shares with its neighbours
// are cleared before, and its bits are added.
#include "kernels/codec/deflate_place.cuh"
#include "kernels/codec/deflate_symbols.cuh"

namespace pb_device
{
// Shared memory of a group that packs pieces.
template <class P> struct deflate_pack {
    using Piece = P;
    static constexpr uint32_t WORDS = P::BYTES / 4 + PB_DEFLATE_HEAD_WORDS;
    P piece;
    uint32_t warp_bits[P::WARPS];
    uint32_t held; // the bits of a piece that fill no word
    uint32_t word[WORDS];
};

template <uint32_t THREADS> struct deflate_pack_arena {
    deflate_pack<chunk_piece<THREADS>> pack;
    uint32_t code[PB_DEFLATE_ALL_SYMBOLS];
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

// Where a piece goes: bit `bit` of the words from `base` on.
struct piece_out {
    uint32_t *base;
    uint32_t bit;
    bool shared; // word 0 has bits of another chunk as well
    bool held;   // the bits before `bit` are held by the pack
};

// The thread's first bit, and in *out_all those of the group.
template <class Pack, class Group>
__device__ uint32_t scan_bits(Pack &pack, uint32_t bits, uint32_t *out_all, const Group &group)
{
    const uint32_t lane = group.thread % 32, warp = group.thread / 32;
    uint32_t sum = bits, all = 0;
    for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t up = __shfl_up_sync(ALL_LANES, sum, d);
        sum += lane >= d ? up : 0;
    }
    if (lane == 31) {
        pack.warp_bits[warp] = sum;
    }
    group.sync();
    for (uint32_t i = 0; i < Pack::Piece::WARPS; i++) {
        sum += i < warp ? pack.warp_bits[i] : 0;
        all += pack.warp_bits[i];
    }
    *out_all = all;
    return sum - bits;
}

// Copies the piece's whole words from `from` on, at most WORDS of them, and none from n on.
template <class Pack, class Group>
__device__ void flush_words(const Pack &pack, const piece_out &out, uint32_t from, uint32_t n,
                            const Group &group)
{
    for (uint32_t i = group.thread; i < Pack::WORDS && from + i < n; i += Pack::Piece::THREADS) {
        if (from + i == 0 && out.shared) {
            atomicOr(out.base, pack.word[0]);
        } else {
            out.base[from + i] = pack.word[i];
        }
    }
}

// The table of the code, into the words.
template <class Pack, class Group>
__device__ void put_head(Pack &pack, const pb_deflate_code &code, uint32_t bit, const Group &group)
{
    static_assert(Pack::WORDS > PB_DEFLATE_HEAD_WORDS + 1, "in one turn");
    for (uint32_t i = group.thread; i < (code.head_bits + 31) / 32; i += Pack::Piece::THREADS) {
        const uint64_t v = static_cast<uint64_t>(code.head[i]) << (bit % 32);
        atomicOr(&pack.word[bit / 32 + i], static_cast<uint32_t>(v));
        if (v >> 32 != 0) {
            atomicOr(&pack.word[bit / 32 + i + 1], static_cast<uint32_t>(v >> 32));
        }
    }
}

// The bits after the last symbol of a piece, in this order.
struct piece_tail {
    uint32_t end = 0;    // code of the block's end, as in pb_deflate_code
    bool fixed = false;  // an empty block of fixed codes, which is the last
    uint32_t stored = 0; // bytes of a stored block: its head up to them
    bool last = false;   // the stored block is the last
    bool whole = false;  // bits up to a whole byte, and the checksum, most significant byte first
    uint32_t adler = 0;

    template <class Bits> __device__ void put(uint32_t bit, Bits &bits) const
    {
        bits.put(end & 0xffff, end >> 16);
        bit += end >> 16;
        if (fixed) {
            bits.put(1 | 1 << 1, 3 + 7);
            bit += 3 + 7;
        }
        if (stored > 0) {
            bits.put(last ? 1 : 0, 3 + ((0 - (bit + 3)) & 7));
            bits.put(stored | ~stored << 16, 32);
        } else if (whole) {
            bits.put(0, (0 - bit) & 7);
        }
        for (uint32_t k = 0; k < ADLER_BYTES && whole; k++) {
            bits.put(adler >> (24 - 8 * k) & 255, 8);
        }
    }
};

struct piece_task {
    const pb_deflate_code &code;
    const uint32_t *symbol; // codes of symbols, in shared memory
    bool head;              // the table precedes the symbols
    bool ends;              // the last bits are added to the output, and not held
    piece_tail tail;
};

// Returns where the next piece goes.
template <class Pack, class Symbols, class Group>
__device__ piece_out pack_piece(Pack &pack, const piece_task &task, piece_out out,
                                const Symbols &symbols, const Group &group)
{
    constexpr uint32_t WORDS = Pack::WORDS, THREADS = Pack::Piece::THREADS;
    const bool ends_here = group.thread == THREADS - 1;
    const uint32_t head = task.head ? task.code.head_bits : 0;
    bits_counted counted, behind;
    symbols.visit(pack.piece, group.thread, symbol_bits<bits_counted>{task.symbol, counted});
    uint32_t all;
    const uint32_t first = out.bit + head + scan_bits(pack, counted.bits, &all, group);
    task.tail.put(out.bit + head + all, behind);
    const uint32_t end = out.bit + head + all + behind.bits;
    for (uint32_t from = 0; from == 0 || from < (end + 31) / 32; from += WORDS) {
        for (uint32_t i = group.thread; i < WORDS && from + i <= end / 32; i += THREADS) {
            pack.word[i] = from + i == 0 && out.bit > 0 && out.held ? pack.held : 0;
        }
        group.sync();
        if (task.head && from == 0) {
            put_head(pack, task.code, out.bit, group);
        }
        bits_out<WORDS> bits(pack.word, from, first);
        symbols.visit(pack.piece, group.thread, symbol_bits<bits_out<WORDS>>{task.symbol, bits});
        if (ends_here) {
            task.tail.put(first + counted.bits, bits);
        }
        bits.end();
        group.sync();
        flush_words(pack, out, from, end / 32, group);
        const uint32_t rest = end / 32 - from; // the word that is not full
        if (group.thread == 0 && rest < WORDS && end % 32 > 0) {
            if (task.ends) {
                atomicOr(&out.base[end / 32], pack.word[rest]);
            } else {
                pack.held = pack.word[rest];
            }
        }
        group.sync();
    }
    return {out.base + end / 32, end % 32, out.shared && end / 32 == 0, true};
}

// A chunk that is stored; whole words of it are copied.
template <uint32_t THREADS, class Group>
__device__ void put_stored(const encode_chunk &chunk, uint64_t at, uint32_t adler, uint8_t *out,
                           const Group &group)
{
    const uint64_t head = (at + 3 + 7) / 8;
    auto *const words = reinterpret_cast<uint32_t *>(out);
    const uint32_t n = chunk.bytes + 4 + (chunk.last ? ADLER_BYTES : 0);
    const auto byte_at = [&](uint32_t i) -> uint32_t { // behind the three bits
        if (i < 4) {
            return (i < 2 ? chunk.bytes : ~chunk.bytes) >> (8 * (i % 2)) & 255;
        }
        return i - 4 < chunk.bytes ? chunk.in[i - 4]
                                   : adler >> (24 - 8 * (i - 4 - chunk.bytes)) & 255;
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

// The runs of a chunk's pieces, in order.
struct runs_taken {
    deflate_carry carry;

    template <class Piece, class Group>
    __device__ auto operator()(Piece &piece, const encode_chunk &chunk, uint32_t from,
                               const Group &group)
    {
        return take_piece(piece, chunk, from, &carry, group);
    }
};
} // namespace pb_device

// Every thread of the group calls it; a barrier follows before the arena is used again. take(piece,
// chunk, from, group): the symbols of the thread's part of a piece, which is loaded then.
template <uint32_t THREADS, class Take, class Group>
__device__ void pb_deflate_pack(const pb_encode_view &view, uint32_t index,
                                pb_device::deflate_pack_arena<THREADS> &arena, Take take,
                                const Group &group)
{
    using namespace pb_device;
    constexpr uint32_t BYTES = chunk_piece<THREADS>::BYTES;
    const encode_chunk chunk = chunk_of(view, index);
    const pb_deflate_code &code = view.code[index];
    const uint32_t adler = view.batch.encoded[chunk.block].adler;
    if (code.stored != 0) {
        put_stored<THREADS>(chunk, code.at, adler, view.batch.out, group);
        return;
    }
    for (uint32_t i = group.thread; i < PB_DEFLATE_SYMBOLS; i += THREADS) {
        arena.code[i] = code.code[i];
    }
    if (group.thread < PB_DEFLATE_DISTANCES && is_pairs(view, chunk.block)) {
        arena.code[PB_DEFLATE_SYMBOLS + group.thread] = view.distances[index].code[group.thread];
    }
    auto *const words = reinterpret_cast<uint32_t *>(view.batch.out);
    const auto bit = static_cast<uint32_t>(code.at % 32);
    piece_out out = {words + code.at / 32, bit, bit > 0, false};
    for (uint32_t from = 0; from < chunk.bytes; from += BYTES) {
        const auto symbols = take(arena.pack.piece, chunk, from, group);
        piece_task task = {code, arena.code, from == 0, from + BYTES >= chunk.bytes, {}};
        if (task.ends) {
            task.tail.end = arena.code[PB_DEFLATE_END];
            task.tail.whole = chunk.last;
            task.tail.adler = adler;
        }
        out = pack_piece(arena.pack, task, out, symbols, group);
    }
}
#endif
