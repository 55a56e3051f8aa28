// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CHAIN_RESIDENT_CUH
#define PB_CHAIN_RESIDENT_CUH
// What a resident kernel does with a piece: it finds the part of the tile that the piece is, and
// runs the chain on it. For kernels of one chain and of several (chain_resident.cu,
// chain_lanes.cu).
#include "kernels/chain/chain_block.cuh"
#include "kernels/chain/chain_resident.h"
#include "kernels/chain/chain_sums_device.h"
#include "wic/device/wic_device.cuh"

namespace pb_device
{
// The argument of a kernel that stays, or of one of its lanes.
struct task {
    pb_chain_device chain;
    pb_chain_resident_shape shape;
    float *scratch;
    pb_chain_sums_device sums;
    bool keeps_grid;
};

constexpr int threads_max(bool lines)
{
    return 32 * ((lines ? PB_RESIDENT_LINE_WARPS : PB_RESIDENT_PART_WARPS) + WIC_SERVICE_WARPS);
}

// Chains that keep their scene's grid read one source.
template <pb_chain_kind KIND>
__device__ void find_tile(const task &task, const pb_tile &tile, void *base, pb_tile_in *out)
{
    const pb_slot_format &format = task.shape.format;
    if (KIND == pb_chain_kind::GRIDS) {
        pb_slot_pixels(&format, &tile, base, out);
        return;
    }
    out->core = tile.core;
    out->image_w = format.image_w;
    out->image_h = format.image_h;
    out->window[0] = pb_slot_window(&format, 0, &tile.read[0], base);
}

// Lines of a tile are a tile whose window starts further down.
inline __device__ pb_rect take_lines(const wic_piece &piece, pb_tile_in *in)
{
    in->window[0].rect.y += static_cast<int32_t>(piece.first);
    in->window[0].rect.h = static_cast<int32_t>(piece.units);
    return {in->core.x, in->core.y + static_cast<int32_t>(piece.first), in->core.w,
            static_cast<int32_t>(piece.units)};
}

inline __device__ pb_rect take_part(const task &task, const wic_piece &piece, const pb_tile_in &in)
{
    const int32_t w = task.shape.part_w, h = task.shape.part_h;
    const uint32_t columns = static_cast<uint32_t>((in.core.w + w - 1) / w);
    const int32_t x = static_cast<int32_t>(piece.first % columns) * w;
    const int32_t y = static_cast<int32_t>(piece.first / columns) * h;
    return {in.core.x + x, in.core.y + y, min(w, in.core.w - x), min(h, in.core.h - y)};
}

// What all working threads need to know of a piece, once for all of them: in registers it would
// push out what the arithmetic needs. Two, taken in turn: when the thread group meets in piece n +
// 1, nobody looks at that of piece n - 1 any more.
struct work_item {
    pb_tile_in in;
    pb_rect part;
};
constexpr uint32_t work_item_bytes = (2 * sizeof(work_item) + 15) / 16 * 16;
static_assert(work_item_bytes <= PB_RESIDENT_OWN_BYTES, "a block has room for two work items");

template <bool LINES, pb_chain_kind KIND>
__device__ const work_item &take_work_item(const task &task, const wic_piece &piece, uint32_t turn)
{
    work_item &work_item = static_cast<struct work_item *>(piece.work)[turn % 2];
    if (piece.thread == 0) {
        find_tile<KIND>(task, *static_cast<const pb_tile *>(piece.user),
                        const_cast<void *>(piece.in), &work_item.in);
        work_item.part =
            LINES ? take_lines(piece, &work_item.in) : take_part(task, piece, work_item.in);
    }
    piece.sync();
    return work_item;
}

// One piece of a tile. turn: counts the pieces of this block, of whatever chain.
template <int PX, bool LINES, pb_chain_kind KIND>
__device__ __forceinline__ void run_piece(const task &task, const wic_piece &piece, uint32_t turn)
{
    float *const scratch = task.scratch + blockIdx.x * (task.shape.scratch_bytes / sizeof(float));
    const work_item &work_item = take_work_item<LINES, KIND>(task, piece, turn);
    void *const shared = static_cast<unsigned char *>(piece.work) + PB_RESIDENT_OWN_BYTES;
    pb_chain_block_run<PX, KIND>(task.chain, work_item.in, work_item.part,
                                 static_cast<float *>(piece.tile_out),
                                 pb_tile_out_px(static_cast<const pb_tile *>(piece.user)),
                                 {shared, scratch, task.shape.plane_px}, piece);
}
} // namespace pb_device
#endif
