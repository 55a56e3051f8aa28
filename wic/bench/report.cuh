// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_REPORT_CUH
#define WIC_BENCH_REPORT_CUH
// What wic-bench measured, and the file that tests/bench/wic_plot.py draws from.
#include "wic/bench/load.cuh"
#include "wic/bench/options.cuh"
#include "wic/bench/strategies.cuh"

struct table_row {
    std::string strategy;
    size_t chunk;
    bench_shape shape;
    double gbs, p50_us, p99_us, leave_ms;
    uint64_t wrong;
};

struct neighbour_row {
    std::string strategy;
    uint32_t warps;
    neighbours slowdown;
};

struct quartiles {
    double low, middle, high;
};

struct frontier_row {
    std::string strategy, shape;
    size_t chunk;
    uint32_t load;      // percent of the ceiling; 0: all slots full
    double offered_gbs; // 0: as much as it takes
    uint32_t rounds;    // that are in the figures
    bool kept_up;       // in most rounds
    quartiles gbs, p50_us, p99_us;
    double cpu, calls, watts; // as in load_result; median, median, mean
    uint64_t samples;         // chunks of all rounds
};

struct bench_report {
    double ceiling_gbs = 0; // of copies alone, both ways at once; 0: not measured
    uint64_t wrong = 0;
    std::vector<table_row> table;
    std::vector<neighbour_row> beside;
    std::vector<frontier_row> frontier;
};

wic_gpu bench_gpu();
bench_case bench_case_of(const bench_options &opt, size_t chunk);
// Adds to the report and prints as it goes.
void measure_table(const bench_options &opt, bench_pool &pool, bench_report *report);
void measure_frontier(const bench_options &opt, bench_pool &pool, bench_report *report);
void check_results(const bench_options &opt, bench_pool &pool, bench_report *report);
void write_report(const std::string &path, const bench_report &report);
#endif
