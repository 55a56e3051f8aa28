/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/copies_alone.h"

#include "config/base/clock.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANES = 2, WARM_UP = 2 };

struct copies {
    cudaStream_t to[LANES], back[LANES];
    unsigned char *in, *out; /* device memory */
};

static void must(cudaError_t rc)
{
    if (rc != cudaSuccess) {
        (void)fprintf(stderr, "copies alone: %s\n", cudaGetErrorString(rc));
        exit(1);
    }
}

/* As many slots side by side as make a long copy, or as there are. */
static uint32_t slots_of_a_copy(const struct copies_side *side, uint64_t left)
{
    uint64_t n = COPIES_BYTES / side->stride + 1;
    n = n < side->slots ? n : side->slots;
    return (uint32_t)(n < left ? n : left);
}

/* Queues the copy of `n` tiles, that begins with the first slot. */
static void copy(const struct copies_side *side, unsigned char *device, uint32_t n,
                 cudaStream_t stream, bool to_device)
{
    void *to = to_device ? (void *)device : side->memory;
    const void *from = to_device ? side->memory : (const void *)device;
    must(cudaMemcpy2DAsync(to, side->stride, from, side->stride, side->bytes, n,
                           to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream));
}

static void run(const struct copies *c, const struct copies_side *in, const struct copies_side *out,
                uint64_t tiles)
{
    uint64_t gone = 0, back = 0;
    for (uint32_t i = 0; gone < tiles || back < tiles; i++) {
        uint32_t n = slots_of_a_copy(in, tiles - gone);
        if (n > 0)
            copy(in, c->in, n, c->to[i % LANES], true);
        gone += n;
        for (; back < gone; back += n) {
            n = slots_of_a_copy(out, gone - back);
            copy(out, c->out, n, c->back[i % LANES], false);
        }
    }
    must(cudaDeviceSynchronize());
}

double copies_alone(const struct copies_side *in, const struct copies_side *out, uint64_t tiles)
{
    struct copies c;
    for (int i = 0; i < LANES; i++) {
        must(cudaStreamCreateWithFlags(&c.to[i], cudaStreamNonBlocking));
        must(cudaStreamCreateWithFlags(&c.back[i], cudaStreamNonBlocking));
    }
    must(cudaMalloc((void **)&c.in, in->slots * in->stride));
    must(cudaMalloc((void **)&c.out, out->slots * out->stride));
    run(&c, in, out, tiles < WARM_UP ? tiles : WARM_UP);
    uint64_t start = pb_clock_mono_ns();
    run(&c, in, out, tiles);
    double seconds = (double)(pb_clock_mono_ns() - start) * 1e-9;
    must(cudaFree(c.in));
    must(cudaFree(c.out));
    for (int i = 0; i < LANES; i++) {
        must(cudaStreamDestroy(c.to[i]));
        must(cudaStreamDestroy(c.back[i]));
    }
    return seconds;
}
