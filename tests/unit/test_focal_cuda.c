/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Focal operations on a GPU against the CPU, bit for bit: all kinds, radii and edge rules, whole
 * images and tiles in the middle, at sizes that leave the last blocks partly empty. Needs a CUDA
 * build and a device; without them it is skipped with a message. */
#include <stdio.h>

#ifndef PB_HAVE_CUDA

int main(void)
{
    printf("skipped: this build has no CUDA\n");
    return 77;
}

#else

#include "kernels/focal/focal.h"

#include <check.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t seed = 7;

static int32_t between(int32_t low, int32_t high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int32_t)((seed >> 8) % (uint32_t)(high - low + 1));
}

static float any_float(void)
{
    return (float)between(-8388608, 8388607) / 8388608.0f;
}

/* One of what the kind offers. */
static int32_t any_choice(enum pb_focal_kind kind, int32_t side)
{
    switch (kind) {
    case PB_FOCAL_RANK:
        return between(0, side * side - 1);
    case PB_FOCAL_MOMENTS:
    case PB_FOCAL_DIRECTIONAL:
        return between(0, 3);
    case PB_FOCAL_GRADIENT:
        return between(0, 6);
    case PB_FOCAL_ADAPTIVE:
    case PB_FOCAL_FLAT:
        return between(0, 1);
    default:
        return between(0, 2);
    }
}

static struct pb_focal any_focal(int kind, int edge, int32_t radius)
{
    struct pb_focal s = {
        .kind = (enum pb_focal_kind)kind, .edge = (enum pb_edge)edge, .radius = radius};
    s.choice = any_choice(s.kind, 2 * radius + 1);
    s.strength = 4 * fabsf(any_float());
    for (int i = 0; i < PB_FOCAL_SIDE_MAX; i++) {
        s.weight_x[i] = kind == PB_FOCAL_FLAT ? (float)between(0, 2 * radius) : any_float();
        s.weight_y[i] = kind == PB_FOCAL_FLAT ? (float)between(0, 2 * radius) : any_float();
    }
    for (int i = 0; i < PB_FOCAL_SIDE_MAX * PB_FOCAL_SIDE_MAX; i++) {
        s.weight[i] = kind == PB_FOCAL_ADAPTIVE ? fabsf(any_float()) : any_float();
    }
    return s;
}

static size_t bytes_of(const struct pb_rect *r)
{
    return (size_t)r->w * (size_t)r->h * sizeof(float);
}

/* The focal operation over one tile on the device; result in host memory. */
static void run_on_device(const struct pb_focal *s, const struct pb_plane *in,
                          const struct pb_plane *out, int32_t w, int32_t h)
{
    struct pb_plane d_in = *in, d_out = *out;
    ck_assert_int_eq(cudaMalloc((void **)&d_in.data, bytes_of(&in->rect)), cudaSuccess);
    ck_assert_int_eq(cudaMalloc((void **)&d_out.data, bytes_of(&out->rect)), cudaSuccess);
    cudaMemcpy(d_in.data, in->data, bytes_of(&in->rect), cudaMemcpyHostToDevice);
    cudaMemset(d_out.data, 0x55, bytes_of(&out->rect));
    ck_assert_int_eq(pb_focal_run_cuda(s, &d_in, &d_out, w, h, NULL), 0);
    ck_assert_int_eq(
        cudaMemcpy(out->data, d_out.data, bytes_of(&out->rect), cudaMemcpyDeviceToHost),
        cudaSuccess);
    cudaFree(d_in.data);
    cudaFree(d_out.data);
}

static struct pb_rect grown(struct pb_rect r, int32_t by, int32_t w, int32_t h)
{
    int32_t x0 = r.x - by > 0 ? r.x - by : 0, y0 = r.y - by > 0 ? r.y - by : 0;
    int32_t x1 = r.x + r.w + by < w ? r.x + r.w + by : w;
    int32_t y1 = r.y + r.h + by < h ? r.y + r.h + by : h;
    return (struct pb_rect){x0, y0, x1 - x0, y1 - y0};
}

static void compare(const struct pb_focal *s, int32_t w, int32_t h, struct pb_rect core)
{
    struct pb_plane in = {.rect = grown(core, s->radius, w, h)};
    struct pb_plane cpu = {.rect = core}, gpu = {.rect = core};
    in.data = malloc(bytes_of(&in.rect));
    cpu.data = malloc(bytes_of(&core));
    gpu.data = malloc(bytes_of(&core));
    for (size_t i = 0; i < bytes_of(&in.rect) / sizeof(float); i++) {
        in.data[i] = between(0, 999) == 0 ? NAN : any_float();
    }
    float *temp = malloc((pb_focal_temp_px(s, &core) + 1) * sizeof *temp);
    pb_focal_run_cpu(s, &in, &cpu, w, h, temp);
    run_on_device(s, &in, &gpu, w, h);
    ck_assert_msg(memcmp(cpu.data, gpu.data, bytes_of(&core)) == 0,
                  "kind %d edge %d radius %d image %dx%d core %d,%d %dx%d", s->kind, s->edge,
                  s->radius, w, h, core.x, core.y, core.w, core.h);
    free(temp);
    free(in.data);
    free(cpu.data);
    free(gpu.data);
}

START_TEST(gives_the_bits_of_the_cpu)
{
    for (int n = 0; n < PB_FOCAL_COUNT * PB_EDGE_COUNT * (PB_FOCAL_SIDE_MAX / 2); n++) {
        int32_t radius = 1 + n / (PB_EDGE_COUNT * PB_FOCAL_COUNT);
        int edge = n / PB_FOCAL_COUNT % PB_EDGE_COUNT;
        struct pb_focal s = any_focal(n % PB_FOCAL_COUNT, edge, radius);
        if (2 * radius + 1 > pb_focal_side_max(s.kind) ||
            (edge == PB_EDGE_EXTRAPOLATE && s.kind <= PB_FOCAL_MAGNITUDE)) { /* sums do not */
            continue;
        }
        for (int round = 0; round < 8; round++) {
            int32_t most = round < 2 ? 8 : round < 6 ? 100 : 700;
            int32_t w = between(1, most), h = between(1, most);
            compare(&s, w, h, (struct pb_rect){0, 0, w, h});
            int32_t x = between(0, w - 1), y = between(0, h - 1);
            compare(&s, w, h, (struct pb_rect){x, y, between(1, w - x), between(1, h - y)});
        }
    }
}
END_TEST

START_TEST(refuses_a_radius_out_of_range)
{
    struct pb_focal s = any_focal(PB_FOCAL_FULL, PB_EDGE_CLAMP, 15);
    struct pb_plane none = {0};
    s.radius = 16;
    ck_assert_int_lt(pb_focal_run_cuda(&s, &none, &none, 1, 1, NULL), 0);
    s = any_focal(PB_FOCAL_RANK, PB_EDGE_CLAMP, 8);
    ck_assert_int_lt(pb_focal_run_cuda(&s, &none, &none, 1, 1, NULL), 0);
}
END_TEST

int main(void)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device\n");
        return 77;
    }
    Suite *suite = suite_create("focal_cuda");
    TCase *tcase = tcase_create("focal_cuda");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, gives_the_bits_of_the_cpu);
    tcase_add_test(tcase, refuses_a_radius_out_of_range);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    /* A CUDA context does not survive fork. */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
#endif
