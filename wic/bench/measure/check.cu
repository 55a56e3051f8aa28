// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Every element of every result of each strategy in each of its shapes, apart from any timing.
#include "wic/bench/measure/report.cuh"

namespace
{
// Three times around the slots. Returns how many elements were wrong; none if the shape does not
// fit on this GPU.
uint64_t wrong_of(const strategy_kind &kind, const bench_shape &shape, bench_pool &pool,
                  uint64_t *chunks)
{
    const std::unique_ptr<strategy> way = kind.make(pool, shape);
    if (!way) {
        return 0;
    }
    const uint64_t some = 3 * way->slots + 7;
    const uint64_t wrong = bench_load(*way, pool).check(pool, some);
    way->leave_ms();
    *chunks += some;
    return wrong;
}
} // namespace

void check_results(const bench_options &opt, bench_pool &pool, bench_report *report)
{
    printf("%7s %-15s %9s %9s\n", "KiB", "strategy", "chunks", "wrong");
    for (const size_t size : opt.sizes) {
        const bench_case of = bench_case_of(opt, size * 1024);
        pool.lay_out(of.chunk);
        for (const std::string &name : bench_names(opt)) {
            const strategy_kind &kind = find_strategy(name);
            std::vector<bench_shape> shapes = kind.shapes(of);
            shapes.resize(opt.tune ? shapes.size() : 1);
            uint64_t wrong = 0, chunks = 0;
            for (const bench_shape &shape : shapes) {
                wrong += wrong_of(kind, shape, pool, &chunks);
            }
            printf("%7zu %-15s %9llu %9llu\n", size, name.c_str(),
                   static_cast<unsigned long long>(chunks), static_cast<unsigned long long>(wrong));
            fflush(stdout);
            report->wrong += wrong;
        }
    }
}
