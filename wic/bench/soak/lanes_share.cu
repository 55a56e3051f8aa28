// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// How lanes share a kernel. One link alone, with a kernel of its own and as a lane: throughput with
// all slots full, latency of one chunk at a time. Then several lanes with all slots full: of equal
// priority, and one of a higher priority than another.
#include "wic/bench/base/ndvi.cuh"
#include "wic/device/lanes.cuh"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace
{
constexpr uint32_t chunk_slots = 64;

__global__ void __launch_bounds__(1024, 1) share_alone(const __grid_constant__ wic_view view)
{
    wic_resident(view, [&](const wic_piece &piece) {
        ndvi_piece(piece.in, piece.out, piece.units, piece.thread, piece.threads);
    });
}

__global__ void __launch_bounds__(1024, 1) share_lanes(const __grid_constant__ wic_lanes lanes)
{
    wic_resident_lanes(lanes, [&](const wic_piece &piece, const void *) {
        ndvi_piece(piece.in, piece.out, piece.units, piece.thread, piece.threads);
    });
}

struct slots {
    unsigned char *in = nullptr, *out = nullptr;

    explicit slots(size_t chunk)
    {
        CUDA_MUST(cudaHostAlloc(reinterpret_cast<void **>(&in), chunk_slots * chunk, 0));
        CUDA_MUST(cudaHostAlloc(reinterpret_cast<void **>(&out), chunk_slots * chunk / 2, 0));
        for (size_t i = 0; i < chunk_slots * chunk / 2; i++) {
            reinterpret_cast<uint16_t *>(in)[i] = static_cast<uint16_t>(i * 40503u >> 3);
        }
    }
    ~slots()
    {
        cudaFreeHost(in);
        cudaFreeHost(out);
    }
    slots(const slots &) = delete;
};

wic_transfer_plan plan_of(size_t chunk)
{
    wic_gpu gpu;
    wic_transfer_plan plan = {};
    const wic_tile_shape shape = {chunk, in_unit, out_unit};
    if (wic_gpu_read(0, &gpu) != 0 || wic_transfer_plan_choose(&gpu, &shape, nullptr, &plan) != 0) {
        bench_fail("no transfer plan for this GPU", __LINE__);
    }
    plan.engine_backlog = 0;
    return plan;
}

wic_link *make_link(const slots &s, size_t chunk, wic_launch *launch, int32_t priority)
{
    wic_link_options options = {};
    options.in = s.in;
    options.out = s.out;
    options.in_stride = chunk;
    options.out_stride = chunk / 2;
    options.in_slots = options.out_slots = chunk_slots;
    options.plan = plan_of(chunk);
    options.kernel = reinterpret_cast<const void *>(share_alone);
    options.launch = launch;
    options.priority = priority;
    wic_link *link = nullptr;
    if (wic_link_create(&options, &link) != 0) {
        bench_fail("a link cannot be made", __LINE__);
    }
    return link;
}

wic_launch *make_launch(size_t chunk)
{
    const wic_transfer_plan plan = plan_of(chunk);
    wic_launch_options options = {};
    options.kernel = reinterpret_cast<const void *>(share_lanes);
    options.warps = plan.warps;
    options.depth = plan.depth;
    options.stage_bytes = (plan.in_piece + 127) / 128 * 128;
    options.blocks = std::max(plan.blocks, WIC_LANES_MAX + 1);
    wic_launch *launch = nullptr;
    if (wic_launch_create(&options, &launch) != 0) {
        bench_fail("a launch cannot be made", __LINE__);
    }
    return launch;
}

struct flow {
    wic_link *link;
    size_t chunk;
    uint64_t done = 0;
};

void post(const flow &f, uint64_t tile)
{
    const wic_link_tile t = {
        tile, static_cast<uint32_t>(f.chunk / in_unit), f.chunk, f.chunk / 2, nullptr, 0};
    if (wic_link_post(f.link, &t) != 0) {
        bench_fail("a chunk cannot be posted", __LINE__);
    }
}

// With up to `depth` chunks under way, until `stop`, but for 20 s at most.
void pump(flow *f, uint32_t depth, const std::atomic<bool> *stop)
{
    uint64_t posted = 0;
    const double start = bench_seconds();
    while (!stop->load(std::memory_order_relaxed) || f->done < posted) {
        while (!stop->load(std::memory_order_relaxed) && posted - f->done < depth) {
            post(*f, posted++);
        }
        while (f->done < posted && wic_link_done(f->link, f->done)) {
            f->done++;
        }
        if (f->done % 256 == 0) {
            wic_link_beat(f->link);
        }
        if (bench_seconds() - start > 20) {
            bench_fail("chunks do not come back", __LINE__);
        }
    }
    wic_link_close(f->link, posted);
}

// Chunks of each flow in so many seconds.
std::vector<uint64_t> pump_all(std::vector<flow> *flows, uint32_t depth, double seconds)
{
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (flow &f : *flows) {
        if (wic_link_start(f.link, 0, 0) < 0) {
            bench_fail("a link does not start", __LINE__);
        }
    }
    for (flow &f : *flows) {
        threads.emplace_back([&f, depth, &stop] { pump(&f, depth, &stop); });
    }
    const double start = bench_seconds();
    while (bench_seconds() - start < seconds) {
        std::this_thread::yield();
    }
    std::vector<uint64_t> counts;
    for (const flow &f : *flows) {
        counts.push_back(__atomic_load_n(&f.done, __ATOMIC_RELAXED));
    }
    stop = true;
    for (size_t i = 0; i < threads.size(); i++) {
        threads[i].join();
        if (wic_link_join((*flows)[i].link, 2000000000) != 0) {
            bench_fail("a lane is not left", __LINE__);
        }
    }
    return counts;
}

bool is_right(const slots &s, size_t chunk)
{
    const uint16_t *in = reinterpret_cast<const uint16_t *>(s.in);
    const int16_t *out = reinterpret_cast<const int16_t *>(s.out);
    const wic_transfer_plan plan = plan_of(chunk);
    const size_t units = chunk / in_unit;
    for (size_t unit = 0; unit < units; unit++) {
        const size_t piece = unit / plan.piece_units, at = unit % plan.piece_units;
        const size_t n = std::min<size_t>(plan.piece_units, units - piece * plan.piece_units);
        const uint16_t *bands = in + 2 * piece * plan.piece_units;
        if (out[unit] != ndvi_pixel(bands[at], bands[n + at])) {
            return false;
        }
    }
    return true;
}

struct figures {
    double gbs, us;
};

figures alone(size_t chunk, bool as_lane, double seconds)
{
    const slots s(chunk);
    wic_launch *launch = as_lane ? make_launch(chunk) : nullptr;
    std::vector<flow> flows = {{make_link(s, chunk, launch, 0), chunk}};
    const double full = static_cast<double>(pump_all(&flows, chunk_slots, seconds)[0]) / seconds;
    flows[0].done = 0;
    const double one = static_cast<double>(pump_all(&flows, 1, seconds)[0]) / seconds;
    const bool right = is_right(s, chunk);
    wic_link_destroy(flows[0].link);
    wic_launch_destroy(launch);
    if (!right) {
        bench_fail("a result is wrong", __LINE__);
    }
    return {1e-9 * full * static_cast<double>(chunk), 1e6 / one};
}

// GB/s of each of several lanes.
bool together(size_t chunk, const std::vector<int32_t> &priorities, double seconds)
{
    std::vector<slots *> memory;
    wic_launch *launch = make_launch(chunk);
    std::vector<flow> flows;
    for (const int32_t priority : priorities) {
        memory.push_back(new slots(chunk));
        flows.push_back({make_link(*memory.back(), chunk, launch, priority), chunk});
    }
    const std::vector<uint64_t> counts = pump_all(&flows, chunk_slots, seconds);
    uint64_t sum = 0;
    bool right = true;
    printf("lanes of priority");
    for (size_t i = 0; i < flows.size(); i++) {
        sum += counts[i];
        printf(" %d", priorities[i]);
        right = right && is_right(*memory[i], chunk);
        wic_link_destroy(flows[i].link);
        delete memory[i];
    }
    const auto rate = [&](uint64_t n) {
        return 1e-9 * static_cast<double>(n) * static_cast<double>(chunk) / seconds;
    };
    printf(", %zu KiB: %.1f GB/s, of each", chunk >> 10, rate(sum));
    for (const uint64_t n : counts) {
        printf(" %.1f", rate(n));
    }
    uint64_t launches = 0;
    uint32_t open = 0;
    wic_launch_count(launch, &launches, &open);
    wic_launch_destroy(launch);
    const uint64_t least = *std::min_element(counts.begin(), counts.end());
    const uint64_t most = *std::max_element(counts.begin(), counts.end());
    const bool equal = priorities.front() == priorities.back();
    const bool fair = equal ? most < least * 5 / 4 : counts[0] > 4 * counts[1] && counts[1] > 0;
    printf(", %llu launch, %s\n", static_cast<unsigned long long>(launches),
           right && fair && launches == 1 ? "ok" : "FAIL");
    return right && fair && launches == 1;
}
} // namespace

bool share_lanes_fairly(double seconds)
{
    printf("%-8s %22s %22s\n", "", "kernel of its own", "one lane");
    for (const size_t kib : {4, 16, 64, 256, 1024}) {
        double own_gbs = 0, lane_gbs = 0, own_us = 1e9, lane_us = 1e9;
        for (int round = 0; round < 3; round++) {
            const figures a = alone(kib << 10, false, seconds), b = alone(kib << 10, true, seconds);
            own_gbs = std::max(own_gbs, a.gbs);
            lane_gbs = std::max(lane_gbs, b.gbs);
            own_us = std::min(own_us, a.us);
            lane_us = std::min(lane_us, b.us);
        }
        printf("%4zu KiB %9.1f GB/s %6.1f us %9.1f GB/s %6.1f us\n", kib, own_gbs, own_us, lane_gbs,
               lane_us);
    }
    bool good = true;
    for (const size_t kib : {16, 256}) {
        good = together(kib << 10, {0, 0}, seconds) && good;
        good = together(kib << 10, {0, 0, 0, 0, 0, 0, 0, 0}, seconds) && good;
        good = together(kib << 10, {1, 0}, seconds) && good;
    }
    fflush(stdout);
    return good;
}
