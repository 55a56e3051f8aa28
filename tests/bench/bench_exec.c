/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Speed of an executor that never waits: a producer that touches each page of a slot, a consumer
 * that gives them back at once; compared with streams that batch, and with the speed of copy
 * engines alone with the same slots. bench_exec [--tile PX,..] [--bytes MB] [--chain NAME]
 * [--rounds N] [--pulls N] [--backlog KIB]: every executor of this machine, on chains without and
 * with a halo. GB/s of input; medians of rounds in turn. */
#include "config/config.h"
#include "pipeline/plan/engine.h"
#include "pipeline/plan/choose.h"
#include "config/pipeline_config.h"
#include "config/yaml/report.h"
#include "pipeline/device/device.h"
#include "pipeline/product/product_kinds.h"
#include "config/base/clock.h"
#include "pipeline/device/copies.h"
#include "pipeline/device/mem.h"
#include "pipeline/run/stream/stream.h"
#include "tests/bench/batch_stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((size_t)128 << 20)
#define STREAM       "device: cuda, buffers: pinned, sync: stream"

enum { SIDE = 10980, ROUNDS_MAX = 9, SIZES_MAX = 8 };

struct way {
    const char *name, *compute;
    uint32_t lanes;                  /* number of streams; 0 = the plan's */
    bool rival;                      /* compared with the first way: pinned streams */
    bool shared;                     /* the only lane of a kernel that several jobs may share */
    const struct pb_exec_type *type; /* NULL = the plan's */
};

static struct {
    int tile[SIZES_MAX];
    size_t sizes;
    double bytes; /* bytes of input, a measurement */
    const char *chain;
    int rounds;
    uint32_t blocks; /* blocks of a kernel that pulls, instead of the plan's */
    uint32_t pulls;  /* pieces that cross the link at a time, instead of the plan's */
    int64_t backlog; /* bytes, instead of the plan's; < 0: the plan's */
} opt = {.tile = {256, 512, 1024, 2048}, .sizes = 4, .bytes = 8e9, .rounds = 3, .backlog = -1};

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

static uint32_t more(uint32_t slots, uint64_t least)
{
    return slots > least ? slots
                         : (uint32_t)(least < WIC_SLOTS_MAX / 4 ? least : WIC_SLOTS_MAX / 4);
}

/* Applies the differences of a measured way from the plan. All ways get the same slots:
 * WINDOW_BYTES of input at least, and as many of results. */
static void change_plan(struct pb_plan *plan, const struct way *way)
{
    if (!plan->engine.cuda)
        return;
    plan->layout.in_slots = more(plan->layout.in_slots, WINDOW_BYTES / plan->layout.in_slot_bytes);
    plan->layout.out_slots = more(plan->layout.out_slots, plan->layout.in_slots);
    if (opt.blocks > 0 && plan->engine.resident.chunks.in_piece > 0)
        plan->engine.resident.chunks.blocks = opt.blocks;
    if (way->lanes > 0)
        plan->layout.workers = way->lanes;
    plan->engine.resident.shared = plan->engine.resident.used && way->shared;
    if (opt.pulls > 0)
        plan->engine.resident.chunks.pulls = opt.pulls;
    if (opt.backlog >= 0)
        plan->engine.resident.chunks.engine_backlog = (size_t)opt.backlog;
}

static void make_plan(struct bench *b, const struct way *way, const struct chain *chain, int tile)
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
                   "compute: {memory: 1GiB, tile: %d, %s}\npipelines:\n p:\n"
                   "  input: {match: [\"*\"], bands: {B: 1, G: 2, R: 3, N: 4}, scale: 0.0001}\n"
                   "  steps:\n%s  products:\n    - cog: {bands: [OUT], blocksize: 256}\n",
                   tile, way->compute, chain->steps);
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
    change_plan(b->plan, way);
}

static struct wic_channel *make_channel(struct bench *b, int side, uint32_t slots, size_t bytes)
{
    struct pb_err err = {0};
    struct wic_channel *channel = NULL;
    must(pb_mem_alloc(b->plan->engine.mem, slots * wic_slot_stride(bytes), &err, &b->slots[side]),
         &err, "slots");
    struct wic_options options = {.slots = slots, .slot_bytes = bytes, .payload = b->slots[side]};
    b->channel[side] = aligned_alloc(64, (wic_channel_bytes(&options) + 63) / 64 * 64);
    if (b->channel[side] == NULL || wic_channel_init(b->channel[side], &options, &channel) < 0)
        must(-1, &(struct pb_err){.msg = "out of memory"}, "channel");
    return channel;
}

