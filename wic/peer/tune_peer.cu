// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures the plans for chunks of one size between two devices, and the hand-over of a word.
#include "wic/device/link.h"
#include "wic/device/stay.h"
#include "wic/peer/peer.cuh"
#include "wic/peer/peer_inside.h"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace
{
constexpr uint64_t tune_bytes = uint64_t{256} << 20;
constexpr size_t tune_words = 4000, tune_turns = 5;

// Stores vectors, and loads them again; the sum keeps the loads.
__global__ void __launch_bounds__(576, 2) tune_kernel(const __grid_constant__ wic_peer_view view)
{
    uint32_t sum = 0;
    wic_peer_run(
        view,
        [&](const wic_peer_piece &p) {
            uint4 *to = static_cast<uint4 *>(p.data);
            for (uint32_t i = p.thread; i < p.bytes / 16; i += p.threads) {
                to[i] = {i, i, i, i};
            }
        },
        [&](const wic_peer_piece &p) {
            const uint4 *from = static_cast<const uint4 *>(p.data);
            for (uint32_t i = p.thread; i < p.bytes / 16; i += p.threads) {
                sum += from[i].x;
            }
        });
    if (sum == 1) {
        __nanosleep(1);
    }
}

wic_peer_options between(int from, int to, const wic_peer_plan &plan, const wic_step *steps,
                         size_t count)
{
    wic_peer_options options = {};
    options.parties = 2;
    options.plan = plan;
    options.steps = steps;
    options.step_count = count;
    options.party[0] = {from, reinterpret_cast<const void *>(tune_kernel), nullptr};
    options.party[1] = {to, reinterpret_cast<const void *>(tune_kernel), nullptr};
    return options;
}

// Seconds of party 1: the median of `turns` runs after one that warms up.
int measure(const wic_peer_options &options, size_t turns, double *out_seconds)
{
    wic_peer *peer = nullptr;
    std::vector<double> seconds(turns + 1);
    int rc = wic_peer_create(&options, &peer);
    for (size_t turn = 0; turn <= turns && rc == 0; turn++) {
        rc = wic_peer_start(peer);
        const int joined = wic_peer_join(peer, INT64_C(10000000000));
        rc = rc != 0 ? rc : joined;
        rc = rc != 0 ? rc : wic_peer_seconds(peer, 1, &seconds[turn]);
    }
    std::sort(seconds.begin() + 1, seconds.end());
    *out_seconds = seconds[1 + turns / 2];
    const int destroyed = wic_peer_destroy(peer);
    return destroyed != 0 ? destroyed : rc;
}
} // namespace

int wic_peer_tune(int from, int to, uint32_t chunk_bytes, wic_peer_plan *out_plan,
                  wic_peer_rate *rates)
{
    wic_peer_rate best = {};
    if (chunk_bytes == 0) {
        return wic_stay_refuse(-EINVAL, "a channel of words has nothing to measure");
    }
    const uint64_t chunks = std::max<uint64_t>(tune_bytes / chunk_bytes, 2048);
    for (uint32_t i = 0; i < WIC_PEER_RATES_MAX; i++) {
        wic_peer_rate rate = {};
        wic_step step = {};
        double seconds = 0;
        int rc = wic_peer_plan_choose(from, from == to ? 2 : 1, chunk_bytes,
                                      static_cast<wic_peer_transport>(i / 2), &rate.plan);
        rate.plan.each = 1 + i % 2;
        rate.plan.lanes *= rate.plan.each;
        step.to = 1;
        step.count = chunks;
        step.chunk_bytes = chunk_bytes;
        rc = rc != 0 ? rc : measure(between(from, to, rate.plan, &step, 1), 1, &seconds);
        rate.gb_s = rc == 0 ? static_cast<double>(chunks * chunk_bytes) / seconds * 1e-9 : 0.0;
        if (rc != 0 && rc != -ENOSPC && rc != -E2BIG && rc != -ENOMEM) {
            return rc;
        }
        best = rate.gb_s > best.gb_s ? rate : best;
        if (rates) {
            rates[i] = rate;
        }
    }
    if (best.gb_s <= 0) {
        return wic_stay_refuse(-ENOSPC, "no plan is possible for chunks of %u bytes", chunk_bytes);
    }
    *out_plan = best.plan;
    return 0;
}

int wic_peer_tune_word(int from, int to, double *out_us)
{
    wic_peer_plan plan = {};
    double seconds = 0;
    std::vector<wic_step> steps(2 * tune_words);
    for (size_t i = 0; i < steps.size(); i++) {
        steps[i].from = static_cast<uint16_t>(i % 2);
        steps[i].to = static_cast<uint16_t>(1 - i % 2);
        steps[i].first = i / 2;
        steps[i].count = steps[i].chunk_bytes = 1;
    }
    int rc = wic_peer_plan_choose(from, from == to ? 2 : 1, 0, WIC_PEER_STORES, &plan);
    plan.lanes = 1;
    rc = rc != 0
             ? rc
             : measure(between(from, to, plan, steps.data(), steps.size()), tune_turns, &seconds);
    *out_us = seconds * 1e6 / static_cast<double>(steps.size());
    return rc;
}
