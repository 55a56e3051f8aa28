// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The frontier: latency against offered load. Loads are percent of what the copy engines carry both
// ways at once in the bytes' ratio of the work. For each chunk size every strategy first tries its
// shapes and keeps the best for low loads and the best for high ones; then in each round all
// strategies take their turn with new inputs, beginning with another one each round. A load that a
// strategy did not keep up with is its last one in that round, but for the throughput with all
// slots full.
#include "wic/bench/measure/report.cuh"
#include "wic/bench/base/cost.cuh"

#include <algorithm>
#include <cstring>
#include <map>

namespace
{
constexpr double tune_s = 4e-3, warm_s = 2e-3, pause_s = 20e-6;
constexpr double energy_s = 1; // NVML's counter is too coarse for less
constexpr uint64_t least_chunks = 20;
constexpr uint32_t quick_load = 80; // percent

// GB/s of input when copies alone run both ways at once, half as many bytes out as in.
double link_ceiling(const bench_pool &pool)
{
    constexpr size_t bytes = size_t{64} << 20;
    constexpr int copies = 20;
    cudaStream_t up, down;
    unsigned char *memory;
    CUDA_MUST(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    CUDA_MUST(cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking));
    CUDA_MUST(cudaMalloc(&memory, 2 * bytes));
    double best = 0;
    for (int round = 0; round < 3; round++) {
        const double start = bench_seconds();
        for (int i = 0; i < copies; i++) {
            CUDA_MUST(cudaMemcpyAsync(memory, pool.in, bytes, cudaMemcpyHostToDevice, up));
            CUDA_MUST(cudaMemcpyAsync(pool.out, memory + bytes, bytes / in_unit * out_unit,
                                      cudaMemcpyDeviceToHost, down));
        }
        CUDA_MUST(cudaStreamSynchronize(up));
        CUDA_MUST(cudaStreamSynchronize(down));
        best = std::max(best, 1e-9 * copies * bytes / (bench_seconds() - start));
    }
    cudaStreamDestroy(up);
    cudaStreamDestroy(down);
    cudaFree(memory);
    return best;
}

struct contender {
    const strategy_kind *kind;
    bench_shape quick, fast;                            // up to quick_load; above
    std::map<uint32_t, std::vector<load_result>> found; // by load

