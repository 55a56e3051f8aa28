// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/device/emulator.h"

#include "tests/device/emulate_peer.h"
#include "wic/peer/peer.cuh"
#include "wic/peer/peer_inside.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <sched.h>
#include <thread>

namespace
{
// A named barrier.
class gate
{
  public:
    void arrive(uint32_t members)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        count(members);
    }
    void park(uint32_t members)
    {
        std::unique_lock<std::mutex> lock(mutex_);
        const uint64_t round = round_;
        count(members);
        changed_.wait(lock, [&] { return round_ != round; });
    }

  private:
    void count(uint32_t members)
    {
        if (++arrived_ == members) {
            arrived_ = 0;
            round_++;
            changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    uint32_t arrived_ = 0;
    uint64_t round_ = 0;
};

struct block_memory {
    wic_peer_stage stage[WIC_PEER_DEPTH_MAX];
    std::vector<unsigned char> buffer[WIC_PEER_DEPTH_MAX];
    gate gates[WIC_PEER_DEPTH_MAX][3];
    uint64_t known[WIC_PARTIES_MAX] = {};
};

// A role's view of its block.
struct block {
    const wic_peer_view &view;
    block_memory &memory;
    const uint32_t index;

    bool leads() const
    {
        return true;
    }
    uint32_t from_leader(uint32_t value) const
    {
        return value;
    }
    uint32_t lane() const
    {
        return 0;
    }
    uint32_t lanes() const
    {
        return 1;
    }
    bool all(bool is) const
    {
        return is;
    }
    wic_peer_stage *stage(uint32_t i)
    {
        return &memory.stage[i];
    }
    unsigned char *buffer(uint32_t i)
    {
        return memory.buffer[i].data();
    }
    uint64_t *known(uint32_t party)
    {
        return &memory.known[party];
    }
    void arrive(wic_peer_gate which, uint32_t i)
    {
        memory.gates[i][which].arrive(members(which));
    }
    void park(wic_peer_gate which, uint32_t i)
    {
        memory.gates[i][which].park(members(which));
    }
    void pull(uint32_t i, const void *from, uint32_t bytes)
    {
        memcpy(buffer(i), from, bytes);
    }
    void push(void *to, uint32_t i, uint32_t bytes)
    {
        memcpy(to, buffer(i), bytes);
    }
    void written() const
    {
    }
    // Each look adds a microsecond, therefore waits end here, too.
    uint64_t now() const
    {
        static std::atomic<uint64_t> ticks{0};
        return 1000 * ++ticks;
    }
    // A thread that yields without end gets no time on a machine with other work.
    void nap(uint32_t) const
    {
        static thread_local uint32_t naps = 0;
        if (++naps % 64 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        else
            sched_yield();
    }
    uint32_t members(wic_peer_gate which) const
    {
        return which == WIC_PEER_EMPTY ? 2 : view.plan.warps + 1;
    }
};

// Content of byte i of a chunk on the way from a party.
unsigned char content(uint64_t chunk, uint32_t from, uint32_t i)
{
    return static_cast<unsigned char>(chunk * 31 + from * 77 + i * 7 + chunk / 256 + i / 256);
}

struct run {
    const emulate_peer &how;
    std::vector<wic_peer_view> views;
    std::vector<std::vector<uint64_t>> words; // in the order of the parties
    std::vector<std::vector<unsigned char>> rings;
    std::vector<wic_peer_report> reports;
    std::vector<uint32_t> counters;
    wic_peer_control control = {};
    std::vector<wic_step> steps;
    uint64_t last[WIC_PARTIES_MAX][WIC_PARTIES_MAX] = {};
    std::atomic<uint64_t> used{0}, bytes{0}, wrong{0};
    std::atomic<bool> is_over{false};

    explicit run(const emulate_peer &how)
        : how(how), views(how.parties), words(how.parties), reports(how.parties),
          counters(2 * how.parties), steps(how.steps, how.steps + how.step_count)
    {
        const size_t line = WIC_PEER_LINE / sizeof(uint64_t);
        for (uint32_t party = 0; party < how.parties; party++) {
            words[party].assign(line * (1 + 2 * how.parties * how.plan.lanes), 0);
            wic_peer_view &v = views[party];
            v = {};
            v.party = party;
            v.parties = how.parties;
            v.near = how.near;
            v.plan = how.plan;
            v.steps = steps.data();
            v.step_count = steps.size();
            v.started = &counters[2 * party];
            v.ended = &counters[2 * party + 1];
            v.control = &control;
            v.report = &reports[party];
            v.limit_ns = how.limit_ns;
            v.beat_ns = how.beat_ns;
        }
        for (uint32_t from = 0; from < how.parties; from++) {
            for (uint32_t to = 0; to < how.parties; to++) {
                views[from].stop[to] = words[to].data();
                rings.emplace_back(wic_peer_ring_bytes(&how.plan) + 1,
                                   how.plan.transport == WIC_PEER_LETTERS ? 0 : 0xee);
                const size_t lanes = how.plan.lanes;
                const wic_peer_way way = {
                    rings.back().data(), words[to].data() + line * (1 + from * lanes),
                    words[from].data() + line * (1 + (how.parties + to) * lanes)};
                views[from].out[to] = way;
                views[to].in[from] = way;
            }
        }
        for (const wic_step &step : steps) {
            last[step.from][step.to] = step.first + step.count - 1;
        }
    }

    void make(const wic_peer_view &v, const wic_peer_piece &p)
    {
        const bool is_it = how.fault != EMULATE_PEER_RIGHT && p.chunk == last[v.party][p.peer];
        if (p.thread == 0) {
            p.send_value(static_cast<uint32_t>(p.chunk) * 5 + v.party);
        }
        if (is_it && how.fault == EMULATE_PEER_LOST) {
            return;
        }
        const uint64_t of = is_it && how.fault == EMULATE_PEER_TWICE ? p.chunk - 1 : p.chunk;
        for (uint32_t i = p.thread; i < p.bytes; i += p.threads) {
            const bool is_wrong = is_it && how.fault == EMULATE_PEER_WRONG && i == p.bytes / 2;
            static_cast<unsigned char *>(p.data)[i] =
                static_cast<unsigned char>(content(of, v.party, p.offset + i) + is_wrong);
        }
    }
    void use(const wic_peer_piece &p)
    {
        uint64_t bad = 0, seen = 0;
        for (uint32_t i = p.thread; i < p.bytes; i += p.threads, seen++) {
            bad += static_cast<const unsigned char *>(p.data)[i] !=
                   content(p.chunk, p.peer, p.offset + i);
        }
        if (p.thread == 0 && p.stage->is_last) {
            bad += p.value != static_cast<uint32_t>(p.chunk) * 5 + p.peer;
            if (++used == how.stop_at) {
                __atomic_store_n(&control.stop, 1, __ATOMIC_RELEASE);
            }
        }
        bytes += seen;
        wrong += bad;
    }

    void start(uint32_t party, uint32_t index, block_memory *memory,
               std::vector<std::thread> *threads)
    {
        const wic_peer_view &v = views[party];
        for (auto &buffer : memory->buffer) {
            buffer.assign(how.plan.piece_bytes + 1, 0xdd);
        }
        threads->emplace_back([=, &v] {
            block b = {v, *memory, index};
            wic_peer_activator<block>(v, b).run();
        });
        threads->emplace_back([=, &v] {
            block b = {v, *memory, index};
            wic_peer_publish(v, b);
        });
        for (uint32_t thread = 0; thread < how.plan.warps; thread++) {
            threads->emplace_back([=, &v] {
                block b = {v, *memory, index};
                wic_peer_work(
                    v, b, thread, how.plan.warps, [&](const wic_peer_piece &p) { make(v, p); },
                    [&](const wic_peer_piece &p) { use(p); });
            });
        }
    }

    void go()
    {
        std::vector<block_memory> memory(size_t{how.parties} * how.plan.lanes);
        std::vector<std::thread> threads;
        std::thread host([&] {
            while (!is_over && how.beats) {
                __atomic_add_fetch(&control.beat, 1, __ATOMIC_RELEASE);
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        });
        for (uint32_t party = 0; party < how.parties; party++) {
            for (uint32_t i = 0; i < how.plan.lanes && (how.absent >> party & 1) == 0; i++) {
                start(party, i, &memory[party * how.plan.lanes + i], &threads);
            }
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
        is_over = true;
        host.join();
    }
};
} // namespace

void emulate_peer_run(const struct emulate_peer *how, struct emulate_peer_result *out_result)
{
    run r(*how);
    r.go();
    *out_result = {};
    for (uint32_t party = 0; party < how->parties; party++) {
        out_result->end[party] = static_cast<wic_peer_end>(r.reports[party].end);
    }
    out_result->used = r.used;
    out_result->bytes = r.bytes;
    out_result->wrong = r.wrong;
}
