// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel, up to eight links: the soak's tiles through lanes of one launch, each lane with its
// own transport, and with an argument of its own by which its tiles are computed and counted. All
// flow at once, begin and end at other times, rest, and are opened again. Every element of every
// result is checked, that each piece was computed with the argument of its lane, and how often the
// kernel was launched. Then how lanes share the kernel: full slots all the time, of equal and of
// different priority; and what one lane costs beside a kernel of its own.
#include "wic/bench/soak/soak.cuh"
#include "wic/device/lanes.cuh"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

namespace
{
enum lane_work : uint32_t { PULLED, LINES, WHOLE };

struct lane_argument {
    unsigned long long *pieces, *strangers; // of this lane; with another lane's letter
    lane_work work;
    uint32_t lane;
};

// A lane's letters say its number in the upper half of the tile's.
__global__ void __launch_bounds__(1024, 1) soak_of_lanes(const __grid_constant__ wic_lanes lanes)
{
    wic_resident_lanes(lanes, [&](const wic_piece &piece, const void *argument) {
        const lane_argument a = *static_cast<const lane_argument *>(argument);
        const letter l = *static_cast<const letter *>(piece.user);
        if (piece.thread == 0) {
            atomicAdd(l.number >> 32 == a.lane ? a.pieces : a.strangers, 1ull);
        }
        if (a.work == WHOLE) {
            soak_work_whole(piece, l);
        } else if (a.work == LINES) {
            soak_work_lines(piece, l);
        } else {
            ndvi_piece(piece.in, piece.out, piece.units, piece.thread, piece.threads);
        }
    });
}

const soak_way lane_ways[WIC_LANES_MAX] = {
    {"pull", WIC_PULL_BULK, BENCH_PINNED, 0, false},
    {"lines", WIC_PULL_BULK, BENCH_PINNED, 3 * tile_units, true},
    {"copy", WIC_COPY, BENCH_PINNED, 0, false},
    {"mixed", WIC_PULL_BULK, BENCH_PINNED, 3 * tile_units, false},
    {"place", WIC_IN_PLACE, BENCH_PINNED, 0, false},
    {"lines", WIC_PULL_BULK, BENCH_PINNED, 0, true},
    {"copy", WIC_COPY, BENCH_PINNED, 0, false},
    {"pull", WIC_PULL_BULK, BENCH_PINNED, 0, false}};

constexpr uint32_t lane_warps = 16;

int make_launch(wic_launch **out)
{
    wic_gpu gpu;
    int rc = wic_gpu_read(0, &gpu);
    wic_launch_options options = {};
    options.kernel = reinterpret_cast<const void *>(soak_of_lanes);
    options.argument_bytes = (sizeof(lane_argument) + 15) / 16 * 16;
    options.warps = lane_warps;
    options.depth = 2;
    options.stage_bytes = 48 << 10;
    options.blocks = gpu.multiprocessors;
    return rc ? rc : wic_launch_create(&options, out);
}

struct lane {
    soak_way way;
    lane_argument argument = {};
    std::unique_ptr<bench_channel> in, out;
    wic_device_options options = {};
    wic_device *device = nullptr;
    int rc = 0;
    uint64_t tiles = 0, elements = 0, wrong = 0;
    wic_device_stats stats = {};
};

void open_lane(lane *l, wic_launch *launch, uint32_t index, unsigned long long *counters,
               int32_t priority)
{
    l->way = lane_ways[index % WIC_LANES_MAX];
    l->in.reset(new bench_channel(soak_slots, tile_units * in_unit, l->way.memory));
    l->out.reset(new bench_channel(soak_slots, tile_units * out_unit, l->way.memory));
    l->options.in = l->in->get();
    l->options.out = l->out->get();
    l->rc = soak_plan(l->way, &l->options);
    const bool whole = l->way.transport >= WIC_COPY;
    l->argument = {counters + 2 * index, counters + 2 * index + 1,
                   whole          ? WHOLE
                   : l->way.lines ? LINES
                                  : PULLED,
                   index};
    l->options.plan.warps = lane_warps;
    l->options.argument = &l->argument;
    l->options.argument_bytes = sizeof l->argument;
    l->options.launch = launch;
    l->options.priority = priority;
    l->rc = l->rc ? l->rc : wic_device_open(&l->options, &l->device);
}

void run_lane(const soak_table &t, lane *l, uint64_t tiles)
{
    const size_t together = soak_pixels_together(l->way, l->options.plan);
    std::thread proxy([&] { l->rc = wic_device_run(l->device); });
    std::thread producer([&] {
        soak_produce(t, l->options.in, tiles, together,
                     static_cast<uint64_t>(l->argument.lane) << 32);
    });
    l->wrong = soak_consume(t, l->options.out, &l->tiles, &l->elements,
                            static_cast<uint64_t>(l->argument.lane) << 32);
    producer.join();
    proxy.join();
}

bool say_lane(const lane &l, uint64_t tiles, const unsigned long long *counters)
{
    const unsigned long long *mine = counters + 2 * l.argument.lane;
    const bool good = l.rc == 0 && l.wrong == 0 && l.tiles == tiles && mine[0] > 0 && mine[1] == 0;
    printf("lane %u %-6s %s: %llu of %llu tiles, %llu wrong, %llu pieces, %llu of other lanes, "
           "status %d, %u launches by it, starved %.1f ms\n",
           l.argument.lane, l.way.name, good ? "ok" : "FAIL",
           static_cast<unsigned long long>(l.tiles), static_cast<unsigned long long>(tiles),
           static_cast<unsigned long long>(l.wrong), mine[0], mine[1], l.rc, l.stats.launches,
           1e-6 * static_cast<double>(l.stats.starved_ns));
    return good;
}

// n lanes at once; lane i has tiles / (i + 1) + 1 of them, and begins 20 ms after the one before.
bool flow_lanes(const soak_table &t, uint32_t n, uint64_t tiles)
{
    unsigned long long *counters, host[2 * WIC_LANES_MAX] = {};
    CUDA_MUST(cudaMalloc(&counters, sizeof host));
    CUDA_MUST(cudaMemset(counters, 0, sizeof host));
    CUDA_MUST(cudaDeviceSynchronize());
    wic_launch *launch = nullptr;
    if (make_launch(&launch) != 0) {
        bench_fail("the launch cannot be made", __LINE__);
    }
    std::vector<lane> lanes(n);
    for (uint32_t i = 0; i < n; i++) {
        open_lane(&lanes[i], launch, i, counters, 0);
        if (lanes[i].rc != 0) {
            printf("lane %u %s FAIL: not opened: %d\n", i, lanes[i].way.name, lanes[i].rc);
            return false;
        }
    }
    const double start = bench_seconds();
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < n; i++) {
        threads.emplace_back([&, i] {
            const timespec rest = {0, static_cast<long>(i) * 20000000};
            nanosleep(&rest, nullptr);
            run_lane(t, &lanes[i], tiles / (i + 1) + 1);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    const double seconds = bench_seconds() - start;
    uint64_t launches = 0;
    uint32_t open = 0;
    wic_launch_count(launch, &launches, &open);
    bool good = open == 0;
    CUDA_MUST(cudaMemcpy(host, counters, sizeof host, cudaMemcpyDeviceToHost));
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        wic_device_close(lanes[i].device, &lanes[i].stats);
        good = say_lane(lanes[i], tiles / (i + 1) + 1, host) && good;
        bytes += lanes[i].elements * in_unit;
    }
    good = wic_launch_destroy(launch) == 0 && good;
    printf("soak of %u lanes %s: %.1f s, %.1f GB/s, %llu launches of one kernel\n", n,
           good ? "ok" : "FAIL", seconds, 1e-9 * static_cast<double>(bytes) / seconds,
           static_cast<unsigned long long>(launches));
    fflush(stdout);
    cudaFree(counters);
    return good;
}
} // namespace

bool soak_lanes(uint64_t tiles, uint32_t lanes)
{
    const soak_table t = soak_make_table();
    bool good = true;
    for (uint32_t n = 1; n <= std::min(lanes, WIC_LANES_MAX); n++) {
        if (n <= 2 || n == lanes) {
            good = flow_lanes(t, n, tiles) && good;
        }
    }
    return good;
}
