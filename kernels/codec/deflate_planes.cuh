// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DEFLATE_PLANES_CUH
#define PB_DEFLATE_PLANES_CUH
// Blocks of float32 rows whose planes of bytes are encoded separately, with the bytes of
// pipeline/codec/deflate_planes.c. A thread group counts the rows of a block that are counted, a
// warp makes its code and selects its encoder, warps find the sizes of rows, a warp their places,
// and warps write them. A warp takes half a row, two planes, in pieces.
#include "kernels/codec/deflate_codes.cuh"
#include "kernels/codec/deflate_count.cuh"
#include "kernels/codec/deflate_pack.cuh"
#include "kernels/thread_group.cuh"

namespace pb_device
{
constexpr uint32_t PLANES_WARPS = 4, PLANES_THREADS = 32 * PLANES_WARPS;
constexpr uint32_t PLANES_ROWS = 8; // rows of a thread group; sides of blocks are multiples

using planes_piece = deflate_piece<32, 32>;

struct planes_warp {
    uint32_t thread, threads;
    __device__ void sync() const
    {
        __syncwarp();
    }
};

inline __device__ pb_planes_row &planes_row(const pb_encode_view &view, uint32_t block, uint32_t y)
{
    return view.planes_rows[block * static_cast<uint32_t>(view.batch.format.block_px) + y];
}

// Upper or lower planes of a row.
inline __device__ encode_chunk planes_of(const pb_encode_view &view, uint32_t block, uint32_t y,
                                         bool lower)
{
    const uint32_t half = view.row_bytes / 2;
    const size_t at = static_cast<size_t>(y) * view.row_bytes + (lower ? half : 0);
    return {view.raw + block * view.raw_stride + at, half, block, y, false, false};
}

template <class T> __device__ T planes_sum(T v)
{
    for (int d = 16; d > 0; d /= 2) {
        v += __shfl_xor_sync(ALL_LANES, v, d);
    }
    return v;
}

inline __device__ bool is_flat(const encode_chunk &lower, uint32_t lane)
{
    const auto *const word = reinterpret_cast<const uint64_t *>(lower.in);
    uint32_t others = 0;
    for (uint32_t i = 1 + lane; i < lower.bytes / 8; i += 32) {
        others += pb_planes_repeats(word[i], word[i - 1]) ? 0 : 1;
    }
    return pb_planes_is_flat(planes_sum(others), lower.bytes);
}

struct planes_count_arena {
    planes_piece piece[PLANES_WARPS];
    uint32_t coded[PLANES_WARPS][HISTOGRAM_WORDS], rest[PLANES_WARPS][HISTOGRAM_WORDS];
    uint32_t coded_more, rest_more, stored;
};

// The counted rows of a warp.
inline __device__ void count_planes(const pb_encode_view &view, planes_count_arena &arena,
                                    uint32_t block, const pb_block_group &group)
{
    const uint32_t warp = group.thread / 32, lane = group.thread % 32;
    const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
    const planes_warp lanes = {lane, 32};
    deflate_thread_sums coded, rest;
    uint32_t stored = 0;
    for (uint32_t y = warp * view.every; y < rows; y += PLANES_WARPS * view.every) {
        const encode_chunk lower = planes_of(view, block, y, true);
        const bool flat = is_flat(lower, lane);
        count_chunk(arena.piece[warp], planes_of(view, block, y, false), arena.coded[warp], &coded,
                    lanes);
        count_chunk(arena.piece[warp], lower, flat ? arena.coded[warp] : arena.rest[warp],
                    flat ? &coded : &rest, lanes);
        stored += flat ? 0 : 1;
    }
    atomicAdd(&arena.coded_more, coded.more);
    atomicAdd(&arena.rest_more, rest.more);
    if (lane == 0) {
        atomicAdd(&arena.stored, stored);
    }
}

struct planes_code_arena { // shared memory of a warp
    deflate_codes_arena codes;
    uint32_t coded[PB_DEFLATE_SYMBOLS], count[PB_DEFLATE_SYMBOLS];
};

// Bits of symbols with the lengths in the arena.
inline __device__ uint64_t planes_bits(const planes_code_arena &arena, const uint32_t *count,
                                       uint32_t lane)
{
    uint64_t bits = 0;
    for (uint32_t s = lane; s < PB_DEFLATE_LITLEN; s += 32) {
        bits += static_cast<uint64_t>(count[s]) * arena.codes.length[s];
    }
    return planes_sum(bits);
}

struct planes_rows_arena {
    planes_piece piece[PLANES_WARPS];
    uint32_t code[PB_DEFLATE_SYMBOLS];
};

struct planes_pack_arena {
    deflate_pack<planes_piece> pack[PLANES_WARPS];
    uint32_t code[PB_DEFLATE_SYMBOLS];
};

// The codes of a block's symbols. A barrier has to follow.
inline __device__ void load_codes(const pb_encode_view &view, uint32_t block, uint32_t *code,
                                  const pb_block_group &group)
{
    for (uint32_t s = group.thread; s < PB_DEFLATE_LITLEN; s += group.threads) {
        code[s] = view.planes[block].code.code[s];
    }
}

// Bits of half a row.
inline __device__ uint32_t half_bits(planes_piece &piece, const encode_chunk &half,
                                     const uint32_t *code, const planes_warp &lanes)
{
    deflate_carry carry;
    bits_counted counted;
    for (uint32_t from = 0; from < half.bytes; from += planes_piece::BYTES) {
        const auto symbols = take_piece(piece, half, from, &carry, lanes);
        symbols.visit(piece, lanes.thread, symbol_bits<bits_counted>{code, counted});
        lanes.sync(); // the piece has been read
    }
    return planes_sum(counted.bits);
}

// Adler sums of a row.
inline __device__ void sum_row(const uint8_t *row, uint32_t bytes, uint32_t lane,
                               pb_planes_row *out)
{
    const auto *const word = reinterpret_cast<const uint32_t *>(row);
    uint32_t s1 = 0;
    uint64_t s2 = 0;
    for (uint32_t i = lane; i < bytes / 4; i += 32) {
        const uint32_t sum = __dp4a(word[i], 0x01010101u, 0u);
        s1 += sum;
        s2 += static_cast<uint64_t>(bytes - 4 * i) * sum - __dp4a(word[i], 0x03020100u, 0u);
    }
    s1 = planes_sum(s1);
    s2 = planes_sum(s2);
    if (lane == 0) {
        out->s1 = s1 % ADLER;
        out->s2 = static_cast<uint32_t>(s2 % ADLER);
    }
}

inline __device__ void measure_row(const pb_encode_view &view, planes_piece &piece,
                                   const uint32_t *code, uint32_t block, uint32_t y,
                                   const planes_warp &lanes)
{
    const encode_chunk upper = planes_of(view, block, y, false);
    const encode_chunk lower = planes_of(view, block, y, true);
    const bool flat = is_flat(lower, lanes.thread);
    uint32_t bits = half_bits(piece, upper, code, lanes);
    bits += flat ? half_bits(piece, lower, code, lanes) : code[PB_DEFLATE_END] >> 16;
    pb_planes_row &row = planes_row(view, block, y);
    sum_row(upper.in, view.row_bytes, lanes.thread, &row);
    if (lanes.thread == 0) {
        row.bits = bits;
        row.flat = flat ? 1 : 0;
    }
}

// Copies the lower planes of a row and, in the last row, the checksum. out: place of the first
// byte, at a whole byte; the bytes before it in the word are held.
inline __device__ void copy_row(const encode_chunk &lower, piece_out out, uint32_t held, bool last,
                                uint32_t adler, uint32_t lane)
{
    const auto *const from = reinterpret_cast<const uint32_t *>(lower.in);
    const uint32_t n = lower.bytes / 4, up = out.bit, down = (32 - up) & 31;
    const auto shifted = [&](uint32_t low, uint32_t high) { // high: the word that follows
        return up == 0 ? high : low >> down | high << up;
    };
    for (uint32_t w = lane; w < n; w += 32) {
        out.base[w] = w > 0 ? shifted(from[w - 1], from[w]) : held | from[0] << up;
    }
    if (lane > 0) {
        return;
    }
    if (!last) {
        if (up > 0) {
            atomicOr(&out.base[n], from[n - 1] >> down);
        }
        return;
    }
    const uint32_t sum =
        adler >> 24 | (adler >> 8 & 0xff00) | (adler << 8 & 0xff0000) | adler << 24;
    out.base[n] = shifted(from[n - 1], sum);
    if (up > 0) {
        atomicOr(&out.base[n + 1], sum >> down);
    }
}

// The end of the rows up to one of them, and their checksum.
struct planes_place {
    uint64_t bit;
    uint32_t a, b;
    bool open; // a block of deflate with codes
    // Adds the row of lane k; by a whole warp.
    __device__ void add(const pb_planes_row &row, uint32_t k, uint32_t head_bits, uint32_t bytes)
    {
        const auto from = static_cast<int>(k);
        const uint32_t bits = __shfl_sync(ALL_LANES, row.bits, from);
        const uint32_t flat = __shfl_sync(ALL_LANES, row.flat, from);
        bit += (open ? 0 : head_bits) + bits;
        open = flat != 0;
        if (!open) {
            bit = (bit + 3 + 7) / 8 * 8 + 32 + UINT64_C(4) * bytes;
        }
        // Below 2^32: a and the remainder are at most 65520, b and s2 as well.
        b = (b + bytes % ADLER * a + __shfl_sync(ALL_LANES, row.s2, from)) % ADLER;
        a = (a + __shfl_sync(ALL_LANES, row.s1, from)) % ADLER;
    }
};

// The bits after the symbols of a row.
inline __device__ piece_tail tail_of(const pb_encode_view &view, const pb_planes_row &row,
                                     uint32_t block, bool last, const uint32_t *code)
{
    piece_tail tail;
    if (row.flat == 0) {
        tail.end = code[PB_DEFLATE_END];
        tail.stored = view.row_bytes / 2;
        tail.last = last;
    } else if (last) {
        tail.end = code[PB_DEFLATE_END];
        tail.fixed = true;
        tail.whole = true;
        tail.adler = view.batch.encoded[block].adler;
    }
    return tail;
}

inline __device__ void pack_row(const pb_encode_view &view, deflate_pack<planes_piece> &pack,
                                const uint32_t *code, uint32_t block, uint32_t y,
                                const planes_warp &lanes)
{
    const pb_planes_row &row = planes_row(view, block, y);
    const uint64_t at = 8 * view.batch.encoded[block].at + row.at;
    const bool last = y + 1 == static_cast<uint32_t>(view.batch.format.block_px);
    const auto bit = static_cast<uint32_t>(at % 32);
    piece_out out = {reinterpret_cast<uint32_t *>(view.batch.out) + at / 32, bit, bit > 0, false};
    piece_task task = {view.planes[block].code, code, row.opens != 0, false, {}};
    for (uint32_t k = 0; k < (row.flat != 0 ? 2 : 1); k++) {
        const encode_chunk half = planes_of(view, block, y, k > 0);
        deflate_carry carry;
        for (uint32_t from = 0; from < half.bytes; from += planes_piece::BYTES) {
            const auto symbols = take_piece(pack.piece, half, from, &carry, lanes);
            if (k == row.flat && from + planes_piece::BYTES >= half.bytes) {
                task.ends = row.flat != 0;
                task.tail = tail_of(view, row, block, last, code);
            }
            out = pack_piece(pack, task, out, symbols, lanes);
            task.head = false;
        }
    }
    if (row.flat == 0) {
        copy_row(planes_of(view, block, y, true), out, out.bit > 0 ? pack.held : 0, last,
                 view.batch.encoded[block].adler, lanes.thread);
        lanes.sync(); // the held bits have been read
    }
}
} // namespace pb_device

