/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CHECK_TILE_H
#define PB_CHECK_TILE_H
/* One random tile through a chain on the CPU and, in both ways, on the GPU, with guard bytes around
 * the output. The part of check_ops that knows devices; for its one file. */
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_cuda.h"
#include "kernels/chain/chain_device.h"
#include "tests/grid_chain.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#define GUARD_PX 64
#define GUARD    0x5a

static uint32_t random_state = 2024;
static long tiles_checked, pixels_checked, worst_ulp;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

static bool cuda_ok(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    return error == cudaSuccess;
}

/* --- one tile on both devices ---------------------------------------------------------------- */

static void *run_on_cpu(const struct pb_chain *chain, const struct pb_tile_in *in, size_t plane_px)
{
    const size_t n = pb_chain_output_count(chain) * plane_px;
    const size_t bytes = pb_chain_scratch_bytes(chain, in->core.w, in->core.h);
    void *const scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
    float *const data = malloc(n * sizeof *data);
    const struct pb_tile_out out = {data, plane_px};

    if (!scratch || !data || pb_chain_run_cpu(chain, in, &out, scratch) < 0) {
        free(data);
        free(scratch);
        return NULL;
    }
    free(scratch);
    return data;
}

/* Device copies of a tile and of an output with guards around it. */
struct device_tile {
    struct pb_tile_in in;
    void *memory[2 * PB_SOURCES_MAX]; /* windows and masks */
    unsigned char *out;
    size_t out_bytes;
};

/* A copy of some bytes; NULL of none. */
static bool device_copy(const void *from, size_t bytes, void **out)
{
    return from == NULL || (cuda_ok(cudaMalloc(out, bytes), "tile") &&
                            cuda_ok(cudaMemcpy(*out, from, bytes, cudaMemcpyHostToDevice), "copy"));
}

static bool device_tile_make(const struct random_tile *tile, size_t out_px,
                             struct device_tile *device)
{
    *device =
        (struct device_tile){.in = tile->in, .out_bytes = (out_px + 2 * GUARD_PX) * sizeof(float)};
    bool good = cuda_ok(cudaMalloc((void **)&device->out, device->out_bytes), "output") &&
                cuda_ok(cudaMemset(device->out, GUARD, device->out_bytes), "guards");
    for (size_t i = 0; i < PB_SOURCES_MAX && good; i++) {
        const struct random_window *const from = &tile->source[i];
        void **const to = &device->memory[2 * i];

        good = device_copy(from->data, from->bytes, &to[0]) &&
               device_copy(from->mask, from->mask_bytes, &to[1]);
        device->in.window[i].data = to[0];
        device->in.window[i].mask = to[1];
    }
    return good;
}

static void device_tile_free(struct device_tile *device)
{
    for (size_t i = 0; i < 2 * PB_SOURCES_MAX; i++)
        (void)cudaFree(device->memory[i]);
    (void)cudaFree(device->out);
}

/* A way to run a tile whose addresses are the device's; waits until it is done. */
typedef bool run_tile(const struct pb_chain *chain, const struct pb_tile_in *in,
                      const struct pb_tile_out *out, cudaStream_t stream);

static bool run_by_stages(const struct pb_chain *chain, const struct pb_tile_in *in,
                          const struct pb_tile_out *out, cudaStream_t stream)
{
    struct pb_chain_cuda *gpu = NULL;
    const bool good = pb_chain_cuda_create(chain, in->core.w, in->core.h, &gpu) == 0 &&
                      pb_chain_cuda_launch(gpu, in, out, stream) == 0 &&
                      cuda_ok(cudaStreamSynchronize(stream), "run by stages");

    pb_chain_cuda_destroy(gpu);
    return good;
}

/* Any part size and thread group that the chain's registers allow; fewer blocks than parts, so that
 * scratch and shared memory are used again. */
static struct pb_chain_block_shape random_shape(const struct pb_chain *chain,
                                                struct pb_chain_block_needs *needs)
{
    struct pb_chain_block_shape shape = {64, 48, 32 * (1 + random_below(16)), 1 + random_below(5)};

