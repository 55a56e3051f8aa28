// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APP_DEMANDCPY_CUH
#define WIC_APP_DEMANDCPY_CUH
// demandcpy, an application-level copy of the hardware of DemandCpy: chunks are in managed memory;
// the first page of a chunk moves by a fault of its reader, all others are prefetched meanwhile, as
// a thread of the host requests it. Words are pinned, and polled as in poll-elected.
#include "wic/apps/strategies/resident_monitor.cuh"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

class demandcpy_side : public resident_monitor_side
{
  public:
    template <class A>
    explicit demandcpy_side(const app_place<A> &place)
        : resident_monitor_side(place), device_(place.device)
    {
        APP_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        thread_ = std::thread([this] { prefetch(); });
    }
    ~demandcpy_side()
    {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
        cudaStreamDestroy(stream_);
    }
    demandcpy_side(const demandcpy_side &) = delete;
    demandcpy_side &operator=(const demandcpy_side &) = delete;

    wic_view ready(const resident_view &r, uint32_t blocks, uint32_t warps, cudaStream_t stream)
    {
        down_bytes_ = r.down_bytes;
        up_bytes_ = r.up_bytes;
        return resident_monitor_side::ready(r, blocks, warps, stream);
    }
    void sent(unsigned char *chunk)
    {
        push({chunk, down_bytes_, {cudaMemLocationTypeDevice, device_}});
    }
    void reading(unsigned char *chunk)
    {
        push({chunk, up_bytes_, {cudaMemLocationTypeHost, 0}});
    }
    void rest()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return wanted_.empty() && !is_busy_; });
        APP_MUST(cudaStreamSynchronize(stream_));
    }

  private:
    static constexpr size_t page = 4096;
    struct want {
        unsigned char *chunk;
        size_t bytes;
        cudaMemLocation to;
    };

    void push(const want &chunk)
    {
        if (chunk.bytes > page) {
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                wanted_.push_back(chunk);
            }
            changed_.notify_all();
        }
    }
    void prefetch()
    {
        APP_MUST(cudaSetDevice(device_));
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return ends_ || !wanted_.empty(); });
            if (wanted_.empty()) {
                return;
            }
            const want next = wanted_.front();
            wanted_.pop_front();
            is_busy_ = true;
            lock.unlock();
            APP_MUST(
                cudaMemPrefetchAsync(next.chunk + page, next.bytes - page, next.to, 0, stream_));
            lock.lock();
            is_busy_ = false;
            changed_.notify_all();
        }
    }

    const int device_;
    size_t down_bytes_ = 0, up_bytes_ = 0;
    cudaStream_t stream_ = nullptr;
    std::mutex mutex_; // protects the members below
    std::condition_variable changed_;
    std::deque<want> wanted_;
    bool ends_ = false, is_busy_ = false;
    std::thread thread_;
};

template <class A>
std::unique_ptr<app_strategy<A>> app_by_demandcpy(const app_place<A> &place, std::string *why)
{
    using way = resident_mirrored<1, RESIDENT_HALF>;
    using strategy = resident_strategy<A, way::argument, demandcpy_side>;
    auto made = strategy::open(place, {false, true}, why);
    if (made != nullptr) {
        made->template add<way>(2 * static_cast<uint32_t>(place.processors));
    }
    return strategy::fit(std::move(made), why);
}
#endif