// Counts a block; every thread of a group of PLANES_THREADS calls it.
inline __device__ void pb_planes_count(const pb_encode_view &view,
                                       pb_device::planes_count_arena &arena, uint32_t block,
                                       const pb_block_group &group)
{
    using namespace pb_device;
    for (uint32_t i = group.thread; i < PLANES_WARPS * HISTOGRAM_WORDS; i += PLANES_THREADS) {
        arena.coded[i / HISTOGRAM_WORDS][i % HISTOGRAM_WORDS] = 0;
        arena.rest[i / HISTOGRAM_WORDS][i % HISTOGRAM_WORDS] = 0;
    }
    if (group.thread == 0) {
        arena.coded_more = arena.rest_more = arena.stored = 0;
    }
    group.sync();
    count_planes(view, arena, block, group);
    group.sync();
    pb_planes_sums &out = view.planes_sums[block];
    for (uint32_t s = group.thread; s < PB_DEFLATE_LITLEN; s += PLANES_THREADS) {
        uint32_t coded = 0, rest = 0;
        for (uint32_t k = 0; k < PLANES_WARPS; k++) {
            coded += arena.coded[k][s];
            rest += arena.rest[k][s];
        }
        out.coded[s] = coded;
        out.rest[s] = rest;
    }
    if (group.thread == 0) {
        out.coded_more = arena.coded_more;
        out.rest_more = arena.rest_more;
        out.stored = arena.stored;
    }
}

