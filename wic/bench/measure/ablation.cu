// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures wic's kernel with its gate, its pull and its credit limiter exchanged: throughput,
// latency of one chunk at a time, and what an idle kernel costs its neighbours. Each round tries
// all of them in turn.
#include "wic/bench/measure/ablation.cuh"
#include "wic/bench/measure/report.cuh"

#include <algorithm>

namespace
{
constexpr double pause_s = 20e-6;
constexpr int samples = 300;
const char *const gates[] = {"named barrier", "mbarrier", "spin on shared", "spin on board"};
const char *const pulls[] = {"bulk", "loads"};
const char *const bystanders[] = {"FMA", "memory", "L1"};

struct variant {
    ablation_gate gate;
    ablation_pull pull;
    bool limited; // by credits
    std::vector<double> gbs, p50_us, p99_us, slower[NEIGHBOUR_KINDS];
};

wic_transfer_plan plan_of(const variant &one, const bench_case &of)
{
    wic_transfer_plan plan = of.plan;
    plan.results = WIC_PUSH_STORES;
    if (!one.limited) {
        plan.pulls = plan.blocks;
    }
    return plan;
}

void measure(const bench_options &opt, const bench_pool &pool, const bench_case &of,
             bystander &other, const double *alone, variant *one)
{
    const std::unique_ptr<strategy> way =
        make_resident(ablation_kernel(one->gate, one->pull), pool, plan_of(*one, of));
    if (!way) {
        bench_fail("wic's plan does not fit", __LINE__);
    }
    bench_load load(*way, pool);
    load.one_by_one(3, pause_s);
    one->gbs.push_back(load.saturate(opt.seconds).gbs);
    const load_result each = load.one_by_one(samples, pause_s);
    one->p50_us.push_back(each.p50_us);
    one->p99_us.push_back(each.p99_us);
    speed_beside_idle(other, NEIGHBOUR_FMA, way.get());
    for (int kind = 0; kind < NEIGHBOUR_KINDS; kind++) {
        one->slower[kind].push_back(
            alone[kind] / speed_beside_idle(other, static_cast<neighbour_kind>(kind), way.get()));
    }
    way->leave_ms();
}

// Every element of some chunks, before anything is timed.
uint64_t wrong_of(bench_pool &pool, const bench_case &of, const variant &one)
{
    const std::unique_ptr<strategy> way =
        make_resident(ablation_kernel(one.gate, one.pull), pool, plan_of(one, of));
    return way ? bench_load(*way, pool).check(pool, std::min<uint64_t>(2 * way->slots, 1000)) : 0;
}

ablation_row summary(const variant &one, const bench_case &of)
{
    ablation_row row = {gates[one.gate], pulls[one.pull], one.limited, of.chunk, {}, {}, {}, {}};
    row.gbs = bench_quartiles(one.gbs);
    row.p50_us = bench_quartiles(one.p50_us);
    row.p99_us = bench_quartiles(one.p99_us);
    for (int kind = 0; kind < NEIGHBOUR_KINDS; kind++) {
        row.slower[kind] = bench_quartiles(one.slower[kind]);
    }
    return row;
}

void print(const ablation_row &r)
{
    printf("%7zu %-15s %-6s %-8s %8.2f %8.1f %8.1f %8.3f %8.3f %8.3f\n", r.chunk / 1024, r.gate,
           r.pull, r.limited ? "yes" : "no", r.gbs.middle, r.p50_us.middle, r.p99_us.middle,
           r.slower[NEIGHBOUR_FMA].middle, r.slower[NEIGHBOUR_MEMORY].middle,
           r.slower[NEIGHBOUR_L1].middle);
    fflush(stdout);
}

void measure_size(const bench_options &opt, bench_pool &pool, size_t chunk, bystander &other,
                  bench_report *report)
{
    const bench_case of = bench_case_of(opt, chunk);
    pool.lay_out(chunk);
    std::vector<variant> all;
    for (int gate = 0; gate < GATES; gate++) {
        if (gate == GATE_MBARRIER && bench_code_architecture() < 90) {
            continue;
        }
        for (int pull = 0; pull < PULLS; pull++) {
            for (bool limited : {true, false}) {
                all.push_back({static_cast<ablation_gate>(gate),
                               static_cast<ablation_pull>(pull),
                               limited,
                               {},
                               {},
                               {},
                               {}});
                report->wrong += wrong_of(pool, of, all.back());
            }
        }
    }
    for (uint32_t round = 0; round < opt.rounds; round++) {
        double alone[NEIGHBOUR_KINDS];
        speed_beside_idle(other, NEIGHBOUR_FMA, nullptr);
        for (int kind = 0; kind < NEIGHBOUR_KINDS; kind++) {
            alone[kind] = speed_beside_idle(other, static_cast<neighbour_kind>(kind), nullptr);
        }
        for (variant &one : all) {
            measure(opt, pool, of, other, alone, &one);
        }
    }
    for (const variant &one : all) {
        report->ablation.push_back(summary(one, of));
        print(report->ablation.back());
    }
}
} // namespace

void measure_ablation(const bench_options &opt, bench_pool &pool, bench_report *report)
{
    local_bystander other;
    printf("%7s %-15s %-6s %-8s %8s %8s %8s %8s %8s %8s\n", "KiB", "gate", "pull", "credits",
           "GB/s", "p50 us", "p99 us", bystanders[0], bystanders[1], bystanders[2]);
    for (const size_t size : opt.sizes) {
        measure_size(opt, pool, size * 1024, other, report);
    }
    printf("%llu elements wrong\n", static_cast<unsigned long long>(report->wrong));
}
