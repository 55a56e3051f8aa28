/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* What an executor can do when nobody keeps it waiting: a producer that touches each page of a
 * slot, a consumer that gives them back at once. bench_exec [TILES [CHAIN [PULLS]]]: every
 * executor of this machine, with every kind of buffer, on chains without and with a halo. GB/s of
 * input and megapixels; the median of three rounds in turn. */
#include "pipeline/device/device.h"
#include "pipeline/product/product_kinds.h"
#include "config/base/clock.h"
#include "pipeline/device/mem.h"
#include "pipeline/run/stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 10980, ROUNDS = 3 };

struct way {
    const char *name, *compute;
};

struct chain {
    const char *name, *steps;
};

struct bench {
    struct pb_config *config;
    struct pb_plan *plan;
    struct pb_stream stream;
    const struct pb_exec_type *type;
    void *exec, *slots[2], *channel[2];
    uint64_t tiles;
};

static const struct chain chains[] = {
    {"NDVI", "    - math: {bands: {OUT: \"(N - R) / (N + R)\"}}\n"},
    {"13 ops",
     "    - math: {bands: {OUT: \"sqrt(N * R) + log(G + 1) - where(B > 0.2, B ** 2, R / 3)\"}}\n"},
    {"Gauss 7", "    - convolve: {kernel: gaussian, size: 7, bands: {OUT: N}}\n"},
    {"Sobel of Gauss 15", "    - convolve: {kernel: gaussian, size: 15, bands: {SOFT: N}}\n"
                          "    - convolve: {kernel: sobel, size: 3, bands: {OUT: SOFT}}\n"},
};

static void must(int rc, const struct pb_err *err, const char *what)
{
    if (rc < 0) {
        (void)fprintf(stderr, "bench_exec: %s: %s\n", what, err->msg);
        exit(1);
    }
}

static uint32_t pulls; /* pieces that cross the link at a time, instead of the plan's */

static void make_plan(struct bench *b, const struct way *way, const struct chain *chain)
{
    char text[1000];
    struct pb_err_list errors;
    struct pb_err err = {0};
    int32_t device = -1;
    char why[200];
    struct pb_device_traits traits;
    const struct pb_raster_info info = {.width = SIDE,
                                        .height = SIDE,
                                        .n_bands = 4,
                                        .type = PB_U16,
                                        .block_w = 512,
                                        .block_h = 512,
                                        .stored_block_bytes = 512 * 512 * 8};
    (void)snprintf(text, sizeof text,
                   "compute: {memory: 1GiB, %s}\npipelines:\n p:\n"
                   "  input: {match: [\"*\"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}\n"
                   "  steps:\n%s  products:\n    - cog: {bands: [OUT]}\n",
                   way->compute, chain->steps);
    if (pb_config_parse(text, strlen(text), "bench", &pb_products, &errors, &b->config) < 0)
        must(-1, &errors.err[0], "config");
    must(pb_device_choose(&b->config->compute, &device, why, &err), &err, "device");
    struct pb_plan_request request = {.config = b->config,
                                      .pipeline = &b->config->pipelines[0],
                                      .info = &info,
                                      .cuda = device >= 0,
                                      .device_index = device};
    if (device >= 0 && pb_device_traits(device, &traits) == 0)
        request.traits = &traits;
    must(pb_plan_create(&request, &err, &b->plan), &err, "plan");
    if (pulls > 0)
        b->plan->resident.chunks.pulls = pulls;
}

static struct wic_channel *make_channel(struct bench *b, int side, uint32_t slots, size_t bytes)
{
    struct pb_err err = {0};
    struct wic_channel *channel = NULL;
    must(pb_mem_alloc(b->plan->mem, slots * wic_slot_stride(bytes), &err, &b->slots[side]), &err,
         "slots");
    struct wic_options options = {.slots = slots, .slot_bytes = bytes, .payload = b->slots[side]};
    b->channel[side] = aligned_alloc(64, (wic_channel_bytes(&options) + 63) / 64 * 64);
    if (b->channel[side] == NULL || wic_channel_init(b->channel[side], &options, &channel) < 0)
        must(-1, &(struct pb_err){.msg = "out of memory"}, "channel");
    return channel;
}

/* As a reader's writing would: managed pages that are not at home come back one by one. */
static void touch_pages(const struct wic_slot *slot, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        ((volatile char *)slot->data)[at] = 1;
}

static void *produce(void *arg)
{
    struct bench *b = arg;
    uint32_t count = pb_grid_count(&b->plan->grid);
    struct wic_slot slot;
    for (uint64_t i = 0; i < b->tiles && wic_acquire(b->stream.in, WIC_FOREVER, &slot) == 0; i++) {
        struct pb_tile *tile = slot.user;
        *tile = pb_plan_tile(b->plan, (uint32_t)(i % count), 0);
        size_t bytes = pb_slot_tile_bytes(&b->plan->format, tile);
        touch_pages(&slot, bytes);
        (void)wic_publish(b->stream.in, &slot, bytes);
    }
    wic_close(b->stream.in);
    return NULL;
}

