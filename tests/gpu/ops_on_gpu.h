/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OPS_ON_GPU_H
#define PB_OPS_ON_GPU_H
/* The speed of a chain over a scene in device memory, a tile as large as the scene, so that
 * launches do not count and no cache holds it. CUDA builds only; for check_ops_speed.c. */
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_cuda.h"
#include "kernels/chain/chain_device.h"
#include "tests/gpu/check_device.h"
#include "tests/op_tile.h"

#define OPS_GPU_TIMES    9
#define OPS_GPU_MS       3.0 /* duration of the launches of one time together */
#define OPS_GPU_LAUNCHES 50  /* at most */
#define OPS_COPY_BYTES   ((size_t)1 << 30)

static struct {
    unsigned char *planes; /* OP_CASE_BANDS planes of UInt16, side x side */
    cudaEvent_t start, stop;
    int multiprocessors;
} ops_gpu;

struct ops_gpu_machine {
    char name[256];
    int multiprocessors, l2_bytes, shared_bytes; /* shared memory of a multiprocessor */
    double copy_gb_per_s;                        /* read and written */
};

struct ops_gpu_times {
    double stages_ns, stages_us; /* times of a pixel, of the scene */
    double parts_ns;             /* 0: no shape holds the chain's registers */
    char shape[64];
};

/* A function that is timed; queued on the default stream. Returns 0, or it failed. */
typedef int ops_gpu_launch(void *of);

static inline bool ops_gpu_is_there(void)
{
    int n = 0;

    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0;
}

