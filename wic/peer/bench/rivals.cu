// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// The same chunks by what one would write without wic/peer, every element checked:
//
//   copies      cudaMemcpyPeerAsync of each chunk on one stream, an event, and a kernel that checks
//               it on the other stream; events return the places of the ring. A graph or batches
//               would be larger chunks, whose rows are below
//   put-signal  two resident kernels; all threads of a block store the chunk into the peer's ring
//               and fence, thread 0 stores the flag; on the other side thread 0 polls it
//   copy calls alone: no consumer, nothing is checked: a bound
#include "wic/device/link.h"
#include "wic/peer/bench/bench.cuh"

#include <algorithm>
#include <chrono>

namespace
{
constexpr uint32_t slots = 4;
constexpr uint32_t flag_words = WIC_PEER_LINE / sizeof(uint64_t);

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

__device__ void fill_chunk(uint4 *to, uint64_t chunk, uint32_t vectors, uint32_t first,
                           uint32_t stride)
{
    for (uint32_t i = first; i < vectors; i += stride) {
        to[i] = peer_element(chunk, i);
    }
}
__device__ uint32_t check_chunk(const uint4 *from, uint64_t chunk, uint32_t vectors, uint32_t first,
                                uint32_t stride)
{
    uint32_t wrong = 0;
    for (uint32_t i = first; i < vectors; i += stride) {
        const uint4 got = from[i], want = peer_element(chunk, i);
        wrong += got.x != want.x || got.y != want.y || got.z != want.z || got.w != want.w;
    }
    return wrong;
}

__global__ void make_chunk(uint4 *to, uint64_t chunk, uint32_t vectors)
{
    fill_chunk(to, chunk, vectors, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}
__global__ void use_chunk(const uint4 *from, uint64_t chunk, uint32_t vectors,
                          unsigned long long *wrong)
{
    const uint32_t bad = check_chunk(from, chunk, vectors, blockIdx.x * blockDim.x + threadIdx.x,
                                     gridDim.x * blockDim.x);
    if (bad > 0) {
        atomicAdd(wrong, bad);
    }
}

// One thread. False: too late.
__device__ bool poll(const uint64_t *word, uint64_t wanted)
{
    const uint64_t since = wic_now();
    for (uint32_t turn = 1; wic_peer_see(word) < wanted; turn++) {
        if (turn % 1024 == 0 && wic_now() - since > 5000000000ull) {
            return false;
        }
    }
    return true;
}

// A block of the sender and one of the receiver have a ring.
struct ring {
    uint4 *data;
    uint64_t *flags, *credits;
    uint32_t vectors, chunks; // count of vectors in a chunk, of chunks for each block
    unsigned long long *wrong;
};

__global__ void __launch_bounds__(512) put_chunks(const __grid_constant__ ring r)
{
    uint4 *data = r.data + static_cast<size_t>(blockIdx.x) * slots * r.vectors;
    for (uint32_t n = 0; n < r.chunks; n++) {
        int is_over = 0;
        if (threadIdx.x == 0 && n >= slots) {
            is_over = !poll(&r.credits[blockIdx.x * flag_words], n + 1 - slots);
        }
        if (__syncthreads_or(is_over)) {
            return;
        }
        fill_chunk(data + n % slots * r.vectors, uint64_t{n} * gridDim.x + blockIdx.x, r.vectors,
                   threadIdx.x, blockDim.x);
        __threadfence_system();
        __syncthreads();
        if (threadIdx.x == 0) {
            wic_peer_post(&r.flags[blockIdx.x * flag_words], n + 1, WIC_PEER_SYSTEM);
        }
    }
}
__global__ void __launch_bounds__(512) get_chunks(const __grid_constant__ ring r)
{
    const uint4 *data = r.data + static_cast<size_t>(blockIdx.x) * slots * r.vectors;
    uint32_t wrong = 0;
    for (uint32_t n = 0; n < r.chunks; n++) {
        int is_over = 0;
        if (threadIdx.x == 0) {
            is_over = !poll(&r.flags[blockIdx.x * flag_words], n + 1);
        }
        if (__syncthreads_or(is_over)) {
            wrong = 1;
            break;
        }
        wrong += check_chunk(data + n % slots * r.vectors, uint64_t{n} * gridDim.x + blockIdx.x,
                             r.vectors, threadIdx.x, blockDim.x);
        __syncthreads();
        if (threadIdx.x == 0) {
            wic_peer_post(&r.credits[blockIdx.x * flag_words], n + 1, WIC_PEER_SYSTEM);
        }
    }
    if (wrong > 0) {
        atomicAdd(r.wrong, wrong);
    }
}

// Answers each word of the other; all threads of the block wait at a barrier meanwhile.
__global__ void answer_words(uint64_t *mine, uint64_t *others, uint32_t rounds, bool is_first)
{
    for (uint32_t n = 1; n <= rounds; n++) {
        int is_over = 0;
        if (threadIdx.x == 0) {
            if (is_first) {
                wic_peer_post(others, n, WIC_PEER_SYSTEM);
            }
            is_over = !poll(mine, n);
        }
        if (__syncthreads_or(is_over)) {
            return;
        }
        if (threadIdx.x == 0 && !is_first) {
            wic_peer_post(others, n, WIC_PEER_SYSTEM);
        }
    }
}

struct pair_of_streams {
    const peer_options &o;
    cudaStream_t from, to;

    explicit pair_of_streams(const peer_options &options) : o(options)
    {
        PEER_MUST(cudaSetDevice(o.from));
        PEER_MUST(cudaStreamCreateWithFlags(&from, cudaStreamNonBlocking));
        PEER_MUST(cudaSetDevice(o.to));
        PEER_MUST(cudaStreamCreateWithFlags(&to, cudaStreamNonBlocking));
    }
    ~pair_of_streams()
    {
        cudaStreamDestroy(from);
        cudaStreamDestroy(to);
    }
    void wait() const
    {
        PEER_MUST(cudaStreamSynchronize(from));
        PEER_MUST(cudaStreamSynchronize(to));
    }
};

template <class T> T *take(int device, size_t bytes)
{
    void *memory = nullptr;
    PEER_MUST(cudaSetDevice(device));
    PEER_MUST(cudaMalloc(&memory, bytes));
    PEER_MUST(cudaMemset(memory, 0, bytes));
    return static_cast<T *>(memory);
}

uint64_t read_count(const unsigned long long *count)
{
    unsigned long long value = 0;
    PEER_MUST(cudaMemcpy(&value, count, sizeof value, cudaMemcpyDefault));
    return value;
}

void print(const peer_options &o, peer_report *report, uint32_t kib, const char *who, double gb_s,
           bool is_right, bool is_checked)
{
    report->line(is_right, "%s, %3u KiB chunks, %-24s %6.1f GB/s%s", o.where(), kib, who, gb_s,
                 is_checked ? "" : " (nothing is checked)");
    report->row("{\"what\": \"rate\", \"who\": \"%s\", \"kib\": %u, \"gb_s\": %.2f, \"checked\": "
                "%s}",
                who, kib, gb_s, is_checked ? "true" : "false");
}

void copies(const peer_options &o, uint32_t kib, peer_report *report)
{
    const pair_of_streams s(o);
    const size_t bytes = size_t{kib} * 1024;
    const uint32_t chunks = 4000, vectors = static_cast<uint32_t>(bytes / 16);
    uint4 *source = take<uint4>(o.from, slots * bytes), *ring = take<uint4>(o.to, slots * bytes);
    auto *wrong = take<unsigned long long>(o.to, sizeof(unsigned long long));
    cudaEvent_t made[slots], used[slots];
    const uint32_t blocks = std::max(1u, std::min(vectors / 512, 132u));
    for (uint32_t i = 0; i < slots; i++) {
        PEER_MUST(cudaSetDevice(o.from));
        PEER_MUST(cudaEventCreateWithFlags(&made[i], cudaEventDisableTiming));
        PEER_MUST(cudaSetDevice(o.to));
        PEER_MUST(cudaEventCreateWithFlags(&used[i], cudaEventDisableTiming));
    }
    s.wait();
    double start = now();
    for (uint32_t n = 0; n < chunks; n++) {
        const uint32_t slot = n % slots;
        PEER_MUST(cudaSetDevice(o.from));
        if (n >= slots) {
            PEER_MUST(cudaStreamWaitEvent(s.from, used[slot], 0));
        }
        make_chunk<<<blocks, 512, 0, s.from>>>(source + size_t{slot} * vectors, n, vectors);
        PEER_MUST(cudaMemcpyPeerAsync(ring + size_t{slot} * vectors, o.to,
                                      source + size_t{slot} * vectors, o.from, bytes, s.from));
        PEER_MUST(cudaEventRecord(made[slot], s.from));
        PEER_MUST(cudaSetDevice(o.to));
        PEER_MUST(cudaStreamWaitEvent(s.to, made[slot], 0));
        use_chunk<<<blocks, 512, 0, s.to>>>(ring + size_t{slot} * vectors, n, vectors, wrong);
        PEER_MUST(cudaEventRecord(used[slot], s.to));
    }
    s.wait();
    const double all = static_cast<double>(bytes) * chunks / 1e9;
    print(o, report, kib, "copies with events", all / (now() - start), read_count(wrong) == 0,
          true);
    start = now();
    for (uint32_t n = 0; n < chunks; n++) {
        PEER_MUST(cudaMemcpyPeerAsync(ring, o.to, source, o.from, bytes, s.from));
    }
    s.wait();
    print(o, report, kib, "copy calls alone", all / (now() - start), true, false);
    for (uint32_t i = 0; i < slots; i++) {
        cudaEventDestroy(made[i]);
        cudaEventDestroy(used[i]);
    }
    cudaFree(source);
    cudaFree(ring);
    cudaFree(wrong);
}

void put_signal(const peer_options &o, uint32_t kib, uint32_t lanes, peer_report *report)
{
    const pair_of_streams s(o);
    const size_t bytes = size_t{kib} * 1024;
    ring r = {};
    r.vectors = static_cast<uint32_t>(bytes / 16);
    r.chunks = static_cast<uint32_t>((uint64_t{4} << 30) / bytes / lanes);
    r.data = take<uint4>(o.to, lanes * slots * bytes);
    r.flags = take<uint64_t>(o.to, size_t{lanes} * WIC_PEER_LINE);
    r.credits = take<uint64_t>(o.from, size_t{lanes} * WIC_PEER_LINE);
    r.wrong = take<unsigned long long>(o.to, sizeof(unsigned long long));
    PEER_MUST(cudaDeviceSynchronize());
    const double start = now();
    PEER_MUST(cudaSetDevice(o.from));
    put_chunks<<<lanes, 512, 0, s.from>>>(r);
    PEER_MUST(cudaSetDevice(o.to));
    get_chunks<<<lanes, 512, 0, s.to>>>(r);
    s.wait();
    const double all = static_cast<double>(bytes) * r.chunks * lanes / 1e9;
    print(o, report, kib, "put-signal", all / (now() - start), read_count(r.wrong) == 0, true);
    for (void *memory : {static_cast<void *>(r.data), static_cast<void *>(r.flags),
                         static_cast<void *>(r.credits), static_cast<void *>(r.wrong)}) {
        cudaFree(memory);
    }
}

void words(const peer_options &o, uint32_t warps, peer_report *report)
{
    const pair_of_streams s(o);
    const uint32_t rounds = 20000;
    uint64_t *first = take<uint64_t>(o.from, WIC_PEER_LINE);
    uint64_t *second = take<uint64_t>(o.to, WIC_PEER_LINE);
    cudaEvent_t begun, left;
    PEER_MUST(cudaSetDevice(o.from));
    PEER_MUST(cudaEventCreate(&begun));
    PEER_MUST(cudaEventCreate(&left));
    PEER_MUST(cudaEventRecord(begun, s.from));
    answer_words<<<1, 32 * warps, 0, s.from>>>(first, second, rounds, true);
    PEER_MUST(cudaEventRecord(left, s.from));
    PEER_MUST(cudaSetDevice(o.to));
    answer_words<<<1, 32 * warps, 0, s.to>>>(second, first, rounds, false);
    s.wait();
    float ms = 0;
    PEER_MUST(cudaEventElapsedTime(&ms, begun, left));
    const double us = ms * 1e3 / (2.0 * rounds);
    uint64_t last = 0;
    PEER_MUST(cudaMemcpy(&last, second, sizeof last, cudaMemcpyDefault));
    report->line(last == rounds,
                 "%s, hand-over of a word, put-signal, a block of %2u warps: %.3f us", o.where(),
                 warps, us);
    report->row("{\"what\": \"hand-over\", \"who\": \"put-signal\", \"warps\": %u, \"us\": %.4f}",
                warps, us);
    cudaEventDestroy(begun);
    cudaEventDestroy(left);
    cudaFree(first);
    cudaFree(second);
}
} // namespace

void peer_rivals(const peer_options &o, peer_report *report)
{
    const int devices[] = {o.from, o.to};
    int processors = 0;
    if (wic_peer_access(devices, 2) != 0) {
        report->line(false, "rivals: %s", wic_link_why());
        return;
    }
    PEER_MUST(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, o.from));
    // Blocks of 512 threads: two of each kernel fit on a multiprocessor.
    for (const uint32_t kib : {4u, 16u, 64u, 256u}) {
        copies(o, kib, report);
        put_signal(o, kib, static_cast<uint32_t>(processors), report);
    }
    words(o, 1, report);
    words(o, 17, report);
}
