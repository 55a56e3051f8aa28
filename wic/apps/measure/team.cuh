// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_APPS_TEAM_CUH
#define WIC_APPS_TEAM_CUH
// Threads of the host that do one piece of work together. While awake they spin.
#include "wic/spin.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

class app_team
{
  public:
    explicit app_team(unsigned threads) : threads_(threads)
    {
        for (unsigned i = 1; i < threads; i++) {
            others_.emplace_back([this, i] { serve(i); });
        }
    }
    ~app_team()
    {
        state(LEAVE);
        for (std::thread &thread : others_) {
            thread.join();
        }
    }
    app_team(const app_team &) = delete;
    app_team &operator=(const app_team &) = delete;

    unsigned threads() const
    {
        return threads_;
    }
    void wake()
    {
        state(AWAKE);
    }
    void rest()
    {
        state(ASLEEP);
    }

    // work(thread) of all threads; returns after the last one.
    template <class Work> void run(Work work)
    {
        call_ = [](void *of, unsigned thread) { (*static_cast<Work *>(of))(thread); };
        work_ = &work;
        left_.store(threads_ - 1, std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);
        work(0);
        while (left_.load(std::memory_order_acquire) != 0) {
            wic_cpu_relax();
        }
    }

  private:
    enum team_state { ASLEEP, AWAKE, LEAVE };

    void state(team_state to)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        state_.store(to, std::memory_order_release);
        changed_.notify_all();
    }
    void serve(unsigned thread)
    {
        uint32_t seen = 0;
        while (state_.load(std::memory_order_acquire) != LEAVE) {
            if (turn_.load(std::memory_order_acquire) != seen) {
                seen++;
                call_(work_, thread);
                left_.fetch_sub(1, std::memory_order_release);
            } else if (state_.load(std::memory_order_acquire) == ASLEEP) {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, [this] { return state_.load() != ASLEEP; });
            } else {
                wic_cpu_relax();
            }
        }
    }

    const unsigned threads_;
    std::vector<std::thread> others_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<team_state> state_{ASLEEP};
    std::atomic<uint32_t> turn_{0}, left_{0};
    void (*call_)(void *, unsigned) = nullptr;
    void *work_ = nullptr;
};
#endif
