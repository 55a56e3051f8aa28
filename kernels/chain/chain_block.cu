// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// chain_block.cuh as a kernel of its own: as many blocks as there is scratch for, taking the parts
// of the tile in turn; the thread group is the whole block. It is for check_ops and
// check_ops_speed and built with them alone, quickly unless PB_GPU_TESTS is ON.
#include "kernels/chain/chain_block.cuh"
#include "kernels/launch.cuh"

namespace
{
constexpr unsigned THREADS_MAX = 512;

struct task {
    pb_chain_device chain;
    pb_tile_in in;
    pb_tile_out out;
    int32_t part_w, part_h;
    float *scratch;
    size_t scratch_px, plane_px; // of a block, of a plane
};

template <int PX, pb_chain_kind KIND>
__global__ void __launch_bounds__(THREADS_MAX, 1) run_parts(const __grid_constant__ task task)
{
    extern __shared__ float4 shared[];
    const pb_rect core = task.in.core;
    const uint32_t columns = static_cast<uint32_t>((core.w + task.part_w - 1) / task.part_w);
    const uint32_t rows = static_cast<uint32_t>((core.h + task.part_h - 1) / task.part_h);
    const pb_block_group group = {threadIdx.x, blockDim.x};
    float *const scratch = task.scratch + blockIdx.x * task.scratch_px;

    for (uint32_t i = blockIdx.x; i < columns * rows; i += gridDim.x) {
        const int32_t x = static_cast<int32_t>(i % columns) * task.part_w;
        const int32_t y = static_cast<int32_t>(i / columns) * task.part_h;
        const pb_rect part = {core.x + x, core.y + y, min(task.part_w, core.w - x),
                              min(task.part_h, core.h - y)};
        pb_chain_block_run<PX, KIND>(task.chain, task.in, part, task.out.data, task.out.plane_px,
                                     {shared, scratch, task.plane_px}, group);
    }
}

template <int PX> auto choose(const pb_chain *chain)
{
    return chain->keeps_grid ? run_parts<PX, pb_chain_kind::PLANES>
                             : run_parts<PX, pb_chain_kind::GRIDS>;
}
} // namespace

int pb_chain_block_launch(const struct pb_chain *chain, const struct pb_chain_device *device,
                          const struct pb_chain_block_shape *shape, const struct pb_tile_in *in,
                          const struct pb_tile_out *out, void *scratch, void *stream)
{
    pb_chain_block_needs needs;
    int rc = pb_chain_check(chain, in, out);
    if (rc == 0) {
        rc = pb_chain_block_measure(chain, shape->part_w, shape->part_h, shape->threads,
                                    PB_CHAIN_BLOCK_SHARED, &needs);
    }
    if (rc < 0) {
        return rc;
    }
    if (shape->threads > THREADS_MAX || shape->blocks == 0 || (needs.scratch_bytes && !scratch)) {
        return -EINVAL;
    }
    const task task = {*device,
                       *in,
                       *out,
                       shape->part_w,
                       shape->part_h,
                       static_cast<float *>(scratch),
                       needs.scratch_bytes / sizeof(float),
                       needs.plane_px};
    auto *const kernel = needs.px == 4 ? choose<4>(chain) : choose<1>(chain);
    kernel<<<shape->blocks, shape->threads, needs.shared_bytes,
             static_cast<cudaStream_t>(stream)>>>(task);
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
