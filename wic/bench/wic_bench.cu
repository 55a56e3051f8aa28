// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-bench: compares the strategies to process chunks on a GPU, in one run.
//   --frontier   latency against offered load, and what it costs (frontier.cu)
//   --check      every element of every result of every strategy
//   by default   throughput, latency of one chunk at a time and leaving (table.cu), and what
//                waiting warps cost compute warps on the same multiprocessors (neighbours.cu)
// Usage: wic-bench --help.
// Exit: 0, or 1 when an element was wrong or the kernel did not leave as it must.
#include "wic/bench/report.cuh"

#include <algorithm>

namespace
{
const char *const waiting_names[] = {"wic", "poll-host", "poll-device", "poll-nanosleep"};

void measure_beside(const bench_options &opt, bench_pool &pool, bench_report *report)
{
    printf("%-15s %7s %8s %8s\n", "waiting", "warps", "FMA", "memory");
    pool.lay_out(16384);
    for (const std::string &name : bench_split(opt.strategies)) {
        for (int kind = WAIT_PARKED; kind <= WAIT_POLL_NANOSLEEP; kind++) {
            if (name != waiting_names[kind]) {
                continue;
            }
            for (const size_t beside_warps : opt.beside) {
                const uint32_t warps = static_cast<uint32_t>(beside_warps);
                neighbours slow;
                if (!measure_neighbours(static_cast<wait_kind>(kind), pool, warps, &slow)) {
                    printf("%-15s %7u  no room on a multiprocessor for both\n", name.c_str(),
                           warps);
                    continue;
                }
                printf("%-15s %7u %8.3f %8.3f\n", name.c_str(), warps, slow.fma, slow.memory);
                fflush(stdout);
                report->beside.push_back({name, warps, slow});
            }
        }
    }
}
} // namespace

wic_gpu bench_gpu()
{
    int device = 0;
    wic_gpu gpu;
    CUDA_MUST(cudaGetDevice(&device));
    if (wic_gpu_read(device, &gpu) != 0) {
        bench_fail("the GPU does not answer", __LINE__);
    }
    return gpu;
}

bench_case bench_case_of(const bench_options &opt, size_t chunk)
{
    bench_case of = {bench_gpu(), chunk, {}};
    wic_transfer_plan &plan = of.plan;
    const wic_tile_shape shape = {chunk, in_unit, out_unit};
    if (wic_transfer_plan_choose(&of.gpu, &shape, nullptr, &plan) != 0) {
        bench_fail("no transfer plan for this GPU", __LINE__);
    }
    if (opt.piece) {
        bench_set_piece(&plan, opt.piece, chunk);
    }
    if (opt.results >= 0) {
        plan.results = static_cast<wic_results>(opt.results);
    }
    plan.depth = opt.depth ? opt.depth : plan.depth;
    plan.blocks = opt.blocks ? opt.blocks : plan.blocks;
    plan.warps = opt.warps ? opt.warps : plan.warps;
    plan.pulls = std::min(plan.blocks, opt.pulls ? opt.pulls : plan.pulls);
    return of;
}

int main(int argc, char **argv)
{
    bench_options opt;
    if (!bench_parse(argc, argv, &opt)) {
        return 2;
    }
    if (opt.help) {
        bench_help();
        return 0;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); // no first launch beside a resident kernel
    if (opt.soak) {
        return soak(opt.soak, opt.transport) ? 0 : 1;
    }
    if (opt.ways_out) {
        return ways_out() ? 0 : 1;
    }
    if (opt.replay) {
        return replay() ? 0 : 1;
    }
    bench_pool pool(opt.window << 20, opt.huge);
    if (opt.park_ms > 0) {
        pool.lay_out(16384);
        park_for(opt.park_ms, pool, bench_case_of(opt, pool.chunk).plan);
        return 0;
    }
    bench_report report;
    if (opt.check) {
        check_results(opt, pool, &report);
    } else if (opt.frontier) {
        measure_frontier(opt, pool, &report);
    } else {
        measure_table(opt, pool, &report);
        if (!opt.beside.empty() && !opt.sweep) {
            measure_beside(opt, pool, &report);
        }
    }
    if (!opt.json.empty()) {
        write_report(opt.json, report);
    }
    return report.wrong ? 1 : 0;
}
