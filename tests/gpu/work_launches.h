/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_LAUNCHES_H
#define PB_WORK_LAUNCHES_H
/* The same scene by streams of launches: slices of it on four streams, each copied, decoded,
 * opened, computed and encoded by kernels of their own, then overviews. The yardstick of
 * check_work.c, and what its bytes are compared with. Blocks of the scene are the product's tiles.
 */
#include "tests/gpu/work_on_gpu.h"

#include "kernels/chain/chain_cuda.h"

enum { LAUNCH_STREAMS = 4, SLICES_MOST = 64 };

struct work_slice {
    struct pb_encode_batch batch;
    struct pb_encoded *encoded; /* pinned */
    uint64_t *used;             /* pinned */
    uint64_t out_at;            /* in the host's memory */
    cudaEvent_t encoded_event;
    uint32_t first, end; /* blocks */
};

struct work_launches {
    struct work_gpu *g;
    cudaStream_t stream[LAUNCH_STREAMS], down;
    cudaEvent_t up[SLICES_MOST], opened[SLICES_MOST], done[LAUNCH_STREAMS], halved;
    struct pb_chain_cuda *chain[LAUNCH_STREAMS];
    struct pb_decode_stream *streams; /* these on the device, in the order of pieces and blocks */
    struct pb_decode_result *results;
    struct pb_unpredict_block *open;
    struct pb_halve_part *halve;
    struct work_slice slice[SLICES_MOST + 1]; /* the last one: all overviews */
    uint32_t n_slices;
    uint8_t *out; /* pinned */
    struct pb_unpredict_form form;
};

static inline void work_slice_make(struct work_launches *l, struct work_slice *slice,
                                   uint32_t first, uint32_t end, uint64_t *out_at)
{
    const struct pb_encode_batch *all = &l->g->scene.view.encode.batch;
    const uint32_t n = end - first;
    struct pb_encode_needs needs;
    if (pb_encode_measure(&all->format, n, &needs) < 0)
        abort();
    *slice = (struct work_slice){.first = first, .end = end, .out_at = *out_at};
    slice->batch = (struct pb_encode_batch){.format = all->format,
                                            .n_blocks = n,
                                            .blocks = all->blocks + first,
                                            .workspace = work_take(needs.bytes),
                                            .out = work_take(needs.out_bytes),
                                            .out_bytes = needs.out_bytes,
                                            .encoded = work_take(n * sizeof(struct pb_encoded)),
                                            .used = work_take(sizeof(uint64_t))};
    MUST(cudaMallocHost((void **)&slice->encoded, n * sizeof *slice->encoded));
    MUST(cudaMallocHost((void **)&slice->used, sizeof *slice->used));
    MUST(cudaEventCreateWithFlags(&slice->encoded_event, cudaEventDisableTiming));
    *out_at += needs.out_bytes;
}

static inline void work_launches_tables(struct work_launches *l)
{
    struct work_scene *s = &l->g->scene;
    struct pb_decode_stream *streams = work_host(s->n_pieces, sizeof *streams);
    struct pb_unpredict_block *open = work_host(s->n_pieces, sizeof *open);
    const uint32_t n_blocks = s->view.encode.batch.n_blocks;
    struct pb_halve_part *halve = work_host(n_blocks, sizeof *halve);
    for (uint32_t i = 0; i < s->n_pieces; i++) {
        streams[i] = s->piece[i].stream;
        open[i] = s->piece[i].block;
    }
    for (uint32_t i = 0; i < n_blocks; i++)
        halve[i] = s->block[i].halve;
    l->streams = work_there(s, streams, s->n_pieces * sizeof *streams);
    l->open = work_there(s, open, s->n_pieces * sizeof *open);
    l->halve = work_there(s, halve, n_blocks * sizeof *halve);
    l->results = work_take(s->n_pieces * sizeof *l->results);
    MUST(cudaMemcpy(&l->form, s->view.forms, sizeof l->form, cudaMemcpyDeviceToHost));
    free(streams);
    free(open);
    free(halve);
}