    if (random_below(2)) {
        shape.part_w = 1 + (int32_t)random_below(150);
        shape.part_h = 1 + (int32_t)random_below(60);
    }
    while (pb_chain_block_measure(chain, shape.part_w, shape.part_h, shape.threads,
                                  PB_CHAIN_BLOCK_SHARED, needs) < 0 &&
           shape.threads > 32)
        shape.threads -= 32;
    return shape;
}

static bool run_by_parts(const struct pb_chain *chain, const struct pb_tile_in *in,
                         const struct pb_tile_out *out, cudaStream_t stream)
{
    struct pb_chain_block_needs needs = {0};
    struct pb_chain_device device = {0};
    const struct pb_chain_block_shape shape = random_shape(chain, &needs);
    void *scratch = NULL;
    const size_t bytes = needs.scratch_bytes * shape.blocks;
    const bool good =
        pb_chain_device_create(chain, &device) == 0 &&
        cuda_ok(cudaMalloc(&scratch, bytes + 1), "scratch") &&
        cuda_ok(cudaMemset(scratch, GUARD, bytes + 1), "scratch") &&
        cuda_ok(cudaDeviceSynchronize(), "before") &&
        pb_chain_block_launch(chain, &device, &shape, in, out, scratch, stream) == 0 &&
        cuda_ok(cudaStreamSynchronize(stream), "run by parts");

    if (!good)
        (void)fprintf(stderr, "parts of %d x %d, %u blocks of %u threads, %d pixels a thread\n",
                      shape.part_w, shape.part_h, shape.blocks, shape.threads, needs.px);
    (void)cudaFree(scratch);
    pb_chain_device_destroy(&device);
    return good;
}

/* The output with its guards, on the host. */
static unsigned char *run_on_gpu(const struct pb_chain *chain, const struct random_tile *tile,
                                 size_t plane_px, run_tile *run)
{
    struct device_tile device;
    unsigned char *host = NULL;
    cudaStream_t stream = NULL;

    if (device_tile_make(tile, pb_chain_output_count(chain) * plane_px, &device) &&
        cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream")) {
        const struct pb_tile_out out = {(float *)(void *)device.out + GUARD_PX, plane_px};

        host = malloc(device.out_bytes);
        if (!host || !cuda_ok(cudaDeviceSynchronize(), "before") ||
            !run(chain, &device.in, &out, stream) ||
            !cuda_ok(cudaMemcpy(host, device.out, device.out_bytes, cudaMemcpyDeviceToHost),
                     "result")) {
            free(host);
            host = NULL;
        }
    }
    if (stream)
        (void)cudaStreamDestroy(stream);
    device_tile_free(&device);
    return host;
}

/* Steps between two floats; 0 for equal bits. A NaN on one side only is as far as can be. */
static long ulp_distance(float a, float b)
{
    int32_t x, y;

    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    if (x == y)
        return 0;
    if (isnan(a) || isnan(b))
        return INT32_MAX;
    const int64_t p = x < 0 ? (int64_t)INT32_MIN - x : x, q = y < 0 ? (int64_t)INT32_MIN - y : y;
    return (long)(p > q ? p - q : q - p);
}

static bool compare(const struct pb_chain *chain, const struct pb_rect *core, size_t plane_px,
                    const float *cpu, const unsigned char *gpu, bool exact, const char *label)
{
    const size_t n_out = pb_chain_output_count(chain), n = (size_t)core->w * (size_t)core->h;
    const size_t bytes = (n_out * plane_px + 2 * GUARD_PX) * sizeof(float);
    const float *const data = (const float *)(const void *)gpu + GUARD_PX;

    for (size_t i = 0; i < bytes; i++) {
        const size_t px = i / sizeof(float);
        const bool written =
            px >= GUARD_PX && px < GUARD_PX + n_out * plane_px && (px - GUARD_PX) % plane_px < n;

        if (!written && gpu[i] != GUARD) {
            (void)fprintf(stderr, "%s: byte %zu outside the output was written\n", label, i);
            return false;
        }
    }
    for (size_t p = 0; p < n_out; p++)
        for (size_t i = 0; i < n; i++) {
            const long d = ulp_distance(cpu[p * plane_px + i], data[p * plane_px + i]);

            worst_ulp = d > worst_ulp ? d : worst_ulp;
            if (d > (exact ? 0 : 2)) {
                (void)fprintf(stderr, "%s: output %zu, pixel %zu of %d x %d: cpu %a, gpu %a\n",
                              label, p, i, core->w, core->h, (double)cpu[p * plane_px + i],
                              (double)data[p * plane_px + i]);
                return false;
            }
        }
    tiles_checked++;
    pixels_checked += (long)(n * n_out);
    return true;
}

