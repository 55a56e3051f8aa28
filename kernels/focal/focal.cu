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
using pb_device::any_reach;
using pb_device::fixed_reach;
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

extern __shared__ float shared[]; // pb_focal_patch_bytes

template <class Reach>
__global__ void __launch_bounds__(THREADS)
    separable(const Reach reach, const pb_focal focal, const patch_task task)
{
    pb_device::separable_patch(reach, focal.weight_x, focal.weight_y, mine(task), shared,
                               whole_block());
}

template <class Reach>
__global__ void __launch_bounds__(THREADS)
    magnitude(const Reach reach, const pb_focal focal, const patch_task task)
{
    pb_device::magnitude_patch(reach, focal.weight_x, focal.weight_y, mine(task), shared,
                               whole_block());
}

template <class Reach>
__global__ void __launch_bounds__(THREADS)
    full(const Reach reach, const pb_focal focal, const patch_task task)
{
    pb_device::full_patch(reach, focal.weight, mine(task), shared, whole_block(), false);
}

#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    template <class Reach>                                                                         \
    __global__ void __launch_bounds__(THREADS)                                                     \
        name(const Reach reach, const pb_focal focal, const patch_task task)                       \
    {                                                                                              \
        pb_device::name##_patch(reach, focal, mine(task), shared, whole_block(), false);           \
    }
#include "kernels/focal/focal.def"

template <class Reach>
void launch(const Reach reach, const pb_focal &focal, const patch_task &task, cudaStream_t stream)
{
    constexpr int PATCH = pb_device::PATCH;
    const dim3 block(PATCH, ROWS);
    const dim3 grid(static_cast<unsigned>((task.out.rect.w + PATCH - 1) / PATCH),
                    static_cast<unsigned>((task.out.rect.h + PATCH - 1) / PATCH));
    const size_t bytes = pb_focal_patch_bytes(&focal);
    switch (focal.kind) {
    case PB_FOCAL_SEPARABLE:
        separable<<<grid, block, bytes, stream>>>(reach, focal, task);
        break;
    case PB_FOCAL_MAGNITUDE:
        magnitude<<<grid, block, bytes, stream>>>(reach, focal, task);
        break;
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    case PB_FOCAL_##NAME:                                                                          \
        if constexpr (pb_device::has_kind<Reach>(PB_FOCAL_##NAME)) {                               \
            name<<<grid, block, bytes, stream>>>(reach, focal, task);                              \
        }                                                                                          \
        break;
#include "kernels/focal/focal.def"
    default:
        full<<<grid, block, bytes, stream>>>(reach, focal, task);
        break;
    }
}

template <int R>
void launch_fixed(const pb_focal &focal, const patch_task &task, cudaStream_t stream)
{
    launch(fixed_reach<R>{}, focal, task, stream);
}

using launcher = void (*)(const pb_focal &, const patch_task &, cudaStream_t);
const launcher launchers[] = {launch_fixed<1>, launch_fixed<2>, launch_fixed<3>, launch_fixed<4>,
                              launch_fixed<5>, launch_fixed<6>, launch_fixed<7>};
} // namespace

int pb_focal_run_cuda(const struct pb_focal *focal, const struct pb_plane *in,
                      const struct pb_plane *out, int32_t image_w, int32_t image_h, void *stream)
{
    if (focal->radius < 1 || 2 * focal->radius + 1 > pb_focal_side_max(focal->kind)) {
        return -EINVAL;
    }
    if (out->rect.w <= 0 || out->rect.h <= 0) {
        return 0;
    }
    const patch_task task = {*in, *out, image_w, image_h, focal->edge, 0, 0};
    const auto queue = static_cast<cudaStream_t>(stream);
    if (pb_device::is_of_fixed_reach(*focal)) {
        launchers[focal->radius - 1](*focal, task, queue);
    } else {
        launch(any_reach{focal->radius}, *focal, task, queue);
    }
    return cudaGetLastError() == cudaSuccess ? 0 : -EIO;
}