// Makes the code of a block and selects its encoder, by a warp; a barrier of the warp follows
// before the arena is used again.
inline __device__ void pb_planes_code(const pb_encode_view &view,
                                      pb_device::planes_code_arena &arena, uint32_t block,
                                      uint32_t lane)
{
    using namespace pb_device;
    const pb_planes_sums &sums = view.planes_sums[block];
    pb_planes_block &out = view.planes[block];
    const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
    pb_planes_sizes sizes = {};
    sizes.stored = sums.stored;
    sizes.rows = (rows + view.every - 1) / view.every;
    sizes.row_bytes = view.row_bytes;
    for (uint32_t s = lane; s < PB_DEFLATE_LITLEN; s += 32) {
        arena.coded[s] = sums.coded[s];
        arena.count[s] = sums.coded[s] + sums.rest[s];
    }
    __syncwarp();
    make_lengths(arena.codes, arena.count, PB_DEFLATE_LITLEN, PB_DEFLATE_CODE_BITS,
                 arena.codes.length, lane);
    sizes.runs_bits = sums.coded_more + sums.rest_more + planes_bits(arena, arena.count, lane);
    if (lane == 0) {
        arena.coded[PB_DEFLATE_END] = sums.stored;
    }
    __syncwarp();
    for (uint32_t s = lane; s < PB_DEFLATE_LITLEN; s += 32) {
        arena.count[s] = pb_planes_smooth(arena.coded, s);
    }
    __syncwarp();
    make_lengths(arena.codes, arena.count, PB_DEFLATE_LITLEN, PB_DEFLATE_CODE_BITS,
                 arena.codes.length, lane);
    make_codes(arena.codes, arena.codes.length, PB_DEFLATE_LITLEN, out.code.code, lane);
    sizes.coded_bits = sums.coded_more + planes_bits(arena, arena.coded, lane);
    sizes.head_bits = make_head(arena.codes, one_distance(arena.codes, lane), false, lane);
    for (uint32_t i = lane; i < (sizes.head_bits + 31) / 32; i += 32) {
        out.code.head[i] = arena.codes.head[i];
    }
    if (lane == 0) {
        out.code.head_bits = static_cast<uint32_t>(sizes.head_bits);
        out.on = pb_planes_pay(&sizes) ? 1 : 0;
    }
}

