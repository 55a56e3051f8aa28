/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_ON_GPU_H
#define PB_WORK_ON_GPU_H
/* A scene of tests/work_scene.h on a GPU, made by resident workers: stored bytes are moved up by
 * spans, a word after each. For check_work.c. */
#include "kernels/work/work.h"
#include "tests/gpu/check_device.h"
#include "tests/work_expect.h"

#include <time.h>

#define WORK_SPAN  ((size_t)3 << 20) /* bytes that one copy moves up */
#define WORK_LIMIT UINT64_C(2000000000)

struct work_gpu {
    struct work_scene scene;
    struct pb_chain_device chain;
    void *memory[512];
    size_t n_memory;
    void *rings;
    uint8_t *kinds; /* pinned: stored bytes of kinds one after the other, twice */
    size_t kind_at[2 * WORK_KINDS + 1];
    uint8_t *out; /* pinned */
    struct pb_work_record *records;
    uint32_t workers;
    int px;
    cudaStream_t up, work;
};

static struct work_gpu *work_of_take; /* owner of the memory that is taken */

static inline double work_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void *work_take(size_t bytes)
{
    void *memory = NULL;
    if (work_of_take->n_memory == sizeof work_of_take->memory / sizeof(void *))
        abort();
    MUST(cudaMalloc(&memory, bytes > 0 ? bytes : 16));
    return work_of_take->memory[work_of_take->n_memory++] = memory;
}

