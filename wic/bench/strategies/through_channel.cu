// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic as a user of wic.h gets it: the arrivals are published into a channel, the device proxy
// serves the GPU on a thread of its own, and a third thread consumes the results, parked while
// there are none. The channels use the slots of the pool, but for results of under a page, as
// slots of a channel lie pages apart. wic-step: one thread produces, serves the GPU and consumes.
#include "wic/bench/strategies/strategies.cuh"
#include "wic/device/wic_device.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

namespace
{
constexpr int64_t wait_ns = 1000000000; // for a slot that the results say is free
constexpr uint32_t naps_ns = 10000;
constexpr uint32_t batch = 16; // chunks that are handed over with one call, at most

// Threads of the host.
enum manner {
    MANNER_SPINS, // three, which spin before they sleep
    MANNER_NAPS,  // three, which take naps
    MANNER_STEPS, // one
};

class channel_memory
{
  public:
    channel_memory(uint32_t slots, size_t slot_bytes, void *payload, uint32_t nap_ns)
    {
        wic_options options = {};
        options.nap_ns = nap_ns;
        options.slots = slots;
        options.slot_bytes = slot_bytes;
        options.payload = payload;
        state_ = aligned_alloc(4096, (wic_channel_bytes(&options) + 4095) / 4096 * 4096);
        if (!state_ || wic_channel_init(state_, &options, &channel) != 0) {
            bench_fail("a channel cannot be made", __LINE__);
        }
    }

    ~channel_memory()
    {
        wic_channel_fini(channel);
        free(state_);
    }

    wic_channel *channel = nullptr;

  private:
    void *state_ = nullptr;
};

class through_channel : public strategy
{
  public:
    through_channel(const bench_pool &pool, const wic_transfer_plan &plan, manner how)
        : strategy(pool.slots), chunk_(pool.chunk), out_stride_(wic_slot_stride(pool.out_stride)),
          own_(own_results(pool)), in_(pool.slots, pool.chunk, pool.in, naps_of(how)),
          out_(pool.slots, pool.out_stride, own_ ? own_ : pool.out, naps_of(how)),
          steps_(how == MANNER_STEPS)
    {
        wic_device_options options = {};
        options.in = in_.channel;
        options.out = out_.channel;
        options.plan = plan;
        options.nap_ns = naps_of(how);
        options.kernel = resident_kernel(WAIT_PARKED);
        const int rc = wic_device_open(&options, &device_);
        if (rc == -E2BIG || rc == -ENOSPC) {
            return;
        }
        if (rc != 0) {
            bench_fail("no device between two channels", __LINE__);
        }
        if (!steps_) {
            proxy_ = std::thread([this] { status_ = wic_device_run(device_); });
            consumer_ = std::thread([this] { consume(WIC_FOREVER); });
        }
    }

    ~through_channel() override
    {
        leave_ms();
        if (device_) {
            wic_device_close(device_, nullptr);
        }
        cudaFreeHost(own_);
    }

    bool fits() const
    {
        return device_;
    }

    void submit(uint64_t end) override
    {
        while (next_ < end) {
            wic_slot slots[batch];
            const int n = wic_acquire_some(
                in_.channel, wait_ns, static_cast<uint32_t>(std::min<uint64_t>(end - next_, batch)),
                slots);
            for (int i = 0; i < n; i++) {
                slots[i].bytes = chunk_;
            }
            if (n <= 0 || wic_publish_all(in_.channel, slots, static_cast<uint32_t>(n)) != 0) {
                bench_fail("a chunk cannot be published", __LINE__);
            }
            next_ += static_cast<uint64_t>(n);
        }
    }

    uint64_t poll() override
    {
        if (steps_) {
            step();
        }
        return done_.load(std::memory_order_acquire);
    }

    double leave_ms() override
    {
        const double start = bench_seconds();
        wic_close(in_.channel);
        while (device_ && steps_ && goes_on_) {
            step();
        }
        if (proxy_.joinable()) {
            proxy_.join();
            consumer_.join();
        }
        if (status_ != 0) {
            bench_fail("the device proxy failed", __LINE__);
        }
        return 1e3 * (bench_seconds() - start);
    }

    const unsigned char *results(const bench_pool &pool, uint32_t slot) const override
    {
        return (own_ ? own_ : pool.out) + slot * out_stride_;
    }

  private:
    // NULL: the pool's will do.
    static unsigned char *own_results(const bench_pool &pool)
    {
        void *memory = nullptr;
        const size_t stride = wic_slot_stride(pool.out_stride);
        if (stride != pool.out_stride) {
            CUDA_MUST(cudaHostAlloc(&memory, pool.slots * stride, cudaHostAllocMapped));
        }
        return static_cast<unsigned char *>(memory);
    }

    static uint32_t naps_of(manner how)
    {
        return how == MANNER_NAPS ? naps_ns : 0;
    }

    void step()
    {
        if (goes_on_) {
            status_ = wic_device_step(device_);
            goes_on_ = status_ > 0;
            status_ = goes_on_ ? 0 : status_;
            consume(0);
        }
    }

    // Returns when no result arrives within the time limit.
    void consume(int64_t timeout_ns)
    {
        wic_slot slots[batch];
        for (int n; (n = wic_wait_some(out_.channel, timeout_ns, batch, slots)) > 0;) {
            wic_release_all(out_.channel, slots, static_cast<uint32_t>(n));
            done_.store(slots[n - 1].ticket + 1, std::memory_order_release);
        }
    }

    size_t chunk_, out_stride_;
    unsigned char *own_;
    channel_memory in_, out_;
    wic_device *device_ = nullptr;
    std::thread proxy_, consumer_;
    std::atomic<uint64_t> done_{0};
    uint64_t next_ = 0;
    int status_ = 0;
    const bool steps_;
    bool goes_on_ = true;
};
} // namespace

static std::unique_ptr<strategy> make(const bench_pool &pool, const bench_shape &shape, manner how)
{
    auto made = std::make_unique<through_channel>(pool, shape.plan, how);
    return made->fits() ? std::move(made) : nullptr;
}

std::unique_ptr<strategy> make_wic_channel(const bench_pool &pool, const bench_shape &shape)
{
    return make(pool, shape, MANNER_SPINS);
}

std::unique_ptr<strategy> make_wic_channel_naps(const bench_pool &pool, const bench_shape &shape)
{
    return make(pool, shape, MANNER_NAPS);
}

std::unique_ptr<strategy> make_wic_channel_steps(const bench_pool &pool, const bench_shape &shape)
{
    return make(pool, shape, MANNER_STEPS);
}
