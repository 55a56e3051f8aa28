/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Chains on a GPU against the same chains on the CPU, in both ways that a GPU runs them: a kernel a
 * stage over the whole tile, and the whole chain part by part inside a block. Every operator of the
 * registry, chains of stencils, random expressions, all sample types, masks, nodata, odd sizes,
 * padded rows, programs of up to 255 registers, guard bytes around the output. Then the speed of
 * each case on device memory.
 *
 *   check_ops [--quick]     0 equal; 1 not; 77 no GPU or built without CUDA
 *
 * --quick checks less and times nothing: for running under compute-sanitizer. */
#ifndef PB_HAVE_CUDA
#include <stdio.h>

int main(void)
{
    (void)fprintf(stderr, "skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/chain_block.h"
#include "kernels/chain_cuda.h"
#include "kernels/chain_device.h"
#include "tests/op_cases.h"
#include "tests/random_tile.h"

#include <cuda_runtime_api.h>

#define GUARD_PX 64
#define GUARD    0x5a

static uint32_t random_state = 2024;
static long tiles_checked, pixels_checked, worst_ulp;
static bool quick;

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
    unsigned char *data, *mask, *out;
    size_t out_bytes;
};

static bool device_tile_make(const struct random_tile *tile, size_t out_px,
                             struct device_tile *device)
{
    *device = (struct device_tile){.out_bytes = (out_px + 2 * GUARD_PX) * sizeof(float)};
    bool good =
        cuda_ok(cudaMalloc((void **)&device->data, tile->bytes), "tile") &&
        cuda_ok(cudaMalloc((void **)&device->out, device->out_bytes), "output") &&
        cuda_ok(cudaMemset(device->out, GUARD, device->out_bytes), "guards") &&
        cuda_ok(cudaMemcpy(device->data, tile->data, tile->bytes, cudaMemcpyHostToDevice), "copy");
    if (good && tile->mask)
        good =
            cuda_ok(cudaMalloc((void **)&device->mask, tile->mask_bytes), "mask") &&
            cuda_ok(cudaMemcpy(device->mask, tile->mask, tile->mask_bytes, cudaMemcpyHostToDevice),
                    "copy of the mask");
    return good;
}

static void device_tile_free(struct device_tile *device)
{
    (void)cudaFree(device->data);
    (void)cudaFree(device->mask);
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

/* Any part size and crew that the chain's registers allow; fewer blocks than parts, so that scratch
 * and shared memory are used again. */
static struct pb_chain_block_shape random_shape(const struct pb_chain *chain,
                                                struct pb_chain_block_needs *needs)
{
    struct pb_chain_block_shape shape = {64, 48, 32 * (1 + random_below(16)), 1 + random_below(5)};

    if (random_below(2)) {
        shape.part_w = 1 + (int32_t)random_below(150);
        shape.part_h = 1 + (int32_t)random_below(60);
    }
    while (shape.threads > 32 &&
           pb_chain_block_measure(chain, shape.part_w, shape.part_h, shape.threads,
                                  PB_CHAIN_BLOCK_SHARED, needs) < 0)
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
    struct pb_tile_in in = tile->in;
    unsigned char *host = NULL;
    cudaStream_t stream = NULL;

    if (device_tile_make(tile, pb_chain_output_count(chain) * plane_px, &device) &&
        cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream")) {
        const struct pb_tile_out out = {(float *)(void *)device.out + GUARD_PX, plane_px};

        in.data = device.data;
        in.mask = device.mask;
        host = malloc(device.out_bytes);
        if (!host || !cuda_ok(cudaDeviceSynchronize(), "before") ||
            !run(chain, &in, &out, stream) ||
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

static bool check_tile(const struct pb_chain *chain, enum pb_type type, bool exact,
                       const char *label)
{
    static const struct {
        const char *name;
        run_tile *run;
    } ways[] = {{"stage by stage", run_by_stages}, {"part by part", run_by_parts}};
    const struct random_image image = {.seed = random_below(1u << 20),
                                       .type = type,
                                       .w = 1 + (int32_t)random_below(300),
                                       .h = 1 + (int32_t)random_below(120),
                                       .masked = random_below(2) == 1};
    struct pb_rect core = {(int32_t)random_below((uint32_t)image.w),
                           (int32_t)random_below((uint32_t)image.h), 0, 0};
    struct random_tile tile;
    const uint32_t *used;
    const size_t n_used = pb_chain_used(chain, &used);
    bool good = false;

    core.w = 1 + (int32_t)random_below((uint32_t)(image.w - core.x));
    core.h = 1 + (int32_t)random_below((uint32_t)(image.h - core.y));
    const size_t plane_px = (size_t)core.w * (size_t)core.h + random_below(9);
    if (random_tile_make(&image, &core, pb_chain_halo(chain) + (int32_t)random_below(3), used,
                         n_used, random_below(4), &tile)) {
        float *const cpu = run_on_cpu(chain, &tile.in, plane_px);

        good = cpu != NULL;
        for (size_t i = 0; i < sizeof ways / sizeof ways[0] && good; i++) {
            unsigned char *const gpu = run_on_gpu(chain, &tile, plane_px, ways[i].run);

            good = gpu && compare(chain, &core, plane_px, cpu, gpu, exact, label);
            if (!good)
                (void)fprintf(stderr, "%s: not right on the GPU %s\n", label, ways[i].name);
            free(gpu);
        }
        if (!cpu)
            (void)fprintf(stderr, "%s: did not run on the CPU\n", label);
        free(cpu);
    }
    random_tile_free(&tile);
    return good;
}

/* --- the registry ---------------------------------------------------------------------------- */

static bool check_case(const struct op_case *c)
{
    bool good = true;

    for (int type = 0; type < PB_TYPE_COUNT && good; type++)
        for (int variant = quick ? 3 : 0; variant < 4 && good; variant++) {
            struct pb_chain *chain = NULL;
            struct pb_diag diag;
            const int rc =
                op_case_chain(c, (enum pb_type)type, variant & 1, TILE_NODATA,
                              variant & 2 ? 0.0001 : 1.0, variant & 2 ? -0.1 : 0.0, &diag, &chain);

            if (rc < 0)
                (void)fprintf(stderr, "%s %s: %s\n", c->op, c->label, diag.msg);
            for (int i = 0; i < (quick ? 1 : 4) && good; i++)
                good = rc == 0 && check_tile(chain, (enum pb_type)type, c->exact, c->label);
            pb_chain_destroy(chain);
        }
    return good;
}

/* --- random expressions and large programs --------------------------------------------------- */

static void random_expression(char *text, int depth)
{
    static const char *const two[] = {"+", "-", "*", "/", "<", "==", ">="};
    static const char *const calls[] = {"min(", "max(", "pow(",   "abs(",  "sqrt(",
                                        "log(", "exp(", "clamp(", "where("};
    static const int args[] = {2, 2, 2, 1, 1, 1, 1, 3, 3};

    if (depth == 0 || random_below(7) == 0) {
        if (random_below(4))
            strcat(text, op_case_bands[random_below(OP_CASE_BANDS)]);
        else
            sprintf(text + strlen(text), "%u.%u", random_below(4), random_below(100));
    } else if (random_below(3)) {
        strcat(text, "(");
        random_expression(text, depth - 1);
        strcat(text, two[random_below(7)]);
        random_expression(text, depth - 1);
        strcat(text, ")");
    } else {
        const uint32_t f = random_below(9);

        strcat(text, calls[f]);
        for (int i = 0; i < args[f]; i++) {
            strcat(text, i ? "," : "");
            random_expression(text, depth - 1);
        }
        strcat(text, ")");
    }
}

/* Only a transcendental function's result may differ, and a difference may grow afterwards; so
 * these must be equal to the bit, which kernels/vm_pixel.h promises for them too. */
static bool check_expression(const char *text)
{
    const enum pb_type type = (enum pb_type)random_below(PB_TYPE_COUNT);
    const struct op_case c = {
        "math", "random expression", "X", true, {{"bands", {{.key = "X", .text = text}}}}};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    bool good = op_case_chain(&c, type, true, TILE_NODATA, random_below(2) ? 0.001 : 1.0, 0.0,
                              &diag, &chain) == 0;

    if (!good)
        (void)fprintf(stderr, "%s: %s\n", text, diag.msg);
    for (int i = 0; i < 2 && good; i++)
        good = check_tile(chain, type, true, text);
    pb_chain_destroy(chain);
    return good;
}

/* Keeps n values alive at once: one band sums them up, another one subtracts them. They are too
 * large to be computed twice. */
static bool check_registers(int n)
{
    static char texts[256][64], names[256][8], sums[2][4096];
    struct pb_arg_item items[259];

    for (int i = 0; i < n; i++) {
        sprintf(names[i], "v%d", i);
        sprintf(texts[i], "((N + %d) * (R - %d) + N * 0.5) / (R * R + N + 1)", i, i);
        items[i] = (struct pb_arg_item){.key = names[i], .text = texts[i]};
    }
    for (int k = 0; k < 2; k++) {
        char *at = sums[k] + sprintf(sums[k], "v0");

        for (int i = 1; i < n; i++)
            at += sprintf(at, "%cv%d", "+-"[k], i);
        items[n + k] = (struct pb_arg_item){.key = k ? "D" : "S", .text = sums[k]};
    }
    items[n + 2] = (struct pb_arg_item){.key = "X", .text = "S / (1 + abs(D))"};
    struct pb_op_args args = {.arg = {{items, (size_t)n + 3}}};
    const struct pb_chain_step step = {pb_op_find("math"), &args};
    const struct pb_chain_input inputs[] = {{"R", PB_U16, false, 0.0, 1.0, 0.0},
                                            {"N", PB_U16, false, 0.0, 1.0, 0.0}};
    const char *const output = "X";
    const struct pb_chain_spec spec = {inputs, 2, &step, 1, &output, 1};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t failed;
    bool good = pb_chain_create(&spec, &diag, &failed, &chain) == 0;
    if (!good)
        (void)fprintf(stderr, "%d values: %s\n", n, diag.msg);
    for (int i = 0; i < 3 && good; i++)
        good = check_tile(chain, PB_U16, true, "many registers");
    pb_chain_destroy(chain);
    return good;
}

/* --- speed ----------------------------------------------------------------------------------- */

static void time_case(const struct op_case *c)
{
    enum { SIDE = 4096, RUNS = 20 };
    const struct pb_rect all = {0, 0, SIDE, SIDE};
    struct pb_chain *chain = NULL;
    struct pb_chain_cuda *gpu = NULL;
    struct pb_diag diag;
    const uint32_t *used;
    unsigned char *in_px = NULL;
    float *out_px = NULL, ms = 0.0f;
    cudaEvent_t start = NULL, stop = NULL;

    if (op_case_chain(c, PB_U16, true, 0.0, 0.0001, 0.0, &diag, &chain) < 0)
        return;
    const size_t plane = (size_t)SIDE * SIDE, n = pb_chain_used(chain, &used);
    if (cuda_ok(cudaMalloc((void **)&in_px, n * plane * 2), "input") &&
        cuda_ok(cudaMalloc((void **)&out_px, plane * 4), "output") &&
        cuda_ok(cudaMemset(in_px, 17, n * plane * 2), "fill") &&
        pb_chain_cuda_create(chain, SIDE, SIDE, &gpu) == 0 &&
        cuda_ok(cudaEventCreate(&start), "event") && cuda_ok(cudaEventCreate(&stop), "event")) {
        const struct pb_tile_in in = {in_px, SIDE * 2, plane * 2, NULL, 0, all, all, SIDE, SIDE};
        const struct pb_tile_out out = {out_px, plane};

        for (int i = 0; i <= RUNS; i++) {
            if (i == 1)
                (void)cudaEventRecord(start, NULL);
            (void)pb_chain_cuda_launch(gpu, &in, &out, NULL);
        }
        (void)cudaEventRecord(stop, NULL);
        if (cuda_ok(cudaEventSynchronize(stop), "timing") &&
            cuda_ok(cudaEventElapsedTime(&ms, start, stop), "timing"))
            printf("%-9s %-12s %3zu instructions %8.1f Gpx/s\n", c->op, c->label,
                   pb_chain_instruction_count(chain),
                   (double)plane * RUNS / ((double)ms * 1e-3) * 1e-9);
    }
    (void)cudaEventDestroy(start);
    (void)cudaEventDestroy(stop);
    pb_chain_cuda_destroy(gpu);
    (void)cudaFree(in_px);
    (void)cudaFree(out_px);
    pb_chain_destroy(chain);
}

static bool check_all(void)
{
    static char text[100000];
    bool good = op_cases_cover_registry();

    for (size_t i = 0; i < OP_CASES && good; i++)
        good = check_case(&op_cases[i]);
    for (int i = 0; i < (quick ? 20 : 300) && good; i++) {
        do {
            text[0] = '\0';
            random_expression(text, 1 + i % 5);
        } while (strlen(text) > 2000);
        good = check_expression(text);
    }
    for (int n = 4; n <= 244 && good; n += quick ? 80 : 20)
        good = check_registers(n);
    return good;
}

int main(int argc, char **argv)
{
    int devices = 0;
    const cudaError_t error = cudaGetDeviceCount(&devices);

    if (error != cudaSuccess || devices == 0) {
        (void)fprintf(stderr, "skipped: no CUDA device (%s)\n", cudaGetErrorString(error));
        return 77;
    }
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (!check_all())
        return EXIT_FAILURE;
    printf("%ld tiles, %ld pixels: GPU and CPU agree, largest difference %ld ULP\n", tiles_checked,
           pixels_checked, worst_ulp);
    for (size_t i = 0; i < OP_CASES && !quick; i++)
        time_case(&op_cases[i]);
    return EXIT_SUCCESS;
}
#endif
