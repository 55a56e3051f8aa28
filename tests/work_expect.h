/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_EXPECT_H
#define PB_WORK_EXPECT_H
/* The CPU's product of a scene of work_scene.h: the chain tile by tile, levels halved from whole
 * planes, blocks by the CPU's encoder. */
#include "pipeline/cog/halve.h"
#include "tests/work_tables.h"

struct work_expect {
    float *plane[WORK_LEVELS]; /* plane of each level, rows of its width */
};

/* Planes of the chain's inputs, whole. */
static inline uint16_t *work_expect_inputs(const struct work_scene *s)
{
    const struct work_case *of = s->of;
    const uint32_t *used;
    const size_t n = pb_chain_used(s->chain, &used), w = (size_t)of->w, h = (size_t)of->h;
    const size_t side = (size_t)of->side;
    uint16_t *planes = work_host(n * w * h, sizeof *planes);
    for (size_t p = 0; p < n; p++)
        for (size_t y = 0; y < h; y++)
            for (size_t x = 0; x < w; x++) {
                const uint32_t piece = (uint32_t)(y / side * s->across + x / side);
                planes[(p * h + y) * w + x] =
                    s->kind[work_kind(s, piece)][(used[p] * side + y % side) * side + x % side];
            }
    return planes;
}

static inline void work_expect_tile(const struct work_scene *s, uint16_t *inputs, uint32_t t,
                                    float *plane)
{
    const struct pb_rect core = s->tile_in[t].core, read = s->read[t];
    const size_t w = (size_t)s->of->w;
    const size_t scratch = (pb_chain_scratch_bytes(s->chain, core.w, core.h) + 63) / 64 * 64;
    struct pb_tile_in in = s->tile_in[t];
    float *out = work_host((size_t)core.w * (size_t)core.h, sizeof *out);
    void *memory = aligned_alloc(64, scratch + 64);
    in.window[0] = (struct pb_window){.data = inputs + (size_t)read.y * w + (size_t)read.x,
                                      .row_bytes = w * 2,
                                      .plane_bytes = w * 2 * (size_t)s->of->h,
                                      .rect = read};
    const struct pb_tile_out to = {out, (size_t)core.w * (size_t)core.h};
    if (memory == NULL || pb_chain_run_cpu(s->chain, &in, &to, memory) < 0)
        abort();
    for (int32_t y = 0; y < core.h; y++)
        memcpy(plane + (size_t)(core.y + y) * w + (size_t)core.x, out + (size_t)y * (size_t)core.w,
               (size_t)core.w * sizeof *out);
    free(out);
    free(memory);
}

static inline void work_expect_make(const struct work_scene *s, struct work_expect *e)
{
    uint16_t *inputs = work_expect_inputs(s);
    memset(e, 0, sizeof *e);
    for (uint32_t l = 0; l < s->n_levels; l++) {
        const struct work_level *level = &s->level[l];
        e->plane[l] = work_host((size_t)level->w * (size_t)level->h, sizeof(float));
        for (uint32_t t = 0; l == 0 && t < s->n_tiles; t++)
            work_expect_tile(s, inputs, t, e->plane[0]);
        if (l > 0)
            (s->of->nearest ? pb_halve_nearest
                            : pb_halve_average)(e->plane[l - 1], (size_t)level[-1].w, level[-1].w,
                                                level[-1].h, e->plane[l], (size_t)level->w);
    }
    free(inputs);
}

/* The block as the CPU encodes it; to be freed by encode_reference_free. */
static inline bool work_expect_block(const struct work_scene *s, const struct work_expect *e,
                                     uint32_t number, struct encode_reference *out)
{
    uint32_t l = s->n_levels - 1;
    while (s->level[l].first > number)
        l--;
    const struct work_level *level = &s->level[l];
    const uint32_t i = number - level->first;
    const struct pb_rect r =
        work_rect(s->of->block_px, level->w, level->h, i % level->across, i / level->across);
    struct pb_encode_format format;
    const struct pb_encode_block block = {.data = e->plane[l] + (size_t)r.y * (size_t)level->w +
                                                  (size_t)r.x,
                                          .plane_px = (size_t)level->w * (size_t)level->h,
                                          .row_px = (uint32_t)level->w,
                                          .w = r.w,
                                          .h = r.h};
    work_format(s->of, &format);
    return encode_reference_make(&format, &block, out);
}

static inline void work_expect_free(struct work_expect *e)
{
    for (uint32_t l = 0; l < WORK_LEVELS; l++)
        free(e->plane[l]);
}

/* Compares a reported block with the CPU's. NULL: it is the same; else the difference. */
static inline const char *work_differs(const struct work_scene *s,
                                       const struct encode_reference *want,
                                       const struct pb_encoded *got, const uint8_t *out)
{
    const enum pb_encode_state state = s->of->with == PB_ENCODE_RAW ? PB_ENCODED_RAW
                                       : want->has_strings          ? PB_ENCODED_STRINGS
                                                                    : PB_ENCODED;
    if (got->state != state)
        return "its state";
    if (got->moved != want->moved)
        return "what was moved";
    if (state != PB_ENCODED)
        return NULL;
    if (got->bytes != want->encoded_bytes)
        return "its size";
    return memcmp(out + got->at, want->encoded, got->bytes) == 0 ? NULL : "its bytes";
}
#endif
