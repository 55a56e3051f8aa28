// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
// The stages of the encoder as kernels, one after the other on a stream.
#include "kernels/codec/encode_stages.cuh"
#include "wic/device/cuda_errno.h"

namespace
{
template <class Stage>
__global__ void __launch_bounds__(Stage::THREADS)
    encode_stage(const __grid_constant__ pb_encode_view view)
{
    extern __shared__ uint4 arena[];
    Stage::run(view, *reinterpret_cast<typename Stage::arena *>(arena), blockIdx.x,
               {threadIdx.x, blockDim.x});
}

template <class Stage> int launch(const pb_encode_view &view, cudaStream_t stream)
{
    constexpr size_t shared = sizeof(typename Stage::arena);
    static_assert(shared <= 48 << 10, "shared memory that every device has without opt-in");
    encode_stage<Stage><<<Stage::blocks(view), Stage::THREADS, shared, stream>>>(view);
    return wic_cuda_errno(cudaGetLastError());
}
} // namespace

int pb_encode_cuda(const struct pb_encode_batch *batch, void *stream)
{
    pb_encode_view view;
    int rc = pb_encode_view_of(batch, &view);
    if (rc < 0) {
        return rc;
    }
    pb_encode_stages(view, [&](auto stage) {
        if (rc == 0) {
            rc = launch<decltype(stage)>(view, static_cast<cudaStream_t>(stream));
        }
    });
    return rc;
}
