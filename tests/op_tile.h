/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_TILE_H
#define PB_OP_TILE_H
/* One tile of a chain over UInt16 bands of one scene (tests/op_cases.h), in host memory with random
 * pixels, and its time on a core: for benchmarks. */
#include "kernels/chain/chain.h"

#include <stdlib.h>
#include <time.h>

struct op_tile {
    struct pb_tile_in in;
    struct pb_tile_out out;
    void *scratch;
    size_t made_px;
};

static inline double op_clock_s(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double op_now_s(void)
{
    return op_clock_s(CLOCK_MONOTONIC);
}

/* Time of this thread: other work on its core counts for less. */
static inline double op_cpu_s(void)
{
    return op_clock_s(CLOCK_THREAD_CPUTIME_ID);
}

/* n samples of 14 bits. */
static inline void op_tile_fill(uint16_t *px, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        px[i] = (uint16_t)(seed >> 18);
    }
}

/* The tile in the middle of the outputs' grid, of at most most x most pixels. side: of the scene.
 */
static inline struct pb_rect op_tile_core(const struct pb_chain *chain, int32_t side, int32_t most)
{
    const struct pb_geometry grid = pb_chain_geometry(chain);
    const int32_t grid_w = pb_chain_keeps_grid(chain) ? side : grid.w;
    const int32_t grid_h = pb_chain_keeps_grid(chain) ? side : grid.h;
    const int32_t w = grid_w < most ? grid_w : most, h = grid_h < most ? grid_h : most;

    return (struct pb_rect){(grid_w - w) / 2, (grid_h - h) / 2, w, h};
}

/* The same as a packed tile, without its memory. */
static inline struct pb_tile_in op_tile_in(const struct pb_chain *chain, int32_t side,
                                           struct pb_rect core)
{
    const struct pb_geometry grid = pb_chain_geometry(chain);
    const bool keeps = pb_chain_keeps_grid(chain);
    const struct pb_rect need = pb_chain_need(chain, 0, &core);
    const size_t row_bytes = (size_t)need.w * sizeof(uint16_t);
    const struct pb_chain_image *images;
    const size_t n_images = pb_chain_images(chain, &images);
    struct pb_tile_in in = {.window[0].row_bytes = row_bytes,
                            .window[0].plane_bytes = (size_t)need.h * row_bytes,
                            .window[0].rect = need,
                            .core = core,
                            .image_w = keeps ? side : grid.w,
                            .image_h = keeps ? side : grid.h};

    for (size_t i = 0; i < n_images; i++) {
        struct pb_window *const to = &in.window[images[i].source];

        to->rect = pb_chain_need(chain, images[i].source, &core);
        to->row_bytes = (size_t)to->rect.w * sizeof(float);
        to->plane_bytes = (size_t)to->rect.h * to->row_bytes;
    }
    return in;
}

/* The same with memory for the bands; whole images are the floats in it. */
static inline void op_tile_set_data(const struct pb_chain *chain, void *data, struct pb_tile_in *in)
{
    const struct pb_chain_image *images;
    const size_t n_images = pb_chain_images(chain, &images);

    in->window[0].data = data;
    for (size_t i = 0; i < n_images; i++)
        in->window[images[i].source].data = data;
}

static inline void op_tile_free(struct op_tile *tile)
{
    free(tile->in.window[0].data);
    free(tile->out.data);
    free(tile->scratch);
    *tile = (struct op_tile){0};
}

/* Returns false if memory is missing. op_tile_free frees the made parts also then. */
static inline bool op_tile_make(const struct pb_chain *chain, int32_t side, int32_t most,
                                struct op_tile *out_tile)
{
    const struct pb_rect core = op_tile_core(chain, side, most);
    const size_t scratch_bytes = pb_chain_scratch_bytes(chain, core.w, core.h);
    const uint32_t *used;
    const size_t n_planes = pb_chain_used(chain, &used);

    *out_tile = (struct op_tile){.in = op_tile_in(chain, side, core),
                                 .made_px = (size_t)core.w * (size_t)core.h};
    size_t bytes = n_planes * out_tile->in.window[0].plane_bytes;
    for (size_t i = 1; i < PB_SOURCES_MAX; i++)
        if (out_tile->in.window[i].plane_bytes > bytes)
            bytes = out_tile->in.window[i].plane_bytes;
    op_tile_set_data(chain, malloc(bytes + 1), &out_tile->in);
    out_tile->out = (struct pb_tile_out){
        malloc(pb_chain_output_count(chain) * out_tile->made_px * sizeof(float)),
        out_tile->made_px};
    out_tile->scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64 + 64);
    if (out_tile->in.window[0].data == NULL || out_tile->out.data == NULL ||
        out_tile->scratch == NULL)
        return false;
    op_tile_fill(out_tile->in.window[0].data, bytes / sizeof(uint16_t), 1);
    return true;
}

static inline int op_tile_run(const struct pb_chain *chain, const struct op_tile *tile)
{
    return pb_chain_run_cpu(chain, &tile->in, &tile->out, tile->scratch);
}
#endif
