// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// Tasks that depend on each other, by the workers of one resident kernel: a tree whose leaves sum
// up a part of an array each when a copy engine has brought it, and whose inner nodes sum up their
// four children. Who brings a node's children to full pushes the node.
#include "wic/depend/ready.cuh"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

constexpr uint32_t leaves = 4096, leaf_words = 16384, threads = 128, nodes = (4 * leaves - 1) / 3;
enum { INNER, LEAF }; // rings; inner nodes first

struct tree {
    wic_ready ready;
    const uint32_t *words; // of leaf i at i * leaf_words; leaves are the last nodes
    unsigned long long *sum;
    uint32_t *children; // that are done, of each node
};

struct whole_block {
    uint32_t thread, threads;
    __device__ void sync() const
    {
        __syncthreads();
    }
};

__global__ void __launch_bounds__(threads) add_up(const __grid_constant__ tree t)
{
    __shared__ wic_seats seats;
    const whole_block group = {threadIdx.x, blockDim.x};
    wic_task task;
    for (uint32_t turn = 0; wic_take(t.ready, seats, turn, group, &task); turn++) {
        const uint32_t node = task.task;
        unsigned long long sum = 0;
        if (task.ring == LEAF) {
            const uint32_t *const words = t.words + (node - (nodes - leaves)) * leaf_words;
            for (uint32_t i = threadIdx.x; i < leaf_words; i += threads) {
                sum += words[i];
            }
        } else if (threadIdx.x < 4) {
            sum = t.sum[4 * node + 1 + threadIdx.x];
        }
        atomicAdd(&t.sum[node], sum);
        group.sync();
        if (threadIdx.x == 0 && node == 0) {
            wic_stop(t.ready, WIC_READY_DONE);
        } else if (threadIdx.x == 0 && wic_arrive(&t.children[(node - 1) / 4], 4)) {
            wic_push(t.ready, INNER, (node - 1) / 4, 1);
        }
    }
}

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

template <class T> static T *device(size_t n)
{
    void *memory = nullptr;
    must(cudaMalloc(&memory, n * sizeof(T)) == cudaSuccess, "no memory");
    must(cudaMemset(memory, 0, n * sizeof(T)) == cudaSuccess, "memory cannot be cleared");
    return static_cast<T *>(memory);
}

int main()
{
    const uint32_t most[WIC_READY_RINGS] = {nodes, leaves};
    const size_t bytes = wic_ready_bytes(most), span = leaf_words * sizeof(uint32_t);
    std::vector<uint32_t> order(leaves);
    std::vector<unsigned char> image(bytes);
    uint32_t *words = nullptr, *const on_device = device<uint32_t>(leaves * leaf_words);
    unsigned long long sum = 0, want = 0;
    cudaStream_t work, copy;
    tree t = {{}, on_device, device<unsigned long long>(nodes), device<uint32_t>(nodes)};
    must(cudaMallocHost(&words, leaves * span) == cudaSuccess, "no pinned memory");
    must(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    must(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    for (uint32_t i = 0; i < leaves * leaf_words; i++) {
        want += words[i] = i * 2654435761u;
    }
    for (uint32_t i = 0; i < leaves; i++) {
        order[i] = nodes - leaves + i;
    }
    void *const memory = device<unsigned char>(bytes);
    wic_ready_init(most, 2000000000, image.data(), memory, &t.ready);
    wic_ready_list(image.data(), &t.ready, LEAF, order.data(), leaves);
    must(cudaMemcpy(memory, image.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess, "copy");

    add_up<<<264, threads, 0, work>>>(t); // any number of blocks does it
    for (uint32_t i = 0; i < leaves; i += 16) {
        must(cudaMemcpyAsync(on_device + i * leaf_words, words + i * leaf_words, 16 * span,
                             cudaMemcpyHostToDevice, copy) == cudaSuccess &&
                 wic_ready_push_behind(&t.ready, LEAF, i + 16, copy) == 0,
             "a span cannot be brought");
    }
    must(cudaStreamSynchronize(work) == cudaSuccess, "the kernel failed");
    must(cudaMemcpy(&sum, t.sum, sizeof sum, cudaMemcpyDeviceToHost) == cudaSuccess, "copy");
    printf("%u leaves: %llu, %s\n", leaves, sum, sum == want ? "as it must be" : "WRONG");
    return sum == want ? 0 : 1;
}
