// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_CHANNEL_CUH
#define WIC_BENCH_CHANNEL_CUH
// A channel whose slots are pinned or managed memory. Make and end it while no kernel is resident.
#include "wic/bench/base/bench.cuh"
#include "wic/device/wic_device.h"

enum bench_memory { BENCH_PINNED, BENCH_MANAGED };

class bench_channel
{
  public:
    bench_channel(uint32_t slots, size_t slot_bytes, bench_memory memory);
    ~bench_channel();
    bench_channel(const bench_channel &) = delete;
    bench_channel &operator=(const bench_channel &) = delete;

    wic_channel *get() const
    {
        return channel_;
    }

  private:
    bench_memory memory_;
    void *payload_ = nullptr, *state_ = nullptr;
    wic_channel *channel_ = nullptr;
};
#endif