// Finds the sizes of PLANES_ROWS rows, by a thread group of PLANES_THREADS. Task: the first of
// these rows / PLANES_ROWS, counted through all blocks.
inline __device__ void pb_planes_measure(const pb_encode_view &view,
                                         pb_device::planes_rows_arena &arena, uint32_t task,
                                         const pb_block_group &group)
{
    using namespace pb_device;
    const uint32_t row = task * PLANES_ROWS, warp = group.thread / 32;
    const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
    const uint32_t block = row / rows;
    if (!is_planes(view, block)) {
        return;
    }
    load_codes(view, block, arena.code, group);
    group.sync();
    for (uint32_t k = warp; k < PLANES_ROWS; k += PLANES_WARPS) {
        measure_row(view, arena.piece[warp], arena.code, block, row % rows + k,
                    {group.thread % 32, 32});
    }
}

// The places of a block's rows, and its size and checksum, by a warp: lanes load 32 rows, then all
// of them go through these rows in order. A block that is too large is left to the encoder of runs.
inline __device__ void pb_planes_place(const pb_encode_view &view, uint32_t block, uint32_t lane)
{
    using namespace pb_device;
    pb_planes_block &out = view.planes[block];
    if (out.on == 0) {
        return;
    }
    const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
    const uint32_t end_bits = out.code.code[PB_DEFLATE_END] >> 16;
    planes_place place = {ZLIB_HEADER_BITS, 1, 0, false};
    for (uint32_t first = 0; first < rows; first += 32) {
        const uint32_t y = first + lane, n = rows - first < 32 ? rows - first : 32;
        pb_planes_row row = {};
        if (lane < n) {
            row = planes_row(view, block, y);
        }
        for (uint32_t k = 0; k < n; k++) {
            row.at = lane == k ? place.bit : row.at;
            row.opens = lane == k ? !place.open : row.opens;
            place.add(row, k, out.code.head_bits, view.row_bytes);
        }
        if (lane < n) {
            planes_row(view, block, y) = row;
        }
    }
    if (place.open) {
        place.bit = (place.bit + end_bits + 3 + 7 + 7) / 8 * 8;
    }
    if (lane == 0) {
        out.bytes = static_cast<uint32_t>(place.bit / 8) + ADLER_BYTES;
        out.adler = place.b << 16 | place.a;
        out.on = (place.bit - ZLIB_HEADER_BITS) / 8 <= pb_planes_limit(view.row_bytes, rows);
    }
}

