// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The short comparison: throughput with all slots full, with every element of the last round
// checked; latency of one chunk at a time, 20 us apart; the time to leave.
#include "wic/bench/measure/report.cuh"

#include <algorithm>

namespace
{
constexpr double latency_limit_s = 3, pause_s = 20e-6;

// False: the shape does not fit on this GPU.
bool measure(const bench_options &opt, const std::string &name, bench_pool &pool,
             const bench_shape &shape, table_row *out)
{
    const std::unique_ptr<strategy> way = find_strategy(name).make(pool, shape);
    if (!way) {
        return false;
    }
    *out = {name, pool.chunk, shape, 0, 0, 0, 0, 0};
    bench_load load(*way, pool);
    load.saturate(opt.seconds / 10); // warm up
    pool.poison();
    const load_result full = load.saturate(opt.seconds);
    out->gbs = full.gbs;
    for (uint32_t slot = 0; slot < std::min<uint64_t>(way->slots, full.samples); slot++) {
        out->wrong += pool.wrong_in(slot, way->results(pool, slot));
    }
    const double each = 1e-6 * load.one_by_one(20, pause_s).p50_us + pause_s;
    const int most = static_cast<int>(latency_limit_s / each);
    const load_result alone = load.one_by_one(std::min(opt.samples, std::max(100, most)), pause_s);
    out->p50_us = alone.p50_us;
    out->p99_us = alone.p99_us;
    out->leave_ms = way->leave_ms();
    return true;
}

void print(const table_row &r)
{
    printf("%-15s %7zu %8.2f %9.1f %9.1f %8.2f %8llu  %s\n", r.strategy.c_str(), r.chunk / 1024,
           r.gbs, r.p50_us, r.p99_us, r.leave_ms, static_cast<unsigned long long>(r.wrong),
           bench_shape_text(r.shape).c_str());
    fflush(stdout);
}

// Polling kernels have their own best shape: the best of three, by throughput.
std::vector<bench_shape> shapes_of(const bench_options &opt, const std::string &name,
                                   const bench_case &of)
{
    const std::vector<bench_shape> all = find_strategy(name).shapes(of);
    if (name.rfind("poll", 0) != 0) {
        return {all[all.size() / 2]};
    }
    std::vector<bench_shape> shapes;
    for (uint32_t half_blocks : {1, 2, 4}) {
        bench_shape shape = {of.plan, 0, 0, 0};
        shape.plan.pulls = 1; // not for them
        if (!opt.blocks && !opt.warps) {
            shape.plan.blocks = of.gpu.multiprocessors * half_blocks / 2;
            shape.plan.warps = 8;
        }
        shapes.push_back(shape);
    }
    return shapes;
}

// Every shape of plan for wic: what fills the table of transfer_plan.c.
void sweep(const bench_options &opt, bench_pool &pool, const bench_case &of, bench_report *report)
{
    for (size_t piece : {8192, 16384, 32768}) {
        if (piece > of.chunk) {
            break;
        }
        for (uint32_t half_blocks : {1, 2, 4}) {
            for (uint32_t pulls : {4, 6, 8, 12, 16, 24, 48}) {
                bench_shape shape = {of.plan, 0, 0, 0};
                bench_set_piece(&shape.plan, piece, of.chunk);
                shape.plan.blocks = of.gpu.multiprocessors * half_blocks / 2;
                shape.plan.pulls = pulls;
                table_row row;
                if (measure(opt, "wic", pool, shape, &row)) {
                    print(row);
                    report->table.push_back(row);
                }
            }
        }
    }
}

void measure_size(const bench_options &opt, bench_pool &pool, const bench_case &of,
                  bench_report *report)
{
    for (const std::string &name : bench_names(opt)) {
        table_row best = {}, row;
        uint64_t wrong = 0;
        for (const bench_shape &shape : shapes_of(opt, name, of)) {
            if (!measure(opt, name, pool, shape, &row)) {
                continue;
            }
            wrong += row.wrong;
            best = row.gbs >= best.gbs ? row : best;
        }
        if (best.strategy.empty()) {
            bench_fail("no plan fits on this GPU", __LINE__);
        }
        best.wrong = wrong; // of all shapes
        print(best);
        report->wrong += wrong;
        report->table.push_back(best);
    }
}
} // namespace

void measure_table(const bench_options &opt, bench_pool &pool, bench_report *report)
{
    printf("%-15s %7s %8s %9s %9s %8s %8s  shape\n", "strategy", "KiB", "GB/s", "p50 us", "p99 us",
           "leave ms", "wrong");
    for (size_t size : opt.sizes) {
        const bench_case of = bench_case_of(opt, size * 1024);
        pool.lay_out(of.chunk);
        opt.sweep ? sweep(opt, pool, of, report) : measure_size(opt, pool, of, report);
    }
}
