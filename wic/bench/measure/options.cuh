// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_OPTIONS_CUH
#define WIC_BENCH_OPTIONS_CUH
// The command line of wic-bench; what each option means is in the table of options.cu.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct bench_options {
    bool help = false;
    std::string json;
    double seconds = 0.2;                                     // of a throughput measurement
    int samples = 2000;                                       // of a latency measurement
    std::vector<size_t> sizes = {4, 16, 64, 256, 1024, 4096}; // KiB
    std::string strategies = "wic,poll-host,poll-device,poll-nanosleep,stream,graph";
    bool frontier = false, check = false, ablation = false, tune = true;
    std::string loads = "5,25,50,80,95,max"; // percent of the link's ceiling
    uint32_t rounds = 9;
    std::string neighbours;                        // where they run; empty: not measured
    std::vector<size_t> gaps = {0, 1000, 200, 50}; // us between chunks beside neighbours
    bool serve = false;                            // be the neighbour
    uint32_t piece = 0, depth = 0, blocks = 0, warps = 0, pulls = 0; // 0: by the plan
    int64_t backlog = -1;                                            // the same
    int results = -1;                                                // -1: by the plan
    size_t window = 256;                                             // MiB of input slots
    bool huge = false, sweep = false;
    uint64_t soak = 0;     // tiles
    uint32_t lanes = 0;    // of the soak, or to be measured
    std::string transport; // of the soak; empty: all
    bool ways_out = false, replay = false, joins = false, guests = false, shares = false;
    std::string rates = "5,20,45"; // GB/s of the stream that shares the GPU
    std::string patterns;          // all or small; empty: not measured
    double park_ms = 0;
};

// False: there is something it does not know, and it said so.
bool bench_parse(int argc, char **argv, bench_options *out);
void bench_help();
std::vector<std::string> bench_split(const std::string &list, const char *ends = ",");
#endif