/* Touches pages like a reader that writes. */
static void touch_pages(const struct wic_slot *slot, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        ((volatile char *)slot->data)[at] = 1;
}

static void *produce(void *arg)
{
    struct bench *b = arg;
    uint32_t count = pb_grid_count(&b->plan->layout.grid);
    struct wic_slot slot;
    for (uint64_t i = 0; i < b->tiles && wic_acquire(b->stream.in, WIC_FOREVER, &slot) == 0; i++) {
        struct pb_tile *tile = slot.user;
        *tile = pb_plan_tile(b->plan, (uint32_t)(i % count), 0);
        size_t bytes = pb_slot_tile_bytes(&b->plan->layout.format, tile);
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

static double in_bytes(const struct bench *b)
{
    const struct pb_plan *plan = b->plan;
    uint32_t count = pb_grid_count(&plan->layout.grid);
    double px = 0;
    for (uint64_t i = 0; i < b->tiles; i++) {
        struct pb_rect core = pb_grid_core(&plan->layout.grid, (uint32_t)(i % count));
        px += (double)core.w * core.h;
    }
    return px * (double)pb_type_bytes(plan->work.source[0].type) *
           (double)plan->work.source[0].n_bands;
}

static void open_bench(struct bench *b, const struct way *way, const struct chain *chain, int tile)
{
    make_plan(b, way, chain, tile);
    const struct pb_plan *plan = b->plan;
    pthread_mutex_init(&b->stream.lock, NULL);
    b->stream.plan = plan;
    b->stream.in = make_channel(b, 0, plan->layout.in_slots, plan->layout.in_slot_bytes);
    b->stream.out = make_channel(b, 1, plan->layout.out_slots, plan->layout.out_slot_bytes);
    b->tiles = (uint64_t)(opt.bytes / (double)plan->layout.in_slot_bytes) + 1;
}

static void close_bench(struct bench *b)
{
    const struct pb_plan *plan = b->plan;
    for (int i = 0; i < 2; i++) {
        uint32_t slots = i == 0 ? plan->layout.in_slots : plan->layout.out_slots;
        size_t slot = i == 0 ? plan->layout.in_slot_bytes : plan->layout.out_slot_bytes;
        pb_mem_free(plan->engine.mem, b->slots[i], slots * wic_slot_stride(slot));
        free(b->channel[i]);
    }
    pb_plan_destroy(b->plan);
    pb_config_destroy(b->config);
}

/* GB/s of input. */
static double measure(const struct way *way, const struct chain *chain, int tile)
{
    struct bench b = {0};
    struct pb_err err = {0};
    open_bench(&b, way, chain, tile);
    b.type = way->type != NULL ? way->type : pb_exec_of(b.plan);
    must(b.type->create(&b.stream, &err, &b.exec), &err, "executor");
    double seconds = stream_tiles(&b), bytes = in_bytes(&b);
    b.type->destroy(b.exec);
    close_bench(&b);
    return bytes / seconds * 1e-9;
}

#ifdef PB_HAVE_CUDA
/* The same for the copies of full tiles with nothing in between. */
static double measure_copies(const struct way *way, const struct chain *chain, int tile)
{
    struct bench b = {0};
    open_bench(&b, way, chain, tile);
    const struct pb_plan *plan = b.plan;
    struct pb_tile first = pb_plan_tile(plan, 0, 0);
    struct pb_copies_side in = {b.slots[0], wic_slot_stride(plan->layout.in_slot_bytes),
                                pb_slot_tile_bytes(&plan->layout.format, &first),
                                plan->layout.in_slots};
    struct pb_copies_side out = {b.slots[1], wic_slot_stride(plan->layout.out_slot_bytes),
                                 pb_plan_out_bytes(plan, &first), plan->layout.out_slots};
    struct pb_err err = {0};
    double seconds = 0;
    must(pb_copies_measure(&in, &out, b.tiles, &err, &seconds), &err, "copies alone");
    double bytes = (double)first.core.w * first.core.h * (double)b.tiles *
                   (double)pb_type_bytes(plan->work.source[0].type) *
                   (double)plan->work.source[0].n_bands;
    close_bench(&b);
    return bytes / seconds * 1e-9;
}
#else
static double measure_copies(const struct way *way, const struct chain *chain, int tile)
{
    (void)way;
    (void)chain;
    (void)tile;
    return 0;
}
#endif

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const struct way ways[] = {
    {.name = "wic", .compute = "device: cuda, buffers: pinned, sync: wic"},
    {.name = "one lane", .compute = "device: cuda, buffers: pinned, sync: wic", .shared = true},
    {.name = "stream", .compute = STREAM, .rival = true},
    {.name = "stream x8", .compute = STREAM, .rival = true, .lanes = 8},
#ifdef PB_HAVE_CUDA
    {.name = "batch x4", .compute = STREAM, .rival = true, .lanes = 4, .type = &batch_stream},
    {.name = "batch x8", .compute = STREAM, .rival = true, .lanes = 8, .type = &batch_stream},
#endif
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* One line of the table: ceiling, ways, and what the first of them reaches of the ceiling and of
 * the best pinned stream. */
static void print_row(const struct chain *chain, int tile)
{
    double gbs[WAYS + 1][ROUNDS_MAX];
    for (int r = 0; r < opt.rounds; r++) {
        gbs[WAYS][r] = measure_copies(&ways[0], chain, tile);
        for (size_t w = 0; w < WAYS; w++)
            gbs[w][r] = measure(&ways[w], chain, tile);
    }
    for (size_t w = 0; w <= WAYS; w++)
        qsort(gbs[w], (size_t)opt.rounds, sizeof gbs[w][0], by_size);
    const int middle = opt.rounds / 2;
    (void)printf("%-18s %5d %9.2f", chain->name, tile, gbs[WAYS][middle]);
    for (size_t w = 0; w < WAYS; w++)
        (void)printf(" %11.2f", gbs[w][middle]);
    double stream = 0;
    for (size_t w = 0; w < WAYS; w++)
        if (ways[w].rival && gbs[w][middle] > stream)
            stream = gbs[w][middle];
    (void)printf("  %6.3f %6.3f\n", gbs[0][middle] / gbs[WAYS][middle], gbs[0][middle] / stream);
    (void)fflush(stdout);
}

static void read_sizes(char *list)
{
    opt.sizes = 0;
    for (char *at = strtok(list, ","); at != NULL && opt.sizes < SIZES_MAX; at = strtok(NULL, ","))
        opt.tile[opt.sizes++] = atoi(at);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--tile") == 0)
            read_sizes(argv[i + 1]);
        else if (strcmp(argv[i], "--bytes") == 0)
            opt.bytes = 1e6 * atof(argv[i + 1]);
        else if (strcmp(argv[i], "--chain") == 0)
            opt.chain = argv[i + 1];
        else if (strcmp(argv[i], "--rounds") == 0)
            opt.rounds = atoi(argv[i + 1]) < ROUNDS_MAX ? atoi(argv[i + 1]) : ROUNDS_MAX;
        else if (strcmp(argv[i], "--blocks") == 0)
            opt.blocks = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--pulls") == 0)
            opt.pulls = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--backlog") == 0)
            opt.backlog = 1024 * (int64_t)atoi(argv[i + 1]);
}

/* Without a GPU: the executor of the CPU. */
static void print_cpu(void)
{
    const struct way cpu = {.name = "cpu", .compute = "device: cpu"};
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++)
        (void)printf("%-18s %9.2f GB/s of input on the CPU\n", chains[c].name,
                     measure(&cpu, &chains[c], 1024));
}

int main(int argc, char **argv)
{
    char why[200];
    read_options(argc, argv);
    if (pb_device_count(why) == 0) {
        print_cpu();
        return 0;
    }
    (void)printf("%-18s %5s %9s", "chain", "tile", "copies");
    for (size_t w = 0; w < WAYS; w++)
        (void)printf(" %11s", ways[w].name);
    (void)printf("  %6s %6s\n", "/copies", "/stream");
    for (size_t c = 0; c < sizeof chains / sizeof chains[0]; c++)
        for (size_t s = 0; s < opt.sizes; s++)
            if (opt.chain == NULL || strcmp(opt.chain, chains[c].name) == 0)
                print_row(&chains[c], opt.tile[s]);
    return 0;
}
