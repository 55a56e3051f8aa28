// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_LOAD_CUH
#define WIC_BENCH_LOAD_CUH
// Drives a strategy: keeps all slots full, or lets chunks arrive at a fixed rate whether or not
// earlier ones are done. The arrivals are a schedule and no thread: the strategy's one thread asks
// the clock which chunks have arrived, as it would ask a producer's counter.
#include "wic/bench/base/bench.cuh"

struct load_result {
    double gbs = 0;                // of input, done
    double p50_us = 0, p99_us = 0; // from a chunk's scheduled arrival to its visible result
    uint64_t samples = 0;          // chunks
    double cpu = 0;                // CPU seconds of the process a second
    double calls = 0;              // share of the time in calls of the strategy that did something
    double seconds = 0;            // that it took
    double joules = 0;             // of the GPU; < 0: unknown
    bool kept_up = true;           // all scheduled chunks were done, about as fast as they arrived
};

class bench_load
{
  public:
    bench_load(strategy &way, const bench_pool &pool);
    // All slots full for so long.
    load_result saturate(double seconds);
    // A chunk every `gap` seconds for so long, at least `least` chunks.
    load_result offer(double gap, double seconds, uint64_t least);
    // `count` chunks, one at a time, `pause` seconds apart.
    load_result one_by_one(int count, double pause);
    // Number of wrong elements among so many chunks, sent in groups of changing size. Each has new
    // content, and every element of its results is checked before its slot is used again. The
    // pool is the one of the constructor.
    uint64_t check(bench_pool &pool, uint64_t chunks);

  private:
    uint64_t finish(double limit_s); // waits for all submitted chunks

    strategy &way_;
    const bench_pool &pool_;
    uint64_t next_ = 0; // chunks submitted
    std::vector<float> us_;
};
#endif