// Clears the word in which a row begins, which it shares with the row before it, by one thread.
inline __device__ void pb_planes_clear(const pb_encode_view &view, uint32_t block, uint32_t y)
{
    using namespace pb_device;
    const pb_encoded &encoded = view.batch.encoded[block];
    if (encoded.state == PB_ENCODED && is_planes(view, block)) {
        const uint64_t at = 8 * encoded.at + planes_row(view, block, y).at;
        reinterpret_cast<uint32_t *>(view.batch.out)[at / 32] = y == 0 ? ZLIB_HEADER : 0;
    }
}

// Writes the rows of a task of pb_planes_measure, by such a group.
inline __device__ void pb_planes_pack(const pb_encode_view &view,
                                      pb_device::planes_pack_arena &arena, uint32_t task,
                                      const pb_block_group &group)
{
    using namespace pb_device;
    const uint32_t row = task * PLANES_ROWS, warp = group.thread / 32;
    const auto rows = static_cast<uint32_t>(view.batch.format.block_px);
    const uint32_t block = row / rows;
    if (view.batch.encoded[block].state != PB_ENCODED || !is_planes(view, block)) {
        return;
    }
    load_codes(view, block, arena.code, group);
    group.sync();
    for (uint32_t k = warp; k < PLANES_ROWS; k += PLANES_WARPS) {
        pack_row(view, arena.pack[warp], arena.code, block, row % rows + k,
                 {group.thread % 32, 32});
    }
}
#endif
