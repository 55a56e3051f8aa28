// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// One stencil as a kernel of its own: a block makes one patch (stencil.cuh), four pixels of a
// column a thread. Weights travel as a kernel argument.
#include "kernels/focal/stencil.cuh"

#include <cerrno>
#include <cuda_runtime.h>

namespace
{
using pb_device::band;
using pb_device::patch;
using pb_device::patch_task;

constexpr int ROWS = 8; // warps of a block
constexpr int THREADS = ROWS * pb_device::PATCH;

// A warp is a row of the block: so the compiler sees how far the loops over rows go and unrolls
// them.
struct whole_block {
    __device__ void sync() const
    {
        __syncthreads();
    }
};
__device__ pb_device::seat find_seat(const whole_block &)
{
    return {static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y), ROWS};
}

// The task of this block.
__device__ patch_task mine(patch_task task)
{
    task.x = static_cast<int32_t>(blockIdx.x) * pb_device::PATCH;
    task.y = static_cast<int32_t>(blockIdx.y) * pb_device::PATCH;
    return task;
}

template <int R>
__global__ void __launch_bounds__(THREADS)
    separable(const pb_stencil stencil, const patch_task task)
{
    __shared__ float shared[(sizeof(patch<R>) + sizeof(band<R>)) / sizeof(float)];
    pb_device::separable_patch<R>(stencil.weight_x, stencil.weight_y, mine(task), shared,
                                  whole_block());
}

template <int R>
__global__ void __launch_bounds__(THREADS) gradient(const pb_stencil stencil, const patch_task task)
{
    __shared__ float shared[(sizeof(patch<R>) + 2 * sizeof(band<R>)) / sizeof(float)];
    pb_device::gradient_patch<R>(stencil.weight_x, stencil.weight_y, mine(task), shared,
                                 whole_block());
}

template <int R>
__global__ void __launch_bounds__(THREADS) full(const pb_stencil stencil, const patch_task task)
{
    __shared__ float shared[sizeof(patch<R>) / sizeof(float)];
    pb_device::full_patch<R>(stencil.weight, mine(task), shared, whole_block(), false);
}

template <int R> void launch(const pb_stencil &stencil, const patch_task &task, cudaStream_t stream)
{
    constexpr int PATCH = pb_device::PATCH;
    const dim3 block(PATCH, ROWS);
    const dim3 grid(static_cast<unsigned>((task.out.rect.w + PATCH - 1) / PATCH),
                    static_cast<unsigned>((task.out.rect.h + PATCH - 1) / PATCH));
    if (stencil.kind == PB_STENCIL_SEPARABLE) {
        separable<R><<<grid, block, 0, stream>>>(stencil, task);
    } else if (stencil.kind == PB_STENCIL_GRADIENT) {
        gradient<R><<<grid, block, 0, stream>>>(stencil, task);
    } else {
        full<R><<<grid, block, 0, stream>>>(stencil, task);
    }
}

using launcher = void (*)(const pb_stencil &, const patch_task &, cudaStream_t);
const launcher launchers[] = {launch<1>, launch<2>, launch<3>, launch<4>,
                              launch<5>, launch<6>, launch<7>};
} // namespace

int pb_stencil_run_cuda(const struct pb_stencil *stencil, const struct pb_plane *in,
                        const struct pb_plane *out, int32_t image_w, int32_t image_h, float *temp,
                        void *stream)
{
    (void)temp;
    if (stencil->radius < 1 || 2 * stencil->radius + 1 > PB_STENCIL_SIDE_MAX) {
        return -EINVAL;
    }
    if (out->rect.w <= 0 || out->rect.h <= 0) {
        return 0;
    }
    launchers[stencil->radius - 1](*stencil,
                                   patch_task{*in, *out, image_w, image_h, stencil->edge, 0, 0},
                                   static_cast<cudaStream_t>(stream));
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