static inline void work_launches_make(struct work_gpu *g, uint32_t slices, struct work_launches *l)
{
    struct work_scene *s = &g->scene;
    uint64_t out_bytes = 0;
    *l = (struct work_launches){.g = g, .n_slices = slices};
    work_of_take = g;
    work_launches_tables(l);
    for (uint32_t i = 0; i < slices; i++)
        work_slice_make(l, &l->slice[i], s->n_tiles * i / slices, s->n_tiles * (i + 1) / slices,
                        &out_bytes);
    work_slice_make(l, &l->slice[slices], s->n_tiles, s->view.encode.batch.n_blocks, &out_bytes);
    MUST(cudaMallocHost((void **)&l->out, out_bytes));
    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        MUST(cudaStreamCreateWithFlags(&l->stream[i], cudaStreamNonBlocking));
        MUST(cudaEventCreateWithFlags(&l->done[i], cudaEventDisableTiming));
        if (pb_chain_cuda_create(s->chain, s->of->block_px, s->of->block_px, &l->chain[i]) < 0)
            exit(1);
    }
    for (uint32_t i = 0; i < slices; i++)
        MUST(cudaEventCreateWithFlags(&l->up[i], cudaEventDisableTiming));
    for (uint32_t i = 0; i < slices; i++)
        MUST(cudaEventCreateWithFlags(&l->opened[i], cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&l->halved, cudaEventDisableTiming));
    MUST(cudaStreamCreateWithFlags(&l->down, cudaStreamNonBlocking));
}

static inline void work_launches_free(struct work_launches *l)
{
    for (uint32_t i = 0; i <= l->n_slices; i++) {
        MUST(cudaFreeHost(l->slice[i].encoded));
        MUST(cudaFreeHost(l->slice[i].used));
        MUST(cudaEventDestroy(l->slice[i].encoded_event));
    }
    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        MUST(cudaStreamDestroy(l->stream[i]));
        MUST(cudaEventDestroy(l->done[i]));
        pb_chain_cuda_destroy(l->chain[i]);
    }
    for (uint32_t i = 0; i < l->n_slices; i++)
        MUST(cudaEventDestroy(l->up[i]));
    for (uint32_t i = 0; i < l->n_slices; i++)
        MUST(cudaEventDestroy(l->opened[i]));
    MUST(cudaEventDestroy(l->halved));
    MUST(cudaStreamDestroy(l->down));
    MUST(cudaFreeHost(l->out));
}

static inline void must_queue(int rc, const char *what)
{
    if (rc < 0) {
        (void)fprintf(stderr, "%s: %s\n", what, strerror(-rc));
        exit(1);
    }
}

static inline void work_queue_encode(struct work_slice *slice, cudaStream_t stream)
{
    must_queue(pb_encode_cuda(&slice->batch, stream), "encode");
    MUST(cudaMemcpyAsync(slice->encoded, slice->batch.encoded,
                         slice->batch.n_blocks * sizeof *slice->encoded, cudaMemcpyDeviceToHost,
                         stream));
    MUST(cudaMemcpyAsync(slice->used, slice->batch.used, sizeof *slice->used,
                         cudaMemcpyDeviceToHost, stream));
    MUST(cudaEventRecord(slice->encoded_event, stream));
}

static inline void work_queue_decode(struct work_launches *l, uint32_t i)
{
    struct work_scene *s = &l->g->scene;
    struct work_slice *slice = &l->slice[i];
    const uint32_t n = slice->end - slice->first;
    cudaStream_t stream = l->stream[i % LAUNCH_STREAMS];
    for (uint32_t k = slice->first; k < slice->end;)
        k = work_copy_span(l->g, k, slice->end, l->g->up);
    MUST(cudaEventRecord(l->up[i], l->g->up));
    MUST(cudaStreamWaitEvent(stream, l->up[i], 0));
    const struct pb_decode_batch batch = {
        .streams = l->streams + slice->first, .results = l->results + slice->first, .n = n};
    must_queue(pb_decode_back_of(s->of->codec)->launch(&batch, stream), "decode");
    must_queue(
        pb_unpredict_cuda(&l->form, l->open + slice->first, n, (uint32_t)s->of->side, stream),
        "open");
    MUST(cudaEventRecord(l->opened[i], stream));
}

