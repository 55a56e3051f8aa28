/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Other kernels start while the kernel that jobs share is resident with the blocks of the built-in
 * transfer plan. For comparison the same with a block on every multiprocessor, where they wait
 * (H100, H200); next to jobs by launches the shared kernel therefore gets a share of the
 * multiprocessors.
 *
 *   check_beside     0 they start; 1 they do not; 77 no GPU or built without CUDA */
#ifndef PB_HAVE_CUDA
#include <stdio.h>

int main(void)
{
    (void)fprintf(stderr, "skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/chain/chain_lanes.h"
#include "kernels/reduce/statistics_device.h"
#include "tests/gpu/check_device.h"
#include "wic/device/launch.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { KIB = 1024, STAGE = 16 * KIB, DEPTH = 2, SLOT = 1 << 20, SIDE = 4096, TIMES = 21 };
#define LIMIT_MS 20.0 /* and some times the time that the kernels take alone */

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct beside {
    struct wic_gpu gpu;
    struct wic_launch *launch;
    struct wic_link *link;
    struct pb_statistics_plane *plane;
    struct pb_statistics_part *part;
    cudaStream_t stream;
    uint32_t most;   /* shared memory for the work, at most */
    double limit_ms; /* kernels that take longer wait */
};

static void check(int rc, const char *what)
{
    if (rc >= 0)
        return;
    (void)fprintf(stderr, "%s: %s %s\n", what, strerror(-rc), wic_link_why());
    exit(1);
}

static void make_launch(struct beside *b)
{
    const struct pb_lane_kernel *kernel = pb_chain_lanes_kernel(PB_CHAIN_LANE_LINES);
    const uint32_t taken = WIC_STAGES_OFFSET + WIC_LANES_BYTES + DEPTH * STAGE;
    b->most = (b->gpu.shared_block_bytes - taken) / 128 * 128;
    const struct wic_launch_options options = {
        .kernel = kernel->kernel,
        .argument_bytes = (uint32_t)(pb_chain_resident_argument_bytes() + 127) / 128 * 128,
        .warps = kernel->warps,
        .depth = DEPTH,
        .stage_bytes = STAGE,
        .work_bytes = b->most,
        .blocks = b->gpu.multiprocessors,
    };
    check(wic_launch_create(&options, &b->launch), "making the launch");
}

/* A lane of it, to which no tile is ever posted. */
static void make_link(struct beside *b)
{
    static unsigned char argument[8192];
    void *slots = NULL;
    MUST(cudaHostAlloc(&slots, 2 * SLOT, cudaHostAllocMapped));
    const struct wic_link_options options = {
        .in = slots,
        .out = (unsigned char *)slots + SLOT,
        .in_stride = SLOT,
        .out_stride = SLOT,
        .in_slots = 1,
        .out_slots = 1,
        .plan = {.transport = WIC_PULL_BULK,
                 .results = WIC_PUSH_STORES,
                 .in_unit = STAGE,
                 .piece_units = 1,
                 .in_piece = STAGE,
                 .pieces = SLOT / STAGE,
                 .depth = DEPTH,
                 .blocks = b->gpu.multiprocessors,
                 .pulls = 16,
                 .warps = pb_chain_lanes_kernel(PB_CHAIN_LANE_LINES)->warps},
        .argument = argument,
        .launch = b->launch,
        .argument_bytes = pb_chain_resident_argument_bytes(),
    };
    check(wic_link_create(&options, &b->link), "making the link");
}

static void make_plane(struct beside *b)
{
    const struct pb_statistics_plane plane = {on_device(NULL, SIDE * SIDE * sizeof(float)), SIDE,
                                              SIDE, SIDE};
    MUST(cudaMemset((void *)(uintptr_t)plane.data, 0, SIDE * SIDE * sizeof(float)));
    b->plane = on_device(&plane, sizeof plane);
    b->part = on_device(NULL, sizeof *b->part);
    MUST(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
}

/* Time of kernels over a plane; limit_ms: they were not done by then. */
static double time_kernels(struct beside *b)
{
    const double start = now_ms();
    double ms = 0;
    check(pb_statistics_cuda(b->plane, 1, SIDE * SIDE, b->part, b->stream), "starting kernels");
    while (cudaStreamQuery(b->stream) == cudaErrorNotReady && ms < b->limit_ms) {
        (void)cudaGetLastError();
        wic_link_beat(b->link);
        ms = now_ms() - start;
    }
    return cudaStreamQuery(b->stream) == cudaSuccess ? ms : b->limit_ms;
}

/* The longest of several times next to the resident kernel. */
static double beside(struct beside *b, uint32_t blocks, uint32_t work_bytes)
{
    double most = 0;
    wic_launch_limit(b->launch, blocks, work_bytes);
    check(wic_link_start(b->link, 0, 0), "starting the kernel");
    for (int i = 0; i < TIMES && most < b->limit_ms; i++) {
        const double ms = time_kernels(b);
        most = ms > most ? ms : most;
    }
    check(wic_link_running(b->link) == 1 ? 0 : -EIO, "the kernel is resident");
    wic_link_abort(b->link);
    check(wic_link_join(b->link, INT64_C(10000000000)), "ending the kernel");
    MUST(cudaStreamSynchronize(b->stream));
    (void)printf("%u blocks, %u KiB for the work: other kernels take %.2f ms at most%s\n", blocks,
                 work_bytes / KIB, most, most < b->limit_ms ? "" : ": they wait");
    return most;
}

int main(void)
{
    struct beside b = {.launch = NULL};
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0)
        return 77;
    MUST(cudaSetDevice(0));
    check(wic_gpu_read(0, &b.gpu), "reading the GPU");
    make_launch(&b);
    make_link(&b);
    make_plane(&b);
    check(wic_link_start(b.link, 0, 0), "starting the kernel"); /* loads code */
    wic_link_abort(b.link);
    check(wic_link_join(b.link, INT64_C(10000000000)), "ending the kernel");
    check(pb_statistics_cuda(b.plane, 1, SIDE * SIDE, b.part, b.stream), "starting kernels");
    MUST(cudaStreamSynchronize(b.stream));
    const double alone = now_ms();
    check(pb_statistics_cuda(b.plane, 1, SIDE * SIDE, b.part, b.stream), "starting kernels");
    MUST(cudaStreamSynchronize(b.stream));
    const double alone_ms = now_ms() - alone;
    b.limit_ms = LIMIT_MS + 4 * alone_ms;
    (void)printf("%s: alone they take %.2f ms\n", b.gpu.name, alone_ms);
    struct wic_transfer_row row;
    check(wic_transfer_row_find(&b.gpu, SLOT, &row), "finding the plan");
    const uint32_t all = b.gpu.multiprocessors, usual = all * row.blocks / 100;
    const bool starts = beside(&b, usual, 32 * KIB) < b.limit_ms;
    (void)beside(&b, all, 32 * KIB);
    (void)beside(&b, all, b.most);
    check(wic_link_destroy(b.link), "ending the link");
    check(wic_launch_destroy(b.launch), "ending the launch");
    return starts ? 0 : 1;
}
#endif
