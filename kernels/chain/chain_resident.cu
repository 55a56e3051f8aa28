// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The resident kernel: wic's warps (wic/device/wic_device.cuh) around a chain run part by part
// (kernels/chain/chain_block.cuh). Six of it: 4 pixels or 1 a thread; lines in shared memory, which
// have no planes to care for, parts of a tile in place, or such parts over several grids. Four more
// sum their parts up (kernels/chain/chain_sums.cuh).
#include "kernels/chain/chain_block.cuh"
#include "kernels/chain/chain_resident.h"
#include "kernels/chain/chain_sums.cuh"
#include "wic/device/cuda_errno.h"
#include "wic/device/wic_device.cuh"

#include <cstdlib>

namespace
{
constexpr int threads_max(bool lines)
{
    return 32 * ((lines ? PB_RESIDENT_LINE_WARPS : PB_RESIDENT_PART_WARPS) + WIC_SERVICE_WARPS);
}

struct task {
    pb_chain_device chain;
    pb_chain_resident_shape shape;
    float *scratch;
    pb_chain_sums_device sums;
};

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
__device__ pb_rect take_lines(const wic_piece &piece, pb_tile_in *in)
{
    in->window[0].rect.y += static_cast<int32_t>(piece.first);
    in->window[0].rect.h = static_cast<int32_t>(piece.units);
    return {in->core.x, in->core.y + static_cast<int32_t>(piece.first), in->core.w,
            static_cast<int32_t>(piece.units)};
}

__device__ pb_rect take_part(const task &task, const wic_piece &piece, const pb_tile_in &in)
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

template <int PX, bool LINES, pb_chain_kind KIND>
__global__ void __launch_bounds__(threads_max(LINES), LINES ? 1 : 2)
    run_resident(const __grid_constant__ wic_view view, const __grid_constant__ task task)
{
    float *const scratch = task.scratch + blockIdx.x * (task.shape.scratch_bytes / sizeof(float));
    uint32_t turn = 0;
    wic_resident(view, [&](const wic_piece &piece) {
        const work_item &work_item = take_work_item<LINES, KIND>(task, piece, turn++);
        void *const shared = static_cast<unsigned char *>(piece.work) + PB_RESIDENT_OWN_BYTES;
        pb_chain_block_run<PX, KIND>(task.chain, work_item.in, work_item.part,
                                     static_cast<float *>(piece.tile_out),
                                     pb_tile_out_px(static_cast<const pb_tile *>(piece.user)),
                                     {shared, scratch, task.shape.plane_px}, piece);
    });
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
    bool keeps_grid;
};

int pb_chain_resident_create(const struct pb_chain *chain,
                             const struct pb_chain_resident_shape *shape,
                             struct pb_chain_resident **out_resident)
{
    auto *const resident = static_cast<pb_chain_resident *>(calloc(1, sizeof(pb_chain_resident)));
    if (!resident) {
        return -ENOMEM;
    }
    task &task = resident->argument;
    task.shape = *shape;
    resident->keeps_grid = chain->keeps_grid;
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
        return resident->keeps_grid ? sums_kernel_for<pb_chain_kind::PLANES>(shape.px)
                                    : sums_kernel_for<pb_chain_kind::GRIDS>(shape.px);
    }
    if (!resident->keeps_grid) {
        return kernel_for<false, pb_chain_kind::GRIDS>(shape.px);
    }
    return shape.by_line ? kernel_for<true, pb_chain_kind::POINTWISE>(shape.px)
                         : kernel_for<false, pb_chain_kind::PLANES>(shape.px);
}

const void *pb_chain_resident_argument(const struct pb_chain_resident *resident)
{
    return &resident->argument;
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
