// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel of work.cuh: a worker a thread block, four of them on a multiprocessor where the arena
// allows it. Two of it: 4 pixels or 1 a thread in the chain.
#include "kernels/chain/chain_block.cuh"
#include "kernels/work/work.cuh"
#include "wic/device/cuda_errno.h"

namespace
{
template <int PX>
__device__ __noinline__ void run_part(const pb_work_view &view, const pb_tile_in &in,
                                      const pb_rect &part, float *out, size_t out_px, void *shared)
{
    float *const scratch = view.scratch + blockIdx.x * view.scratch_px;
    pb_chain_block_run<PX, pb_chain_kind::PLANES>(view.chain, in, part, out, out_px,
                                                  {shared, scratch, view.scratch_plane_px},
                                                  pb_codec_block());
}

template <int PX>
__global__ void __launch_bounds__(PB_WORK_THREADS, 4)
    work(const __grid_constant__ pb_work_view view)
{
    extern __shared__ __align__(16) unsigned char memory[];
    auto &mine = *reinterpret_cast<pb_work::arena *>(memory);
    const pb_codec_group group = pb_codec_block();
    pb_work_run(
        view, mine,
        [&](const pb_tile_in &in, const pb_rect &part, float *out, size_t out_px, void *shared) {
            run_part<PX>(view, in, part, out, out_px, shared);
        },
        group);
}

typedef void (*kernel)(pb_work_view);

kernel kernel_of(int px)
{
    return px == 4 ? work<4> : work<1>;
}

cudaError_t let_have_shared(int px)
{
    return cudaFuncSetAttribute(kernel_of(px), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(sizeof(pb_work::arena)));
}
} // namespace

uint32_t pb_work_chain_shared(void)
{
    return sizeof(pb_work::stage_memory);
}

int pb_work_residents(int px, uint32_t *out_workers)
{
    int device = 0, processors = 0, blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    error =
        error ? error : cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    error = error ? error : let_have_shared(px);
    error = error ? error
                  : cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                        &blocks, kernel_of(px), PB_WORK_THREADS, sizeof(pb_work::arena));
    if (error != cudaSuccess || blocks == 0) {
        (void)cudaGetLastError();
        return error == cudaSuccess || error == cudaErrorInvalidValue ? -EOPNOTSUPP
                                                                      : wic_cuda_errno(error);
    }
    *out_workers = static_cast<uint32_t>(blocks * processors);
    return 0;
}

int pb_work_launch(const struct pb_work_view *view, int px, uint32_t workers, void *stream)
{
    if (workers == 0 || view->encode.batch.n_blocks == 0) {
        return -EINVAL;
    }
    int device = 0, processors = 0;
    cudaError_t error = cudaGetDevice(&device);
    error =
        error ? error : cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    error = error ? error : let_have_shared(px);
    if (error == cudaSuccess) {
        pb_work_view own = *view;
        // A decoding that is alone on a multiprocessor takes half the time of one among four. Where
        // all workers decode, nothing is gained.
        if (view->n_records - view->encode.batch.n_blocks < 2 * static_cast<uint32_t>(processors)) {
            own.ready.spread = 1u << PB_WORK_DECODE;
            own.ready.spread_blocks = static_cast<uint32_t>(processors);
        }
        kernel_of(px)<<<workers, PB_WORK_THREADS, sizeof(pb_work::arena),
                        static_cast<cudaStream_t>(stream)>>>(own);
        error = cudaGetLastError();
    }
    return wic_cuda_errno(error) < 0 ? -EIO : 0;
}
