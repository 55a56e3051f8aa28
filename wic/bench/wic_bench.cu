// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// wic-bench: compares the strategies to process chunks on a GPU, in one run.
//   --frontier   latency against offered load, and what it costs (frontier.cu)
//   --check      every element of every result of every strategy
//   --neighbours what waiting costs compute kernels on the same multiprocessors (beside.cu)
//   --shares     what a stream and other kernels cost each other (shares.cu)
//   --joins      what a join of tasks costs (joins.cu)
//   --guests     ordinary kernels that wait for frames (guests.cu)
//   --ablation   wic's kernel with parts exchanged (ablation.cu)
//   by default   throughput, latency of one chunk at a time and leaving (table.cu)
// Usage: wic-bench --help.
// Exit: 0, or 1 when an element was wrong or the kernel did not leave as it must.
#include "wic/bench/guests.cuh"
#include "wic/bench/joins.cuh"
#include "wic/bench/shares.cuh"
#include "wic/bench/patterns/patterns.cuh"
#include "wic/bench/measure/report.cuh"

#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

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
    if (opt.backlog >= 0) {
        plan.engine_backlog = static_cast<size_t>(opt.backlog);
    }
    plan.depth = opt.depth ? opt.depth : plan.depth;
    plan.blocks = opt.blocks ? opt.blocks : plan.blocks;
    plan.warps = opt.warps ? opt.warps : plan.warps;
    plan.pulls = std::min(plan.blocks, opt.pulls ? opt.pulls : plan.pulls);
    return of;
}

std::vector<std::string> bench_names(const bench_options &opt)
{
    std::vector<std::string> names = bench_split(opt.strategies);
    if (opt.strategies == "all") {
        names.clear();
        for (const strategy_kind &kind : bench_strategies()) {
            names.push_back(kind.name);
        }
    }
    return names;
}

namespace
{
int measure(const bench_options &opt)
{
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
    } else if (opt.ablation) {
        measure_ablation(opt, pool, &report);
    } else if (!opt.neighbours.empty()) {
        measure_beside(opt, pool, opt.neighbours, &report);
    } else {
        measure_table(opt, pool, &report);
    }
    if (!opt.json.empty()) {
        write_report(opt.json, report);
    }
    return report.wrong ? 1 : 0;
}

// In a child, as the daemon ends when it has no clients.
int measure_with_mps(const bench_options &opt)
{
    std::string why;
    if (!start_mps(&why)) {
        printf("no MPS: %s\n", why.c_str());
        return 0;
    }
    fflush(stdout);
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        const int rc = measure(opt);
        fflush(stdout);
        _exit(rc);
    }
    if (child > 0) {
        waitpid(child, &status, 0);
    }
    stop_mps();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
} // namespace

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
    // Streams that wait must not share a hardware queue with others.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    if (opt.serve) {
        return serve_other_process();
    }
    if (opt.lanes) {
        return (opt.soak ? soak_lanes(opt.soak, opt.lanes) : share_lanes_fairly(opt.seconds)) ? 0
                                                                                              : 1;
    }
    if (opt.soak) {
        return soak(opt.soak, opt.transport) ? 0 : 1;
    }
    if (opt.ways_out) {
        return ways_out() ? 0 : 1;
    }
    if (opt.replay) {
        return replay() ? 0 : 1;
    }
    if (opt.guests) {
        return measure_guests() ? 0 : 1;
    }
    if (opt.joins) {
        return measure_joins() ? 0 : 1;
    }
    if (opt.shares) {
        return measure_shares(opt) ? 0 : 1;
    }
    if (!opt.patterns.empty()) {
        return measure_patterns(opt) ? 0 : 1;
    }
    return opt.neighbours == "mps" ? measure_with_mps(opt) : measure(opt);
}