/* The tile by every way of a GPU against the CPU. */
static bool check_ways(const struct pb_chain *chain, const struct random_tile *tile, bool exact,
                       const char *label)
{
    static const struct {
        const char *name;
        run_tile *run;
    } ways[] = {{"stage by stage", run_by_stages}, {"part by part", run_by_parts}};
    const struct pb_rect *const core = &tile->in.core;
    const size_t plane_px = (size_t)core->w * (size_t)core->h + random_below(9);
    float *const cpu = run_on_cpu(chain, &tile->in, plane_px);
    bool good = cpu != NULL;

    for (size_t i = 0; i < sizeof ways / sizeof ways[0] && good; i++) {
        unsigned char *const gpu = run_on_gpu(chain, tile, plane_px, ways[i].run);

        good = gpu && compare(chain, core, plane_px, cpu, gpu, exact, label);
        if (!good)
            (void)fprintf(stderr, "%s: not right on the GPU %s\n", label, ways[i].name);
        free(gpu);
    }
    if (!cpu)
        (void)fprintf(stderr, "%s: did not run on the CPU\n", label);
    free(cpu);
    return good;
}

/* Any rectangle of an image. */
static struct pb_rect random_core(int32_t w, int32_t h)
{
    const int32_t x = (int32_t)random_below((uint32_t)w), y = (int32_t)random_below((uint32_t)h);

    return (struct pb_rect){x, y, 1 + (int32_t)random_below((uint32_t)(w - x)),
                            1 + (int32_t)random_below((uint32_t)(h - y))};
}

/* How wide an image is whose rows are filled by the 256 pixels that a warp makes of programs with
 * few registers (program.cu), or nearly. */
static int32_t filled_row(void)
{
    const int32_t spans = 1 + (int32_t)random_below(2);

    return 256 * spans - (random_below(2) ? (int32_t)random_below(28) : 0);
}

/* Checks a chain that keeps its scene's grid. */
static bool check_tile(const struct pb_chain *chain, enum pb_type type, bool exact,
                       const char *label)
{
    const bool is_filled = random_below(3) == 0;
    const struct random_image image = {.seed = random_below(1u << 20),
                                       .type = type,
                                       .w = is_filled ? filled_row()
                                                      : 1 + (int32_t)random_below(300),
                                       .h = 1 + (int32_t)random_below(120),
                                       .masked = random_below(2) == 1};
    const struct pb_rect any = random_core(image.w, image.h);
    const struct pb_rect core = is_filled ? (struct pb_rect){0, any.y, image.w, any.h} : any;
    struct random_tile tile;
    const uint32_t *used;
    const size_t n_used = pb_chain_used(chain, &used);
    const bool good =
        random_tile_make(&image, &core, pb_chain_halo(chain) + (int32_t)random_below(3), used,
                         n_used, random_below(4), &tile) &&
        check_ways(chain, &tile, exact, label);

    random_tile_free(&tile);
    return good;
}

/* Checks a chain that changes the grid. */
static bool check_grid_tile(const struct pb_chain *chain, const struct random_image *images,
                            size_t n_images, const uint32_t *source_of, bool exact,
                            const char *label)
{
    const struct pb_geometry grid = pb_chain_geometry(chain);
    const struct pb_rect core = random_core(grid.w, grid.h);
    struct random_tile tile;
    const bool good = grid_tile_make(chain, images, n_images, source_of, &core,
                                     (int32_t)random_below(3), random_below(4), &tile) &&
                      check_ways(chain, &tile, exact, label);

    random_tile_free(&tile);
    return good;
}
#endif
