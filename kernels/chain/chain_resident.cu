// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The resident kernel: wic's warps (wic/device/wic_device.cuh) around a chain run part by part
// (kernels/chain/chain_block.cuh). Six of it: 4 pixels or 1 a thread; lines in shared memory, which
// have no planes to care for, parts of a tile in place, or such parts over several grids. Four more
// sum their parts up (kernels/chain/chain_sums.cuh).
#include "kernels/chain/chain_resident.cuh"
#include "kernels/chain/chain_sums.cuh"
#include "wic/device/cuda_errno.h"

#include <cstdlib>

using namespace pb_device;

namespace
{
template <int PX, bool LINES, pb_chain_kind KIND>
__global__ void __launch_bounds__(threads_max(LINES), LINES ? 1 : 2)
    run_resident(const __grid_constant__ wic_view view, const __grid_constant__ task task)
{
    uint32_t turn = 0;
    wic_resident(view,
                 [&](const wic_piece &piece) { run_piece<PX, LINES, KIND>(task, piece, turn++); });
}

// The same for a part that is summed up, and what is kept of its tile.
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
__device__ void share_out(const task &task, const wic_piece &piece, unsigned char *pixels,
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
} // namespace

struct pb_chain_resident {
    task argument;
};

int pb_chain_resident_create(const struct pb_chain *chain,
                             const struct pb_chain_resident_shape *shape,
                             struct pb_chain_resident **out_resident)
{
    auto *const resident = static_cast<pb_chain_resident *>(calloc(1, sizeof(pb_chain_resident)));
    if (!resident) {
        return -ENOMEM;
    }
    pb_device::task &task = resident->argument;
    task.shape = *shape;
    task.keeps_grid = chain->keeps_grid;
    int rc = pb_chain_device_create(chain, &task.chain);
    if (rc == 0 && shape->scratch_bytes > 0) {
        rc = wic_cuda_errno(cudaMalloc(reinterpret_cast<void **>(&task.scratch),
                                       shape->blocks * shape->scratch_bytes));
    }
    if (rc == 0 && shape->sums.n > 0) {
        rc = pb_chain_sums_device_create(chain, &shape->sums, shape->tile_bytes, shape->n_tiles,
                                         &task.sums);
    }
    if (rc < 0) {
        pb_chain_resident_destroy(resident);
        return rc;
    }
    *out_resident = resident;
    return 0;
}

namespace
{
template <pb_chain_kind KIND> const void *sums_kernel_for(int px)
{
    return px == 4 ? reinterpret_cast<const void *>(run_sums<4, KIND>)
                   : reinterpret_cast<const void *>(run_sums<1, KIND>);
}

template <bool LINES, pb_chain_kind KIND> const void *kernel_for(int px)
{
    return px == 4 ? reinterpret_cast<const void *>(run_resident<4, LINES, KIND>)
                   : reinterpret_cast<const void *>(run_resident<1, LINES, KIND>);
}
} // namespace

const void *pb_chain_resident_kernel(const struct pb_chain_resident *resident)
{
    const pb_chain_resident_shape &shape = resident->argument.shape;
    if (shape.sums.n > 0) {
        return resident->argument.keeps_grid ? sums_kernel_for<pb_chain_kind::PLANES>(shape.px)
                                             : sums_kernel_for<pb_chain_kind::GRIDS>(shape.px);
    }
    if (!resident->argument.keeps_grid) {
        return kernel_for<false, pb_chain_kind::GRIDS>(shape.px);
    }
    return shape.by_line ? kernel_for<true, pb_chain_kind::POINTWISE>(shape.px)
                         : kernel_for<false, pb_chain_kind::PLANES>(shape.px);
}

const void *pb_chain_resident_argument(const struct pb_chain_resident *resident)
{
    return &resident->argument;
}

size_t pb_chain_resident_argument_bytes(void)
{
    return sizeof(task);
}

uint32_t pb_chain_resident_stored(const struct pb_chain_resident *resident)
{
    return resident->argument.sums.n_stored;
}

void pb_chain_resident_destroy(struct pb_chain_resident *resident)
{
    if (resident) {
        pb_chain_sums_device_destroy(&resident->argument.sums);
        pb_chain_device_destroy(&resident->argument.chain);
        (void)cudaFree(resident->argument.scratch);
        free(resident);
    }
}
