// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A channel whose slots are pinned or managed memory, for as long as the object lives.
#include "wic/bench/base/channel.cuh"

#include <cstring>

bench_channel::bench_channel(uint32_t slots, size_t slot_bytes, bench_memory memory)
    : memory_(memory)
{
    wic_options options = {};
    options.slots = slots;
    options.slot_bytes = slot_bytes;
    const size_t bytes = slots * wic_slot_stride(slot_bytes);
    if (memory == BENCH_MANAGED) {
        CUDA_MUST(cudaMallocManaged(&payload_, bytes, cudaMemAttachGlobal));
    } else {
        CUDA_MUST(cudaHostAlloc(&payload_, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    }
    memset(payload_, 0, bytes); // managed pages begin at the host
    options.payload = payload_;
    state_ = aligned_alloc(4096, (wic_channel_bytes(&options) + 4095) / 4096 * 4096);
    if (!state_ || wic_channel_init(state_, &options, &channel_) != 0) {
        bench_fail("a channel cannot be made", __LINE__);
    }
}

bench_channel::~bench_channel()
{
    wic_channel_fini(channel_);
    free(state_);
    if (memory_ == BENCH_MANAGED) {
        cudaFree(payload_);
    } else {
        cudaFreeHost(payload_);
    }
}
