// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
#ifndef WIC_PEER_BENCH_CUH
#define WIC_PEER_BENCH_CUH
// Common to the parts of wic-peer: the two GPUs, the elements of chunks and their check, output.
#include "wic/peer/peer.cuh"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <string>
#include <vector>

#define PEER_MUST(call)                                                                            \
    do {                                                                                           \
        const cudaError_t peer_error = (call);                                                     \
        if (peer_error != cudaSuccess) {                                                           \
            fprintf(stderr, "wic-peer: %s:%d: %s: %s\n", __FILE__, __LINE__, #call,                \
                    cudaGetErrorString(peer_error));                                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

constexpr uint32_t peer_threads_most = 32 * (16 + WIC_PEER_SERVICE);

enum peer_break : uint32_t {
    PEER_RIGHT,
    PEER_EARLY, // the word of the last chunk is posted before its last piece is stored
    PEER_LOST,  // the last chunk is not stored at all
    PEER_WRONG, // an element of the last chunk is wrong
    PEER_TWICE, // the last chunk has the content of the one before
};

struct peer_options {
    int from = 0, to = 0;
    peer_break mistake = PEER_RIGHT;
    uint64_t chunks = 1000000;
    std::string json, part = "all";

    bool is_loopback() const
    {
        return from == to;
    }
    const char *where() const
    {
        return is_loopback() ? "one GPU, two kernels" : "two GPUs";
    }
};

// Vector `i` of a chunk; every word of it differs for each chunk.
__device__ __forceinline__ uint4 peer_element(uint64_t chunk, uint32_t i)
{
    const uint32_t mixed = (static_cast<uint32_t>(chunk) * 2654435761u) ^ (i * 2246822519u);
    return {mixed, mixed + static_cast<uint32_t>(chunk), ~mixed, mixed ^ 0x9e3779b9u};
}

// The parts; each returns whether all was right. They print rows, and add figures as JSON.
struct peer_report {
    std::vector<std::string> rows;
    bool is_good = true;

    __attribute__((format(printf, 3, 4))) void line(bool is_right, const char *format, ...);
    __attribute__((format(printf, 2, 3))) void row(const char *format, ...);
};
void peer_check(const peer_options &o, peer_report *report);
void peer_words(const peer_options &o, peer_report *report);
void peer_rates(const peer_options &o, peer_report *report);
void peer_rivals(const peer_options &o, peer_report *report);
void peer_nccl(const peer_options &o, peer_report *report);
void peer_ways_out(const peer_options &o, peer_report *report);
void peer_trap(const peer_options &o, peer_report *report);
void peer_silent(const peer_options &o, peer_report *report);
void peer_patterns(const peer_options &o, peer_report *report);
#endif
