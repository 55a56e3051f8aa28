// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_REPORT_CUH
#define WIC_BENCH_REPORT_CUH
// What wic-bench measured, and the file that tests/bench/wic_plot.py draws from.
#include "wic/bench/measure/load.cuh"
#include "wic/bench/neighbours/neighbours.cuh"
#include "wic/bench/measure/options.cuh"
#include "wic/bench/strategies/strategies.cuh"

struct table_row {
    std::string strategy;
    size_t chunk;
    bench_shape shape;
    double gbs, p50_us, p99_us, leave_ms;
    uint64_t wrong;
};

struct quartiles {
    double low, middle, high;
};
quartiles bench_quartiles(std::vector<double> values); // not of none

struct neighbour_row {
    std::string strategy, where; // own, process or mps
    uint32_t gap_us;             // between chunks; 0: none flow
    quartiles fma, memory, l1;   // times slower than alone
    double p50_us;               // of the chunks; 0: none
    bool resident;
    bench_room room; // if resident
};

struct ablation_row {
    const char *gate, *pull;
    bool limited; // by credits
    size_t chunk;
    quartiles gbs, p50_us, p99_us; // all slots full; one chunk at a time
    quartiles slower[NEIGHBOUR_KINDS];
};

struct frontier_row {
    std::string strategy, shape;
    size_t chunk;
    uint32_t load;      // percent of the ceiling; 0: all slots full
    double offered_gbs; // 0: as much as it takes
    uint32_t rounds;    // that are in the figures
    bool kept_up;       // in most rounds
    quartiles gbs, p50_us, p99_us;
    double cpu, calls, watts; // as in load_result; medians, and the mean (< 0: unknown)
    uint64_t samples;         // chunks of all rounds
};

struct bench_report {
    double ceiling_gbs = 0; // of copies alone, both ways at once; 0: not measured
    uint64_t wrong = 0;
    std::vector<table_row> table;
    std::vector<neighbour_row> beside;
    std::vector<ablation_row> ablation;
    std::vector<frontier_row> frontier;
};

wic_gpu bench_gpu();
// The architecture that the kernels were compiled for, 80 for sm_80: older paths also run on newer
// GPUs, from PTX.
int bench_code_architecture();
bench_case bench_case_of(const bench_options &opt, size_t chunk);
std::vector<std::string> bench_names(const bench_options &opt); // of the strategies
// Adds to the report and prints as it goes.
void measure_table(const bench_options &opt, bench_pool &pool, bench_report *report);
void measure_frontier(const bench_options &opt, bench_pool &pool, bench_report *report);
void measure_beside(const bench_options &opt, bench_pool &pool, const std::string &where,
                    bench_report *report);
void measure_ablation(const bench_options &opt, bench_pool &pool, bench_report *report);
void check_results(const bench_options &opt, bench_pool &pool, bench_report *report);
void write_report(const std::string &path, const bench_report &report);
#endif
