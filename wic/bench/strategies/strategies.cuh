// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_BENCH_STRATEGIES_CUH
#define WIC_BENCH_STRATEGIES_CUH
// The strategies by name. A new one: a file that makes it, and a row in the table of strategies.cu.
#include "wic/bench/base/bench.cuh"

// What can be chosen of a strategy; each reads what concerns it.
struct bench_shape {
    wic_transfer_plan plan; // of wic for this GPU and chunk; of others with a kernel of their own
    uint32_t lanes;         // streams
    uint32_t queued;        // batches that wait or run in a stream, at most
    size_t batch;           // bytes that one copy takes at most
};

// For a chunk size: what the shapes are chosen from.
struct bench_case {
    wic_gpu gpu;
    size_t chunk;
    wic_transfer_plan plan; // wic's
};

struct strategy_kind {
    const char *name;
    int wait; // the wait_kind of its resident kernel; < 0: it has none in the shape of wic's plan
    const char *what; // for --help
    // NULL: this shape does not fit on the GPU.
    std::unique_ptr<strategy> (*make)(const bench_pool &pool, const bench_shape &shape);
    // Those to try, of which the best is measured; at least one.
    std::vector<bench_shape> (*shapes)(const bench_case &of);
};

const std::vector<strategy_kind> &bench_strategies();
const strategy_kind &find_strategy(const std::string &name); // an unknown one ends the program

// The parts of a plan that the pollers' shapes differ in.
void bench_set_piece(wic_transfer_plan *plan, size_t piece, size_t chunk);
std::string bench_shape_text(const bench_shape &shape);

// Queues NDVI of so many pixels, a multiple of line_units, in device memory.
void launch_ndvi(const unsigned char *in, unsigned char *out, uint64_t units, cudaStream_t stream);

std::unique_ptr<strategy> make_stream(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_stream_batch(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_graph(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_launch(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_wait_value(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_managed(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_wic_channel(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_wic_channel_naps(const bench_pool &pool, const bench_shape &shape);
std::unique_ptr<strategy> make_wic_channel_steps(const bench_pool &pool, const bench_shape &shape);
#endif