static inline void work_fill(void *to, const void *from, size_t bytes)
{
    MUST(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

static inline void work_pin_kinds(struct work_gpu *g)
{
    size_t at = 0;
    for (uint32_t k = 0; k < 2 * WORK_KINDS; k++) {
        g->kind_at[k] = at;
        at += (g->scene.stored[k % WORK_KINDS].n + 31) / 16 * 16;
    }
    g->kind_at[2 * WORK_KINDS] = at;
    MUST(cudaMallocHost((void **)&g->kinds, at));
    for (uint32_t k = 0; k < 2 * WORK_KINDS; k++)
        memcpy(g->kinds + g->kind_at[k], g->scene.stored[k % WORK_KINDS].bytes,
               g->scene.stored[k % WORK_KINDS].n);
}

/* workers 0: as many as are resident. */
static inline void work_gpu_make(const struct work_case *of, uint32_t workers, struct work_gpu *g)
{
    memset(g, 0, sizeof *g);
    work_of_take = g;
    work_scene_make(of, (struct work_memory){work_take, work_fill}, pb_work_chain_shared(),
                    &g->scene);
    struct work_scene *s = &g->scene;
    g->px = s->chain_needs.px;
    if (pb_work_residents(g->px, &g->workers) < 0) {
        (void)fprintf(stderr, "no worker is resident\n");
        exit(1);
    }
    g->workers = workers > 0 ? workers : g->workers;
    if (pb_chain_device_create(s->chain, &g->chain) < 0)
        exit(1);
    s->view.chain = g->chain;
    s->view.scratch = work_take(s->chain_needs.scratch_bytes * g->workers);
    s->view.spent = work_zeros(s, 1, sizeof *s->view.spent);
    g->rings = work_take(wic_ready_bytes(s->most));
    work_pin_kinds(g);
    MUST(cudaMallocHost((void **)&g->out, s->needs.out_bytes));
    MUST(cudaMallocHost((void **)&g->records, s->view.n_records * sizeof *g->records));
    s->view.out_host = g->out;
    s->view.records = g->records;
    MUST(cudaStreamCreateWithFlags(&g->up, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&g->work, cudaStreamNonBlocking));
}

static inline void work_gpu_free(struct work_gpu *g)
{
    work_scene_free(&g->scene);
    pb_chain_device_destroy(&g->chain);
    while (g->n_memory > 0)
        MUST(cudaFree(g->memory[--g->n_memory]));
    MUST(cudaFreeHost(g->kinds));
    MUST(cudaFreeHost(g->out));
    MUST(cudaFreeHost(g->records));
    MUST(cudaStreamDestroy(g->up));
    MUST(cudaStreamDestroy(g->work));
}

/* Copies pieces from `first` on that are adjacent in both memories, at most a span; returns the
 * piece after them. */
static inline uint32_t work_copy_span(struct work_gpu *g, uint32_t first, uint32_t end,
                                      cudaStream_t stream)
{
    const struct work_scene *s = &g->scene;
    const uint32_t kind = work_kind(s, first);
    uint32_t last = first;
    while (last + 1 < end && work_kind(s, last + 1) == (kind + last + 1 - first) % WORK_KINDS &&
           kind + last + 2 - first < 2 * WORK_KINDS &&
           g->kind_at[kind + last + 2 - first] - g->kind_at[kind] <= WORK_SPAN)
        last++;
    MUST(cudaMemcpyAsync((void *)(uintptr_t)s->piece[first].stream.in, g->kinds + g->kind_at[kind],
                         g->kind_at[kind + last + 1 - first] - g->kind_at[kind],
                         cudaMemcpyHostToDevice, stream));
    return last + 1;
}

static inline void work_begin(struct work_gpu *g)
{
    work_reset(&g->scene, g->rings, WORK_LIMIT);
    memset(g->records, 0, g->scene.view.n_records * sizeof *g->records);
    MUST(cudaDeviceSynchronize());
}

static inline void work_bring(struct work_gpu *g, uint32_t pieces)
{
    for (uint32_t i = 0; i < pieces;) {
        i = work_copy_span(g, i, pieces, g->up);
        if (wic_ready_push_behind(&g->scene.view.ready, PB_WORK_DECODE, i, g->up) < 0) {
            (void)fprintf(stderr, "a word behind a span: failed\n");
            exit(1);
        }
    }
}

static inline void work_start(struct work_gpu *g)
{
    const int rc = pb_work_launch(&g->scene.view, g->px, g->workers, g->work);
    if (rc < 0) {
        (void)fprintf(stderr, "pb_work_launch: %s\n", strerror(-rc));
        exit(1);
    }
}

/* Waits for the event of that kind, at most 5 s. Returns records seen; *at: how many were looked
 * at. */
static inline const struct pb_work_record *work_next(struct work_gpu *g, uint32_t *at)
{
    const double end = work_now_ms() + 5000;
    struct pb_work_record *r = &g->records[*at];
    while (__atomic_load_n(&r->event, __ATOMIC_ACQUIRE) == 0)
        if (work_now_ms() > end || *at >= g->scene.view.n_records)
            return NULL;
    (*at)++;
    return r;
}

static inline uint32_t work_stop_word(const struct work_gpu *g)
{
    uint32_t word = 0;
    MUST(cudaMemcpy(&word, g->scene.view.ready.stop, sizeof word, cudaMemcpyDeviceToHost));
    return word;
}

/* One run; milliseconds from the first copy until all blocks are in the host's memory. */
static inline double work_run(struct work_gpu *g, double *out_first)
{
    const uint32_t n = g->scene.view.encode.batch.n_blocks;
    work_begin(g);
    const double start = work_now_ms();
    work_start(g);
    work_bring(g, g->scene.n_pieces);
    for (uint32_t i = 0, at = 0; i < n; i++) {
        const struct pb_work_record *r = work_next(g, &at);
        if (r == NULL || r->event != PB_WORK_BLOCK) {
            (void)fprintf(stderr, "%u of %u blocks came\n", i, n);
            MUST(cudaStreamSynchronize(g->work));
            (void)fprintf(stderr, "stop word %u\n", work_stop_word(g));
            exit(1);
        }
        if (i == 0 && out_first != NULL)
            *out_first = work_now_ms() - start;
    }
    const double ms = work_now_ms() - start;
    MUST(cudaStreamSynchronize(g->work));
    return ms;
}
#endif