    const bench_shape &shape(uint32_t load) const
    {
        return load - 1 < quick_load ? quick : fast; // 0 is the most
    }
};

double gap_of(const bench_pool &pool, double ceiling, uint32_t percent)
{
    return 100.0 * static_cast<double>(pool.chunk) / (1e9 * ceiling * percent);
}

std::vector<uint32_t> loads_of(const bench_options &opt)
{
    std::vector<uint32_t> loads;
    for (const std::string &one : bench_split(opt.loads)) {
        loads.push_back(one == "max" ? 0 : static_cast<uint32_t>(atoi(one.c_str())));
    }
    // Ascending, all slots full last.
    std::sort(loads.begin(), loads.end(), [](uint32_t a, uint32_t b) { return a - 1 < b - 1; });
    return loads;
}

// What a shape does with all slots full and at quick_load.
struct trial {
    bench_shape shape;
    double gbs, p50_us;
    bool kept_up;
};

bool try_shape(const strategy_kind &kind, const bench_pool &pool, double ceiling,
               const bench_shape &shape, std::vector<trial> *tried)
{
    const std::unique_ptr<strategy> way = kind.make(pool, shape);
    if (!way) {
        return false;
    }
    bench_load load(*way, pool);
    load.one_by_one(3, pause_s);
    const double gbs = load.saturate(tune_s).gbs;
    const load_result r = load.offer(gap_of(pool, ceiling, quick_load), tune_s, 3);
    way->leave_ms();
    tried->push_back({shape, gbs, r.p50_us, r.kept_up});
    return true;
}

// For high loads the shape with the highest throughput, for the others the one with the lowest
// latency at quick_load. False: none fits on this GPU.
bool choose_shapes(const bench_options &opt, const bench_pool &pool, const bench_case &of,
                   double ceiling, contender *one)
{
    std::vector<bench_shape> shapes = one->kind->shapes(of);
    if (!opt.tune) {
        shapes.resize(1);
    }
    std::vector<trial> tried;
    for (const bench_shape &shape : shapes) {
        try_shape(*one->kind, pool, ceiling, shape, &tried);
    }
    if (tried.empty()) {
        return false;
    }
    one->fast = std::max_element(tried.begin(), tried.end(), [](const trial &a, const trial &b) {
                    return a.gbs < b.gbs;
                })->shape;
    one->quick = std::min_element(tried.begin(), tried.end(), [](const trial &a, const trial &b) {
                     return a.kept_up != b.kept_up ? a.kept_up : a.p50_us < b.p50_us;
                 })->shape;
    return true;
}

// The loads whose shape is this one.
void take_loads(const bench_options &opt, const bench_pool &pool, double ceiling,
                const bench_shape &shape, bool *kept_up, contender *one)
{
    const std::unique_ptr<strategy> way = one->kind->make(pool, shape);
    if (!way) {
        bench_fail("a shape does not fit any more", __LINE__);
    }
    bench_load load(*way, pool);
    load.one_by_one(3, pause_s);
    load.saturate(warm_s);
    for (const uint32_t percent : loads_of(opt)) {
        if (&one->shape(percent) != &shape) {
            continue;
        }
        if (percent == 0) {
            one->found[0].push_back(load.saturate(opt.seconds));
        } else if (*kept_up) {
            one->found[percent].push_back(
                load.offer(gap_of(pool, ceiling, percent), opt.seconds, least_chunks));
            *kept_up = one->found[percent].back().kept_up;
        }
    }
    way->leave_ms();
}

void take_turn(const bench_options &opt, const bench_pool &pool, double ceiling, contender *one)
{
    bool kept_up = true;
    take_loads(opt, pool, ceiling, one->quick, &kept_up, one);
    take_loads(opt, pool, ceiling, one->fast, &kept_up, one);
}

quartiles of(const std::vector<load_result> &rounds, double load_result::*what)
{
    std::vector<double> values;
    for (const load_result &r : rounds) {
        values.push_back(r.*what);
    }
    return bench_quartiles(values);
}

frontier_row summary(const contender &one, size_t chunk, uint32_t load, double ceiling,
                     uint32_t rounds)
{
    const std::vector<load_result> &found = one.found.at(load);
    frontier_row row = {one.kind->name,
                        bench_shape_text(one.shape(load)),
                        chunk,
                        load,
                        0,
                        0,
                        true,
                        {},
                        {},
                        {},
                        0,
                        0,
                        0,
                        0};
    row.offered_gbs = ceiling * load / 100;
    row.rounds = static_cast<uint32_t>(found.size());
    uint32_t kept_up = 0;
    double seconds = 0, joules = 0;
    bool unknown = false;
    for (const load_result &r : found) {
        kept_up += r.kept_up;
        row.samples += r.samples;
        seconds += r.seconds;
        joules += r.joules;
        unknown = unknown || r.joules < 0;
    }
    row.watts = unknown || seconds < energy_s ? -1 : joules / seconds;
    row.kept_up = 2 * kept_up > rounds;
    row.gbs = of(found, &load_result::gbs);
    row.p50_us = of(found, &load_result::p50_us);
    row.p99_us = of(found, &load_result::p99_us);
    row.cpu = of(found, &load_result::cpu).middle;
    row.calls = of(found, &load_result::calls).middle;
    return row;
}

void print(const frontier_row &r)
{
    char load[16] = "max", watts[16] = "?", latency[64] = "";
    if (r.load > 0) {
        snprintf(load, sizeof load, "%u %%", r.load);
        snprintf(latency, sizeof latency, "%9.1f %9.1f  %8.1f -%8.1f", r.p50_us.middle,
                 r.p99_us.middle, r.p50_us.low, r.p50_us.high);
    }
    if (r.watts >= 0) {
        snprintf(watts, sizeof watts, "%.0f", r.watts);
    }
    printf("%7zu %5s %-15s %7.2f %-39s %5.2f %5.2f %5s %s\n", r.chunk / 1024, load,
           r.strategy.c_str(), r.gbs.middle, latency, r.cpu, r.calls, watts,
           r.kept_up ? "" : "overloaded");
    fflush(stdout);
}

void measure_size(const bench_options &opt, bench_pool &pool, size_t chunk, bench_report *report)
{
    const bench_case of = bench_case_of(opt, chunk);
    pool.lay_out(chunk);
    std::vector<contender> all;
    for (const std::string &name : bench_names(opt)) {
        contender one = {&find_strategy(name), {}, {}, {}};
        if (!choose_shapes(opt, pool, of, report->ceiling_gbs, &one)) {
            printf("%7zu       %-15s no shape fits\n", chunk / 1024, name.c_str());
            continue;
        }
        printf("%7zu       %-15s %s; %s\n", chunk / 1024, name.c_str(),
               bench_shape_text(one.quick).c_str(), bench_shape_text(one.fast).c_str());
        all.push_back(one);
    }
    for (uint32_t round = 0; round < opt.rounds; round++) {
        for (uint32_t slot = 0; slot < pool.slots; slot++) {
            pool.fill(slot, round + 1);
        }
        for (size_t i = 0; i < all.size(); i++) {
            take_turn(opt, pool, report->ceiling_gbs, &all[(round + i) % all.size()]);
        }
    }
    for (const uint32_t load : loads_of(opt)) {
        for (const contender &one : all) {
            if (one.found.count(load)) {
                report->frontier.push_back(
                    summary(one, chunk, load, report->ceiling_gbs, opt.rounds));
                print(report->frontier.back());
            }
        }
    }
}
} // namespace

void measure_frontier(const bench_options &opt, bench_pool &pool, bench_report *report)
{
    const char *why;
    report->ceiling_gbs = link_ceiling(pool);
    printf("copies alone, both ways at once: %.2f GB/s of input\n", report->ceiling_gbs);
    if (!bench_has_energy(&why)) {
        printf("no watts: %s\n", why);
    }
    printf("%7s %5s %-15s %7s %9s %9s  %19s %5s %5s %5s\n", "KiB", "load", "strategy", "GB/s",
           "p50 us", "p99 us", "p50, middle half", "CPU", "calls", "W");
    for (const size_t size : opt.sizes) {
        measure_size(opt, pool, size * 1024, report);
    }
}