static void *compute(void *arg)
{
    struct bench *b = ((void **)arg)[0];
    b->type->run(b->exec, (uint32_t)(uintptr_t)((void **)arg)[1]);
    return NULL;
}

/* Seconds from the first tile to the last result. */
static double stream_tiles(struct bench *b)
{
    enum { THREADS_MAX = 256 };
    static pthread_t thread[THREADS_MAX], producer;
    static void *args[THREADS_MAX][2];
    struct wic_slot slot;
    uint32_t n = b->type->threads(b->exec);
    uint64_t start = pb_clock_mono_ns(), seen = 0;
    (void)pthread_create(&producer, NULL, produce, b);
    for (uint32_t i = 0; i < n; i++) {
        args[i][0] = b;
        args[i][1] = (void *)(uintptr_t)i;
        (void)pthread_create(&thread[i], NULL, compute, args[i]);
    }
    for (; seen < b->tiles && wic_wait(b->stream.out, WIC_FOREVER, &slot) == 0; seen++)
        (void)wic_release(b->stream.out, &slot);
    double seconds = (double)(pb_clock_mono_ns() - start) * 1e-9;
    (void)pthread_join(producer, NULL);
    for (uint32_t i = 0; i < n; i++)
        (void)pthread_join(thread[i], NULL);
    must(seen == b->tiles ? 0 : -1, &b->stream.failure, "the stream");
    return seconds;
}

/* Megapixels a second. */
static double measure(const struct way *way, const struct chain *chain, uint64_t tiles,
                      double *out_gbs)
{
    struct bench b = {.tiles = tiles};
    struct pb_err err = {0};
    make_plan(&b, way, chain);
    const struct pb_plan *plan = b.plan;
    pthread_mutex_init(&b.stream.lock, NULL);
    b.stream.plan = plan;
    b.stream.in = make_channel(&b, 0, plan->in_slots, plan->in_slot_bytes);
    b.stream.out = make_channel(&b, 1, plan->out_slots, plan->out_slot_bytes);
    b.type = pb_exec_of(plan);
    must(b.type->create(&b.stream, &err, &b.exec), &err, "executor");
    double seconds = stream_tiles(&b), bytes = 0, px = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        struct pb_rect core = pb_grid_core(&plan->grid, (uint32_t)(i % pb_grid_count(&plan->grid)));
        px += (double)core.w * core.h;
        bytes += (double)core.w * core.h * (double)pb_type_bytes(plan->source[0].type) *
                 (double)plan->source[0].n_bands;
    }
    b.type->destroy(b.exec);
    for (int i = 0; i < 2; i++) {
        uint32_t slots = i == 0 ? plan->in_slots : plan->out_slots;
        size_t slot = i == 0 ? plan->in_slot_bytes : plan->out_slot_bytes;
        pb_mem_free(plan->mem, b.slots[i], slots * wic_slot_stride(slot));
        free(b.channel[i]);
    }
    pb_plan_destroy(b.plan);
    pb_config_destroy(b.config);
    *out_gbs = bytes / seconds * 1e-9;
    return px / seconds * 1e-6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {
        {"cpu", "device: cpu"},
        {"cuda pinned wic", "device: cuda, buffers: pinned, sync: wic"},
        {"cuda pinned stream", "device: cuda, buffers: pinned, sync: stream"},
        {"cuda managed wic", "device: cuda, buffers: managed, sync: wic"},
        {"cuda managed stream", "device: cuda, buffers: managed, sync: stream"},
    };
    char why[200];
    size_t n_ways = pb_device_count(why) > 0 ? sizeof ways / sizeof ways[0] : 1;
    uint64_t tiles = argc > 1 ? strtoull(argv[1], NULL, 10) : 1210;
    pulls = argc > 3 ? (uint32_t)atoi(argv[3]) : 0;
    (void)printf("%-18s %-20s %9s %10s\n", "chain", "executor", "GB/s in", "Mpx/s");
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++) {
        double gbs[8][ROUNDS], mpx[8][ROUNDS];
        if (argc > 2 && strcmp(argv[2], chains[c].name) != 0)
            continue;
        for (int r = 0; r < ROUNDS; r++)
            for (size_t w = 0; w < n_ways; w++)
                mpx[w][r] = measure(&ways[w], &chains[c], tiles, &gbs[w][r]);
        for (size_t w = 0; w < n_ways; w++) {
            qsort(gbs[w], ROUNDS, sizeof gbs[w][0], by_size);
            qsort(mpx[w], ROUNDS, sizeof mpx[w][0], by_size);
            (void)printf("%-18s %-20s %9.2f %10.0f\n", chains[c].name, ways[w].name,
                         gbs[w][ROUNDS / 2], mpx[w][ROUNDS / 2]);
        }
    }
    return 0;
}
