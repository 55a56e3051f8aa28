// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef PB_CODEC_GROUP_CUH
#define PB_CODEC_GROUP_CUH
// What a codec's device functions know of the threads that run them, and of the time they have.
// They are templates over a thread group (kernels/thread_group.cuh), which here has votes as well,
// so that a worker with other warps in its block passes named barriers.
#include "kernels/thread_group.cuh"

// A whole block.
struct pb_codec_group : pb_block_group {
    __device__ bool any(bool vote) const
    {
        return __syncthreads_or(vote) != 0;
    }
    __device__ uint32_t count(bool vote) const
    {
        return static_cast<uint32_t>(__syncthreads_count(vote));
    }
};

__device__ __forceinline__ pb_codec_group pb_codec_block()
{
    pb_codec_group group;
    group.thread = threadIdx.x;
    group.threads = blockDim.x;
    return group;
}

__device__ __forceinline__ uint64_t pb_codec_now_ns()
{
#ifdef __CUDA_ARCH__
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return 0;
#endif
}

// Bytes before it are final: what they were stored with happens before the word is seen.
__device__ __forceinline__ void pb_codec_post(uint32_t *word, uint32_t value)
{
#ifdef __CUDA_ARCH__
    __threadfence();
#endif
    *const_cast<volatile uint32_t *>(word) = value;
}

// When a stream has to end before its end: looked at now and then by one thread.
struct pb_codec_watch {
    const uint32_t *abort; // or NULL
    uint64_t end_ns;

    // 0, or the status that ends the stream.
    __device__ uint32_t look() const
    {
        if (abort != nullptr && *const_cast<const volatile uint32_t *>(abort) != 0) {
            return PB_DECODE_ABORTED;
        }
        return pb_codec_now_ns() > end_ns ? PB_DECODE_LATE : PB_DECODED;
    }
};
#endif
