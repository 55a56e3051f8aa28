// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_DECODE_LAUNCH_CUH
#define PB_DECODE_LAUNCH_CUH
// What the kernels of all codecs share: a thread block a stream of a batch, and how they are
// launched.
#include "kernels/codec/decode_device.h"

#include "kernels/codec/codec_group.cuh"
#include "wic/device/cuda_errno.h"

constexpr uint64_t PB_DECODE_LIMIT_NS = UINT64_C(10000000000);

// decode(group, stream, progress, watch, &bytes) returns a status, by all threads of the block.
template <class DECODE>
__device__ __forceinline__ void pb_decode_each(const pb_decode_batch &batch, const DECODE &decode)
{
    const uint32_t i = blockIdx.x;
    const pb_decode_stream stream = batch.streams[i];
    const pb_codec_group group = pb_codec_block();
    pb_codec_watch watch;
    watch.abort = batch.abort;
    watch.end_ns = pb_codec_now_ns() + (batch.limit_ns != 0 ? batch.limit_ns : PB_DECODE_LIMIT_NS);
    uint32_t *const progress = batch.progress != nullptr ? batch.progress + i : nullptr;
    uint32_t bytes = 0;
    const uint32_t status = decode(group, stream, progress, watch, &bytes);
    if (group.thread == 0) {
        pb_decode_result result;
        result.status = status;
        result.bytes = bytes;
        batch.results[i] = result;
    }
}

template <class KERNEL>
int pb_decode_launch(KERNEL kernel, uint32_t threads, size_t shared_bytes,
                     const pb_decode_batch *batch, void *stream)
{
    if (batch->n == 0) {
        return 0;
    }
    cudaError_t rc = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(shared_bytes));
    if (rc == cudaSuccess) {
        kernel<<<batch->n, threads, shared_bytes, static_cast<cudaStream_t>(stream)>>>(*batch);
        rc = cudaGetLastError();
    }
    return wic_cuda_errno(rc) < 0 ? -EIO : 0;
}
#endif