/* Where tiles read their neighbours, after all pieces. */
static inline void work_queue_tiles(struct work_launches *l, uint32_t i)
{
    struct work_scene *s = &l->g->scene;
    struct work_slice *slice = &l->slice[i];
    cudaStream_t stream = l->stream[i % LAUNCH_STREAMS];
    for (uint32_t k = 0; k < l->n_slices && s->of->halo; k++)
        MUST(cudaStreamWaitEvent(stream, l->opened[k], 0));
    for (uint32_t t = slice->first; t < slice->end; t++) {
        const struct pb_tile_out out = {s->view.tile_out + t * s->view.tile_out_px,
                                        s->view.tile_plane_px};
        must_queue(pb_chain_cuda_launch(l->chain[i % LAUNCH_STREAMS], &s->tile_in[t], &out, stream),
                   "chain");
    }
    work_queue_encode(slice, stream);
}

static inline void work_queue_overviews(struct work_launches *l)
{
    struct work_scene *s = &l->g->scene;
    for (int i = 0; i < LAUNCH_STREAMS; i++) {
        MUST(cudaEventRecord(l->done[i], l->stream[i]));
        MUST(cudaStreamWaitEvent(l->stream[0], l->done[i], 0));
    }
    for (uint32_t k = 0; k + 1 < s->n_levels; k++)
        must_queue(pb_halve_cuda(l->halve + s->level[k].first,
                                 s->level[k].across * s->level[k].down, 1, s->of->block_px,
                                 s->of->nearest, l->stream[0]),
                   "halve");
    work_queue_encode(&l->slice[l->n_slices], l->stream[0]);
}

/* Milliseconds from the first copy until all blocks are in the host's memory. */
static inline double work_launches_run(struct work_launches *l)
{
    const struct work_scene *s = &l->g->scene;
    MUST(cudaDeviceSynchronize());
    const double start = work_now_ms();
    for (uint32_t i = 0; i < l->n_slices; i++) {
        work_queue_decode(l, i);
        if (!s->of->halo)
            work_queue_tiles(l, i);
    }
    for (uint32_t i = 0; i < l->n_slices && s->of->halo; i++)
        work_queue_tiles(l, i);
    work_queue_overviews(l);
    for (uint32_t i = 0; i <= l->n_slices; i++) {
        struct work_slice *slice = &l->slice[i];
        MUST(cudaEventSynchronize(slice->encoded_event));
        MUST(cudaMemcpyAsync(l->out + slice->out_at, slice->batch.out, *slice->used,
                             cudaMemcpyDeviceToHost, l->down));
    }
    MUST(cudaStreamSynchronize(l->down));
    return work_now_ms() - start;
}

/* Blocks that differ from those of the workers' last run. */
static inline uint32_t work_launches_compare(const struct work_launches *l)
{
    const struct work_gpu *g = l->g;
    uint32_t wrong = 0;
    for (uint32_t k = 0; k < g->scene.view.encode.batch.n_blocks; k++) {
        const struct pb_work_record *r = &g->records[k];
        uint32_t i = 0;
        while (l->slice[i].end <= r->number)
            i++;
        const struct work_slice *slice = &l->slice[i];
        const struct pb_encoded *e = &slice->encoded[r->number - slice->first];
        wrong += e->state != PB_ENCODED || r->encoded.state != e->state ||
                 r->encoded.bytes != e->bytes ||
                 memcmp(l->out + slice->out_at + e->at, g->out + r->encoded.at, e->bytes) != 0;
    }
    return wrong;
}
#endif
