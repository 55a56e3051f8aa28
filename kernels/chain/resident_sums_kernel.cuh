// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_RESIDENT_SUMS_KERNEL_CUH
#define PB_RESIDENT_SUMS_KERNEL_CUH
// The resident kernel of chains whose parts are summed up (kernels/chain/chain_sums.cuh).
#include "kernels/chain/chain_kernels.cuh"
#include "kernels/chain/chain_resident.cuh"
#include "kernels/chain/chain_sums.cuh"

namespace pb_device
{
// A part that is summed up, and the share of its tile that the device keeps.
struct sums_item {
    pb_tile_in in; // its core is the part
    const pb_slot_head *head;
    uint32_t round;
    const uint4 *keep_from; // NULL: nothing
    uint4 *keep_to;
    uint32_t keep_n;
};
static_assert(2 * sizeof(sums_item) <= PB_RESIDENT_OWN_BYTES, "a block has room for two of them");

// The part's share of what the device keeps of the tile.
inline __device__ void share_out(const task &task, const wic_piece &piece, unsigned char *pixels,
                                 unsigned char *store, sums_item *item)
{
    const auto *const tile = static_cast<const pb_tile *>(piece.user);
    const int32_t w = task.shape.part_w, h = task.shape.part_h;
    const uint32_t parts = static_cast<uint32_t>((tile->core.w + w - 1) / w) *
                           static_cast<uint32_t>((tile->core.h + h - 1) / h);
    const size_t all =
        (pb_slot_tile_bytes(&task.shape.format, tile) - task.shape.format.head_bytes) /
        sizeof(uint4);
    const size_t share = (all + parts - 1) / parts, first = share * piece.first;
    item->keep_from = reinterpret_cast<const uint4 *>(pixels) + first;
    item->keep_to = reinterpret_cast<uint4 *>(store) + first;
    item->keep_n = static_cast<uint32_t>(first >= all          ? 0
                                         : all - first < share ? all - first
                                                               : share);
}

template <pb_chain_kind KIND>
__device__ void find_sums_item(const task &task, const wic_piece &piece, sums_item *item)
{
    const auto *const tile = static_cast<const pb_tile *>(piece.user);
    auto *const slot = static_cast<unsigned char *>(const_cast<void *>(piece.in));
    unsigned char *pixels = slot + task.shape.format.head_bytes;
    item->head = reinterpret_cast<const pb_slot_head *>(slot);
    item->round = item->head->round;
    item->keep_n = 0;
    if (tile->number < task.sums.n_stored) {
        unsigned char *const store = task.sums.store + tile->number * task.sums.stored_bytes;
        if (tile->is_stored) {
            pixels = store;
        } else {
            share_out(task, piece, pixels, store, item);
        }
    }
    find_tile<KIND>(task, *tile, pixels, &item->in);
    item->in.core = take_part(task, piece, item->in);
}

template <int PX, pb_chain_kind KIND>
__global__ void __launch_bounds__(threads_max(false), 2)
    run_sums(const __grid_constant__ wic_view view, const __grid_constant__ task task)
{
    auto *const scratch =
        reinterpret_cast<unsigned char *>(task.scratch) + blockIdx.x * task.shape.scratch_bytes;
    uint32_t turn = 0, round = 0;
    wic_resident(view, [&](const wic_piece &piece) {
        sums_item &item = static_cast<sums_item *>(piece.work)[turn++ % 2];
        if (piece.thread == 0) {
            find_sums_item<KIND>(task, piece, &item);
        }
        piece.sync();
        void *const shared = static_cast<unsigned char *>(piece.work) + PB_RESIDENT_OWN_BYTES;
        const pb_chain_sums_block block = {task.chain, task.sums,           task.shape.places,
                                           scratch,    task.shape.plane_px, shared};
        if (item.round != round) {
            round = item.round;
            pb_chain_sums_begin(block, item.head, piece);
        }
        for (uint32_t i = piece.thread; i < item.keep_n; i += piece.threads) {
            item.keep_to[i] = item.keep_from[i];
        }
        auto *const out = static_cast<int32_t *>(piece.tile_out) +
                          static_cast<size_t>(piece.first) * task.sums.sums.words;
        pb_chain_sums_part<PX, KIND>(block, item.in, out, piece);
    });
}

template <int PX, pb_chain_kind KIND> const void *resident_sums_kernel()
{
    return reinterpret_cast<const void *>(run_sums<PX, KIND>);
}
} // namespace pb_device
#endif
