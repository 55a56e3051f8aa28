// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// One focal operation as a kernel of its own: a block makes one patch (focal.cuh), four pixels of a
// column a thread. Weights travel as a kernel argument.
#include "kernels/focal/focal.cuh"

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
__device__ pb_device::warp_lane find_warp_lane(const whole_block &)
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
__global__ void __launch_bounds__(THREADS) separable(const pb_focal focal, const patch_task task)
{
    __shared__ float shared[(sizeof(patch<R>) + sizeof(band<R>)) / sizeof(float)];
    pb_device::separable_patch<R>(focal.weight_x, focal.weight_y, mine(task), shared,
                                  whole_block());
}

template <int R>
__global__ void __launch_bounds__(THREADS) magnitude(const pb_focal focal, const patch_task task)
{
    __shared__ float shared[(sizeof(patch<R>) + 2 * sizeof(band<R>)) / sizeof(float)];
    pb_device::magnitude_patch<R>(focal.weight_x, focal.weight_y, mine(task), shared,
                                  whole_block());
}

template <int R>
__global__ void __launch_bounds__(THREADS) full(const pb_focal focal, const patch_task task)
{
    __shared__ float shared[sizeof(patch<R>) / sizeof(float)];
    pb_device::full_patch<R>(focal.weight, mine(task), shared, whole_block(), false);
}

#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    template <int R>                                                                               \
    __global__ void __launch_bounds__(THREADS) name(const pb_focal focal, const patch_task task)   \
    {                                                                                              \
        __shared__ float shared[sizeof(patch<R>) / sizeof(float)];                                 \
        pb_device::name##_patch<R>(focal, mine(task), shared, whole_block(), false);               \
    }
#include "kernels/focal/focal.def"

template <int R> void launch(const pb_focal &focal, const patch_task &task, cudaStream_t stream)
{
    constexpr int PATCH = pb_device::PATCH;
    const dim3 block(PATCH, ROWS);
    const dim3 grid(static_cast<unsigned>((task.out.rect.w + PATCH - 1) / PATCH),
                    static_cast<unsigned>((task.out.rect.h + PATCH - 1) / PATCH));
    switch (focal.kind) {
    case PB_FOCAL_SEPARABLE:
        separable<R><<<grid, block, 0, stream>>>(focal, task);
        break;
    case PB_FOCAL_MAGNITUDE:
        magnitude<R><<<grid, block, 0, stream>>>(focal, task);
        break;
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    case PB_FOCAL_##NAME:                                                                          \
        name<R><<<grid, block, 0, stream>>>(focal, task);                                          \
        break;
#include "kernels/focal/focal.def"
    default:
        full<R><<<grid, block, 0, stream>>>(focal, task);
        break;
    }
}

using launcher = void (*)(const pb_focal &, const patch_task &, cudaStream_t);
const launcher launchers[] = {launch<1>, launch<2>, launch<3>, launch<4>,
                              launch<5>, launch<6>, launch<7>};
} // namespace

int pb_focal_run_cuda(const struct pb_focal *focal, const struct pb_plane *in,
                      const struct pb_plane *out, int32_t image_w, int32_t image_h, void *stream)
{
    if (focal->radius < 1 || 2 * focal->radius + 1 > PB_FOCAL_SIDE_MAX) {
        return -EINVAL;
    }
    if (out->rect.w <= 0 || out->rect.h <= 0) {
        return 0;
    }
    launchers[focal->radius - 1](*focal, patch_task{*in, *out, image_w, image_h, focal->edge, 0, 0},
                                 static_cast<cudaStream_t>(stream));
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