static inline int ops_by_ms(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Milliseconds of n launches; negative: one failed. */
static inline float ops_gpu_time(ops_gpu_launch *launch, void *of, int n)
{
    float ms = -1.0f;
    int rc = 0;

    MUST(cudaEventRecord(ops_gpu.start, NULL));
    for (int i = 0; i < n && rc == 0; i++)
        rc = launch(of);
    MUST(cudaEventRecord(ops_gpu.stop, NULL));
    MUST(cudaEventSynchronize(ops_gpu.stop));
    MUST(cudaEventElapsedTime(&ms, ops_gpu.start, ops_gpu.stop));
    return rc == 0 ? ms : -1.0f;
}

/* The median of one launch in milliseconds; negative: it failed. */
static inline double ops_gpu_median(ops_gpu_launch *launch, void *of)
{
    float ms[OPS_GPU_TIMES];
    float once = ops_gpu_time(launch, of, 1); /* loads the code */

    once = once < 0.0f ? once : ops_gpu_time(launch, of, 1);
    if (once < 0.0f)
        return -1.0;
    const double wanted = OPS_GPU_MS / ((double)once + 1e-3);
    const int n = wanted < 1.0 ? 1 : wanted > OPS_GPU_LAUNCHES ? OPS_GPU_LAUNCHES : (int)wanted;
    for (int i = 0; i < OPS_GPU_TIMES; i++) {
        ms[i] = ops_gpu_time(launch, of, n);
        if (ms[i] < 0.0f)
            return -1.0;
    }
    qsort(ms, OPS_GPU_TIMES, sizeof ms[0], ops_by_ms);
    return (double)ms[OPS_GPU_TIMES / 2] / n;
}

/* --- the machine ----------------------------------------------------------------------------- */

struct ops_copy {
    void *from, *to;
};

static inline int ops_copy_launch(void *of)
{
    const struct ops_copy *const copy = of;

    return cudaMemcpyAsync(copy->to, copy->from, OPS_COPY_BYTES, cudaMemcpyDeviceToDevice, NULL) ==
                   cudaSuccess
               ? 0
               : -1;
}

/* The scene's bands: one random plane, each band beginning elsewhere in it. */
static inline bool ops_gpu_bands(int32_t side, size_t n_bands)
{
    enum { SHIFT = 4099 };
    const size_t px = (size_t)side * (size_t)side, n = px + n_bands * SHIFT;
    uint16_t *const random = malloc(n * sizeof *random);

    if (random == NULL)
        return false;
    op_tile_fill(random, n, 1);
    MUST(cudaMalloc((void **)&ops_gpu.planes, n_bands * px * sizeof *random));
    for (size_t i = 0; i < n_bands; i++)
        MUST(cudaMemcpy(ops_gpu.planes + i * px * sizeof *random, random + i * SHIFT,
                        px * sizeof *random, cudaMemcpyHostToDevice));
    free(random);
    return true;
}

static inline bool ops_gpu_open(int32_t side, size_t n_bands, struct ops_gpu_machine *out)
{
    struct cudaDeviceProp properties;
    struct ops_copy copy;

    MUST(cudaGetDeviceProperties(&properties, 0));
    MUST(cudaEventCreate(&ops_gpu.start));
    MUST(cudaEventCreate(&ops_gpu.stop));
    ops_gpu.multiprocessors = properties.multiProcessorCount;
    copy.from = on_device(NULL, OPS_COPY_BYTES);
    copy.to = on_device(NULL, OPS_COPY_BYTES);
    MUST(cudaMemset(copy.from, 17, OPS_COPY_BYTES));
    const double ms = ops_gpu_median(ops_copy_launch, &copy);
    MUST(cudaFree(copy.from));
    MUST(cudaFree(copy.to));
    *out = (struct ops_gpu_machine){.multiprocessors = properties.multiProcessorCount,
                                    .l2_bytes = properties.l2CacheSize,
                                    .shared_bytes = (int)properties.sharedMemPerMultiprocessor,
                                    .copy_gb_per_s =
                                        2.0 * (double)OPS_COPY_BYTES / (ms * 1e-3) * 1e-9};
    (void)snprintf(out->name, sizeof out->name, "%s", properties.name);
    return ms > 0.0 && ops_gpu_bands(side, n_bands);
}

static inline void ops_gpu_close(void)
{
    (void)cudaFree(ops_gpu.planes);
    (void)cudaEventDestroy(ops_gpu.start);
    (void)cudaEventDestroy(ops_gpu.stop);
}

/* --- a chain --------------------------------------------------------------------------------- */

struct ops_gpu_run {
    const struct pb_chain *chain;
    struct pb_tile_in in;
    struct pb_tile_out out;
    struct pb_chain_cuda *stages;
    struct pb_chain_device device;
    struct pb_chain_block_shape shape;
    void *scratch;
};

static inline int ops_stages_launch(void *of)
{
    const struct ops_gpu_run *const run = of;

    return pb_chain_cuda_launch(run->stages, &run->in, &run->out, NULL);
}

static inline int ops_parts_launch(void *of)
{
    const struct ops_gpu_run *const run = of;

    return pb_chain_block_launch(run->chain, &run->device, &run->shape, &run->in, &run->out,
                                 run->scratch, NULL);
}

static inline bool ops_gpu_stages(struct ops_gpu_run *run, struct ops_gpu_times *times)
{
    const double px = (double)run->in.core.w * run->in.core.h;
    const bool good =
        pb_chain_cuda_create(run->chain, run->in.core.w, run->in.core.h, &run->stages) == 0;
    const double ms = good ? ops_gpu_median(ops_stages_launch, run) : -1.0;

    pb_chain_cuda_destroy(run->stages);
    times->stages_us = ms * 1e3;
    times->stages_ns = ms * 1e6 / px;
    return ms > 0.0;
}

/* One shape with `per_multiprocessor` blocks. False: it failed; a chain with too many registers for
 * the shape does not. */
static inline bool ops_gpu_shape(struct ops_gpu_run *run, uint32_t per_multiprocessor,
                                 struct ops_gpu_times *times)
{
    const double px = (double)run->in.core.w * run->in.core.h;
    struct pb_chain_block_shape *const shape = &run->shape;
    struct pb_chain_block_needs needs;

    shape->blocks = per_multiprocessor * (uint32_t)ops_gpu.multiprocessors;
    if (pb_chain_block_measure(run->chain, shape->part_w, shape->part_h, shape->threads,
                               PB_CHAIN_BLOCK_SHARED, &needs) < 0)
        return true;
    run->scratch = on_device(NULL, needs.scratch_bytes * shape->blocks + 1);
    const double ms = ops_gpu_median(ops_parts_launch, run);
    const double ns = ms * 1e6 / px;
    MUST(cudaFree(run->scratch));
    if (ms > 0.0 && (times->parts_ns == 0.0 || ns < times->parts_ns)) {
        times->parts_ns = ns;
        (void)snprintf(times->shape, sizeof times->shape,
                       "%d x %d, %u threads, %u a SM, %d px, %u B shared", shape->part_w,
                       shape->part_h, shape->threads, per_multiprocessor, needs.px,
                       needs.shared_bytes);
    }
    return ms > 0.0;
}

static inline bool ops_gpu_parts(struct ops_gpu_run *run, struct ops_gpu_times *times)
{
    static const struct {
        struct pb_chain_block_shape shape;
        uint32_t per_multiprocessor;
    } tried[] = {{{128, 64, 256, 0}, 2}, {{128, 128, 512, 0}, 1}, {{64, 64, 128, 0}, 4}};
    bool good = pb_chain_device_create(run->chain, &run->device) == 0;

    for (size_t i = 0; i < sizeof tried / sizeof tried[0] && good; i++) {
        run->shape = tried[i].shape;
        good = ops_gpu_shape(run, tried[i].per_multiprocessor, times);
    }
    pb_chain_device_destroy(&run->device);
    return good;
}

/* Both ways of a GPU. `in` is the tile that is the whole scene, without its memory. False: a way
 * failed. */
static inline bool ops_on_gpu(const struct pb_chain *chain, const struct pb_tile_in *in,
                              struct ops_gpu_times *out_times)
{
    const size_t px = (size_t)in->core.w * (size_t)in->core.h;
    struct ops_gpu_run run = {.chain = chain, .in = *in};

    op_tile_set_data(chain, ops_gpu.planes, &run.in);
    run.out = (struct pb_tile_out){
        on_device(NULL, pb_chain_output_count(chain) * px * sizeof(float)), px};
    const bool good = ops_gpu_stages(&run, out_times) && ops_gpu_parts(&run, out_times);
    MUST(cudaFree(run.out.data));
    return good;
}
#endif
