// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_WORK_INPUT_CUH
#define PB_WORK_INPUT_CUH
// The tasks from stored blocks to the pixels of all levels.
#include "kernels/work/work_arena.cuh"

#include "kernels/codec/halve.cuh"
#include "kernels/codec/unpredict.cuh"

namespace pb_work
{
constexpr uint64_t DECODE_LIMIT_NS = UINT64_C(10000000000);

template <class T, bool FLOATS, class Group>
__device__ void open_rows(const pb_unpredict_form &form, const pb_unpredict_block &block,
                          const Group &group)
{
    for (uint32_t y = group.thread / 32; y < block.h; y += WARPS) {
        pb_unpredict::run<T, FLOATS>(form, block, y);
    }
}

template <class Group>
__device__ void open_samples(const pb_unpredict_form &form, const pb_unpredict_block &block,
                             const Group &group)
{
    if (form.predictor == 3 && form.sample_bytes == 4) {
        return open_rows<uint32_t, true>(form, block, group);
    }
    if (form.predictor == 3) {
        return open_rows<uint64_t, true>(form, block, group);
    }
    switch (form.sample_bytes) {
    case 1:
        return open_rows<uint8_t, false>(form, block, group);
    case 2:
        return open_rows<uint16_t, false>(form, block, group);
    case 4:
        return open_rows<uint32_t, false>(form, block, group);
    default:
        return open_rows<uint64_t, false>(form, block, group);
    }
}

// A decoded piece becomes pixels of planes; tiles that have all of theirs are pushed.
template <class Group>
PB_WORK_TASK void open_piece(const pb_work_view &view, uint32_t number, Group group)
{
    const pb_work_piece &piece = view.pieces[number];
    open_samples(view.forms[piece.form], piece.block, group);
    group.sync();
    if (group.thread >= 32) {
        return;
    }
    for (uint32_t i = group.thread; i < piece.n_tiles; i += 32) {
        const uint32_t tile = view.piece_tiles[piece.first_tile + i];
        if (wic_arrive(&view.tile_counts[tile], view.tile_needs[tile])) {
            wic_push(view.ready, PB_WORK_PIXELS, tile * view.parts, view.blocks[tile].need);
        }
    }
}

template <class Group>
PB_WORK_TASK uint32_t decode_stream(const pb_work_view &view, arena &mine,
                                    const pb_work_piece &piece, uint32_t *bytes, Group group)
{
    pb_codec_watch watch;
    watch.abort = view.ready.stop;
    watch.end_ns = pb_codec_now_ns() + (view.limit_ns != 0 ? view.limit_ns : DECODE_LIMIT_NS);
    switch (piece.codec) {
    case PB_DEVICE_DEFLATE:
        return pb_inflate::run<pb_inflate::standard>(group, mine.stage.inflate, piece.stream,
                                                     nullptr, watch, bytes);
    case PB_DEVICE_LZW:
        return pb_lzw::run<pb_lzw::standard>(group, mine.stage.lzw, piece.stream, nullptr, watch,
                                             bytes);
    default: // taken from where it lies
        *bytes = piece.stream.in_bytes;
        return *bytes < piece.stream.least ? PB_DECODE_SHORT : PB_DECODED;
    }
}

// What the device refuses goes to the host, which pushes OPEN when its bytes are there, or aborts.
template <class Group>
__device__ void decode_piece(const pb_work_view &view, arena &mine, uint32_t number,
                             const Group &group)
{
    const pb_work_piece &piece = view.pieces[number];
    pb_decode_result result = {0, 0};
    result.status = decode_stream(view, mine, piece, &result.bytes, group);
    if (group.thread == 0) {
        view.results[number] = result;
    }
    group.sync();
    if (result.status == PB_DECODED) {
        open_piece(view, number, group);
    } else if (result.status != PB_DECODE_ABORTED && group.thread == 0) {
        pb_work_record record = {};
        record.number = number;
        record.status = result.status;
        record.event = PB_WORK_REFUSED;
        tell(view, record);
    }
}

// Rows of a tile, by the chain: pixels(tile_in, part, out, out_px, chain memory).
template <class Pixels, class Group>
__device__ void make_pixels(const pb_work_view &view, arena &mine, uint32_t task,
                            const Pixels &pixels, const Group &group)
{
    const uint32_t tile = task / view.parts;
    const pb_tile_in &in = view.tile_in[tile];
    const int32_t y = static_cast<int32_t>(task % view.parts * view.part_rows);
    const int32_t rows = static_cast<int32_t>(view.part_rows);
    const pb_rect part = {in.core.x, in.core.y + y, in.core.w,
                          rows < in.core.h - y ? rows : in.core.h - y};
    pixels(in, part, view.tile_out + tile * view.tile_out_px, view.tile_plane_px, mine.stage.chain);
    group.sync();
    if (group.thread == 0) {
        arrive_pixels(view, tile);
    }
}

template <class Group>
PB_WORK_TASK void halve_block(const pb_work_view &view, uint32_t number, Group group)
{
    const pb_work_block &block = view.blocks[number];
    const auto rows = static_cast<uint32_t>(block.halve.h + 1) / 2;
    const uint32_t lane = group.thread % 32;
    for (uint32_t i = group.thread / 32; i < rows * view.n_planes; i += WARPS) {
        const auto y = static_cast<int32_t>(i % rows);
        if (view.nearest) {
            pb_halve_row<true>(block.halve, i / rows, y, lane);
        } else {
            pb_halve_row<false>(block.halve, i / rows, y, lane);
        }
    }
    group.sync();
    if (group.thread == 0) {
        arrive_pixels(view, block.parent);
    }
}
} // namespace pb_work
#endif
