// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// What a strategy costs compute kernels that share the device with it, while chunks flow at a fixed
// pace and while there are none. Kernels that stay resident all have the shape of wic's plan;
// "asleep" has wic's registers, shared memory and warps, too, and sleeps: what it costs is the room
// that it takes, what wic costs beyond that is its waiting and its work. In each round the
// neighbours run alone first, then beside each strategy in turn.
#include "wic/bench/neighbours/neighbours.cuh"
#include "wic/bench/measure/report.cuh"

#include <algorithm>

namespace
{
constexpr size_t chunk = 65536;
constexpr double span_s = 22e-3; // of chunks: longer than what a neighbour takes

std::unique_ptr<strategy> make_asleep(const bench_pool &pool, const bench_shape &shape)
{
    return make_resident(resident_kernel(WAIT_ASLEEP), pool, shape.plan);
}

const strategy_kind asleep = {"asleep", WAIT_ASLEEP, nullptr, make_asleep, nullptr};

struct guest { // a strategy and the flow of its chunks
    const strategy_kind *kind;
    uint32_t gap_us; // 0: no chunks
    std::vector<double> slower[NEIGHBOUR_KINDS];
    std::vector<double> p50_us;
};

bench_shape shape_of(const strategy_kind &kind, const bench_case &of)
{
    if (kind.wait >= 0) {
        return {of.plan, 0, 0, 0};
    }
    const std::vector<bench_shape> shapes = kind.shapes(of);
    return shapes[shapes.size() / 2];
}

double run(bystander &other, neighbour_kind kind, strategy *way, bench_load *load, guest *one)
{
    if (one->gap_us == 0) {
        return speed_beside_idle(other, kind, way);
    }
    const double limit = bench_seconds() + bystander_limit_s;
    other.start(kind);
    do {
        one->p50_us.push_back(load->offer(1e-6 * one->gap_us, span_s, 1).p50_us);
    } while (bench_seconds() < limit && !other.over());
    return other.stop();
}

void take_round(bystander &other, const bench_pool &pool, const bench_case &of,
                std::vector<guest> &guests)
{
    double alone[NEIGHBOUR_KINDS];
    speed_beside_idle(other, NEIGHBOUR_FMA, nullptr);
    for (int kind = 0; kind < NEIGHBOUR_KINDS; kind++) {
        alone[kind] = speed_beside_idle(other, static_cast<neighbour_kind>(kind), nullptr);
    }
    for (guest &one : guests) {
        const std::unique_ptr<strategy> way = one.kind->make(pool, shape_of(*one.kind, of));
        if (!way) {
            bench_fail("wic's plan does not fit as the shape of another strategy", __LINE__);
        }
        bench_load load(*way, pool);
        if (one.kind != &asleep) {
            load.one_by_one(3, 0);
        }
        speed_beside_idle(other, NEIGHBOUR_FMA, way.get());
        for (int kind = 0; kind < NEIGHBOUR_KINDS; kind++) {
            const double speed =
                run(other, static_cast<neighbour_kind>(kind), way.get(), &load, &one);
            one.slower[kind].push_back(alone[kind] / speed);
        }
        way->leave_ms();
    }
}

neighbour_row summary(const guest &one, const std::string &where, const bench_case &of)
{
    neighbour_row row = {};
    row.strategy = one.kind->name;
    row.where = where;
    row.gap_us = one.gap_us;
    row.fma = bench_quartiles(one.slower[NEIGHBOUR_FMA]);
    row.memory = bench_quartiles(one.slower[NEIGHBOUR_MEMORY]);
    row.l1 = bench_quartiles(one.slower[NEIGHBOUR_L1]);
    row.p50_us = one.p50_us.empty() ? 0 : bench_quartiles(one.p50_us).middle;
    row.resident = one.kind->wait >= 0;
    if (row.resident) {
        row.room = room_beside(resident_kernel(static_cast<wait_kind>(one.kind->wait)), of.plan);
    }
    return row;
}

void print(const neighbour_row &r)
{
    char room[64] = "";
    if (r.resident) {
        snprintf(room, sizeof room, "%9.0f %6.0f %6.0f", r.room.registers, r.room.shared,
                 r.room.processors);
    }
    printf("%-15s %7u %8.3f %8.3f %8.3f %9.1f %s\n", r.strategy.c_str(), r.gap_us, r.fma.middle,
           r.memory.middle, r.l1.middle, r.p50_us, room);
    fflush(stdout);
}
} // namespace

void measure_beside(const bench_options &opt, bench_pool &pool, const std::string &where,
                    bench_report *report)
{
    const bench_case of = bench_case_of(opt, chunk);
    pool.lay_out(chunk);
    std::unique_ptr<bystander> other;
    if (where == "own") {
        other = std::make_unique<local_bystander>();
    } else if (where == "process" || where == "mps") {
        other = make_other_process();
    } else {
        bench_fail("--neighbours is own, process or mps", __LINE__);
    }
    std::vector<guest> guests = {{&asleep, 0, {}, {}}};
    for (const std::string &name : bench_names(opt)) {
        for (const size_t gap : opt.gaps) {
            guests.push_back({&find_strategy(name), static_cast<uint32_t>(gap), {}, {}});
        }
    }
    printf("neighbours (%s), times slower; room left in percent\n", where.c_str());
    printf("%-15s %7s %8s %8s %8s %9s %9s %6s %6s\n", "strategy", "gap us", "FMA", "memory", "L1",
           "p50 us", "registers", "shared", "SMs");
    for (uint32_t round = 0; round < opt.rounds; round++) {
        take_round(*other, pool, of, guests);
    }
    for (const guest &one : guests) {
        report->beside.push_back(summary(one, where, of));
        print(report->beside.back());
    }
}
