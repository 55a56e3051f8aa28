/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/copies.h"

#include "config/base/clock.h"
#include "pipeline/device/cuda_err.h"

enum { LANES = 2 };

struct copies {
    cudaStream_t to[LANES], back[LANES];
    unsigned char *in, *out; /* device memory */
    cudaError_t error;       /* the first */
};

static void note(struct copies *c, cudaError_t rc)
{
    if (c->error == cudaSuccess)
        c->error = rc;
}

/* Count of adjacent slots for a long copy, or of all slots. */
static uint32_t slots_of_a_copy(const struct pb_copies_side *side, uint64_t left)
{
    uint64_t n = PB_COPIES_BYTES / side->stride + 1;
    n = n < side->slots ? n : side->slots;
    return (uint32_t)(n < left ? n : left);
}

/* Queues the copy of `n` tiles, beginning with the first slot. */
static cudaError_t copy(const struct pb_copies_side *side, unsigned char *device, uint32_t n,
                        cudaStream_t stream, bool to_device)
{
    void *to = to_device ? (void *)device : side->memory;
    const void *from = to_device ? side->memory : (const void *)device;
    return cudaMemcpy2DAsync(to, side->stride, from, side->stride, side->bytes, n,
                             to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream);
}

static void run(struct copies *c, const struct pb_copies_side *in, const struct pb_copies_side *out,
                uint64_t tiles)
{
    uint64_t gone = 0, back = 0;
    for (uint32_t i = 0; gone < tiles || back < tiles; i++) {
        uint32_t n = slots_of_a_copy(in, tiles - gone);
        if (n > 0)
            note(c, copy(in, c->in, n, c->to[i % LANES], true));
        gone += n;
        for (; back < gone; back += n) {
            n = slots_of_a_copy(out, gone - back);
            note(c, copy(out, c->out, n, c->back[i % LANES], false));
        }
    }
    note(c, cudaDeviceSynchronize());
}

static void init(struct copies *c, const struct pb_copies_side *in,
                 const struct pb_copies_side *out)
{
    for (int i = 0; i < LANES; i++) {
        note(c, cudaStreamCreateWithFlags(&c->to[i], cudaStreamNonBlocking));
        note(c, cudaStreamCreateWithFlags(&c->back[i], cudaStreamNonBlocking));
    }
    note(c, cudaMalloc((void **)&c->in, in->slots * in->stride));
    note(c, cudaMalloc((void **)&c->out, out->slots * out->stride));
}

static void fini(struct copies *c)
{
    (void)cudaFree(c->in);
    (void)cudaFree(c->out);
    for (int i = 0; i < LANES; i++) {
        if (c->to[i] != NULL)
            (void)cudaStreamDestroy(c->to[i]);
        if (c->back[i] != NULL)
            (void)cudaStreamDestroy(c->back[i]);
    }
}

int pb_copies_measure(const struct pb_copies_side *in, const struct pb_copies_side *out,
                      uint64_t tiles, struct pb_err *err, double *out_seconds)
{
    struct copies c = {.error = cudaSuccess};
    double seconds = 0;
    init(&c, in, out);
    if (c.error == cudaSuccess) {
        run(&c, in, out, in->slots);
        uint64_t start = pb_clock_mono_ns();
        run(&c, in, out, tiles);
        seconds = (double)(pb_clock_mono_ns() - start) * 1e-9;
    }
    fini(&c);
    if (c.error == cudaSuccess)
        *out_seconds = seconds;
    return pb_cuda_err(err, c.error, "copying tiles to the GPU and back");
}
