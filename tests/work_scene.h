/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WORK_SCENE_H
#define PB_WORK_SCENE_H
/* A scene of stored blocks and the tables by which workers make a product of it (kernels/work), on
 * the emulator (unit/test_work_device.c) and on a GPU (gpu/check_work.c). Blocks are of a few
 * kinds, so that a large scene is made in a moment. A failure aborts. */
#include "kernels/chain/chain_block.h"
#include "kernels/work/work.h"
#include "pipeline/codec/codec.h"
#include "pipeline/codec/predictor.h"
#include "tests/encode_reference.h"
#include "tests/op_params.h"

#include <math.h>

enum { WORK_KINDS = 24, WORK_LEVELS = 16, WORK_BANDS = 4 };

struct work_case {
    const char *name;
    int32_t w, h;     /* size of the scene */
    int32_t side;     /* side of its blocks */
    int32_t block_px; /* side of the product's */
    uint32_t bands;
    int predictor;
    enum pb_device_codec codec; /* PB_DEVICE_CODECS: each block another one */
    bool halo;                  /* a focal operation */
    bool nearest;
    enum pb_type type; /* type of the product */
    enum pb_encode_with with;
};

/* Memory that workers use: the host's, or the device's. */
struct work_memory {
    void *(*take)(size_t bytes);
    void (*fill)(void *to, const void *from, size_t bytes);
};

struct work_stored {
    uint8_t *bytes;
    size_t n;
};

struct work_level {
    int32_t w, h;
    uint32_t across, down, first; /* block */
};

struct work_scene {
    const struct work_case *of;
    struct work_memory memory;
    struct pb_chain *chain;
    struct pb_rect *read;       /* area of each tile */
    uint16_t *kind[WORK_KINDS]; /* pixels of a block, plane by plane */
    struct work_stored stored[WORK_KINDS];
    struct work_level level[WORK_LEVELS];
    uint32_t n_levels, n_pieces, n_tiles, across; /* pieces side by side */
    struct pb_work_piece *piece;                  /* these on the host */
    struct pb_work_block *block;
    struct pb_tile_in *tile_in;
    struct pb_encode_block *encode;
    uint8_t *in; /* place of stored bytes: piece i at piece[i].stream.in */
    uint64_t in_bytes;
    struct pb_encode_needs needs;
    struct pb_chain_block_needs chain_needs;
    struct pb_work_view view;
    void *image; /* memory of the rings */
    uint32_t most[WIC_READY_RINGS];
    uint64_t *used;
};

static inline void *work_host(size_t n, size_t bytes)
{
    void *memory = calloc(n + 1, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

/* A filled copy where workers find it. */
static inline void *work_there(const struct work_scene *s, const void *from, size_t bytes)
{
    void *there = s->memory.take(bytes);
    if (from != NULL)
        s->memory.fill(there, from, bytes);
    return there;
}

/* A table of zeros. */
static inline void *work_zeros(const struct work_scene *s, size_t n, size_t bytes)
{
    void *zeros = work_host(n, bytes), *there = work_there(s, zeros, n * bytes);
    free(zeros);
    return there;
}

/* --- stored blocks --------------------------------------------------------------------------- */

static inline uint32_t work_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 20);
}

/* Hills, and noise of a few counts. */
static inline void work_fill_kind(const struct work_case *of, uint32_t kind, uint16_t *to)
{
    uint64_t state = UINT64_C(88172645463325252) + kind * 7919;
    for (uint32_t b = 0; b < of->bands; b++)
        for (int32_t y = 0; y < of->side; y++)
            for (int32_t x = 0; x < of->side; x++) {
                const float u = (float)(x + 37 * (int)(kind + b)) * 0.011f, v = (float)y * 0.017f;
                float value = 1500 + 600 * sinf(u) * cosf(v) + 150 * sinf(5 * u + 3 * v);
                for (int k = 0; k < 4; k++)
                    value += (float)(work_random(&state) % 25);
                *to++ = (uint16_t)value;
            }
}

static inline enum pb_device_codec work_codec_of(const struct work_case *of, uint32_t kind)
{
    return of->codec < PB_DEVICE_CODECS ? of->codec
                                        : (enum pb_device_codec)(kind % PB_DEVICE_CODECS);
}

static inline struct work_stored work_store(const struct work_case *of, uint32_t kind,
                                            const uint16_t *planes)
{
    const size_t px = (size_t)of->side * (size_t)of->side, row = (size_t)of->side * of->bands;
    const size_t bytes = px * of->bands * sizeof(uint16_t);
    const enum pb_device_codec by = work_codec_of(of, kind);
    const struct pb_codec *codec = by == PB_DEVICE_LZW ? &pb_codec_lzw : &pb_codec_deflate;
    uint16_t *raw = work_host(px * of->bands, sizeof *raw), *line = work_host(row, sizeof *line);
    struct work_stored out = {(uint8_t *)raw, bytes};
    for (int32_t y = 0; y < of->side; y++) {
        for (size_t i = 0; i < row; i++)
            line[i] = planes[i % of->bands * px + (size_t)y * (size_t)of->side + i / of->bands];
        pb_predict_row(of->predictor, PB_U16, line, (size_t)of->side, of->bands,
                       raw + (size_t)y * row);
    }
    free(line);
    if (by == PB_DEVICE_STORED)
        return out;
    void *context = NULL;
    const size_t room = codec->bound(bytes);
    out.bytes = work_host(room, 1);
    if (codec->create(by == PB_DEVICE_DEFLATE ? 6 : 0, bytes, &context) < 0 ||
        codec->encode(context, raw, bytes, out.bytes, room, &out.n) < 0)
        abort();
    codec->destroy(context);
    free(raw);
    return out;
}

static inline uint32_t work_kind(const struct work_scene *s, uint32_t piece)
{
    return (piece % s->across + 7 * (piece / s->across)) % WORK_KINDS;
}

/* --- the chain, tiles and levels ------------------------------------------------------------- */

/* X = (b - a) / (b + a), with a smoothed where there is a halo. */
static inline struct pb_chain *work_chain(const struct work_case *of)
{
    static const char *const names[] = {"a", "b", "c", "d"}, *const output = "X";
    const struct pb_item smooth = {.key = "S", .text = "a"}, kernel = {.text = "gaussian"},
                         side = {.num = 5},
                         math = {.key = "X",
                                 .text = of->halo ? "(b - S) / (b + S)" : "(b - a) / (b + a)"};
    struct pb_chain_input inputs[WORK_BANDS];
    struct op_params params[2];
    struct pb_chain_step steps[2];
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t n = 0, at;
    for (uint32_t i = 0; i < of->bands; i++)
        inputs[i] = (struct pb_chain_input){.name = names[i], .type = PB_U16, .scale = 1.0};
    if (of->halo) {
        steps[n] = (struct pb_chain_step){pb_op_find("convolve"), &params[n]};
        op_defaults(steps[n].op, &params[n]);
        (void)op_give(steps[n].op, &params[n], "bands", &smooth, 1);
        (void)op_give(steps[n].op, &params[n], "kernel", &kernel, 1);
        (void)op_give(steps[n].op, &params[n], "size", &side, 1);
        n++;
    }
    steps[n] = (struct pb_chain_step){pb_op_find("math"), &params[n]};
    op_defaults(steps[n].op, &params[n]);
    (void)op_give(steps[n].op, &params[n], "bands", &math, 1);
    n++;
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = of->bands,
                                       .steps = steps,
                                       .n_steps = n,
                                       .outputs = &output,
                                       .n_outputs = 1};
    if (pb_chain_create(&spec, &diag, &at, &chain) < 0) {
        (void)fprintf(stderr, "%s\n", diag.msg);
        abort();
    }
    return chain;
}

static inline uint32_t work_parts(int32_t n, int32_t each)
{
    return (uint32_t)((n + each - 1) / each);
}

static inline void work_levels(struct work_scene *s)
{
    int32_t w = s->of->w, h = s->of->h;
    uint32_t first = 0;
    for (;;) {
        struct work_level *level = &s->level[s->n_levels++];
        *level = (struct work_level){w, h, work_parts(w, s->of->block_px),
                                     work_parts(h, s->of->block_px), first};
        first += level->across * level->down;
        if (level->across * level->down == 1)
            return;
        w = (w + 1) / 2;
        h = (h + 1) / 2;
    }
}

static inline struct pb_rect work_rect(int32_t side, int32_t w, int32_t h, uint32_t x, uint32_t y)
{
    struct pb_rect r = {(int32_t)x * side, (int32_t)y * side, side, side};
    r.w = r.x + side > w ? w - r.x : side;
    r.h = r.y + side > h ? h - r.y : side;
    return r;
}

static inline bool work_meet(const struct pb_rect *a, const struct pb_rect *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}

/* Area that a tile reads: its core and the halo, in the image. */
static inline struct pb_rect work_read(const struct work_scene *s, const struct pb_rect *core)
{
    const int32_t halo = pb_chain_halo(s->chain);
    const int32_t x0 = core->x - halo > 0 ? core->x - halo : 0,
                  y0 = core->y - halo > 0 ? core->y - halo : 0, x1 = core->x + core->w + halo,
                  y1 = core->y + core->h + halo;
    return (struct pb_rect){x0, y0, (x1 < s->of->w ? x1 : s->of->w) - x0,
                            (y1 < s->of->h ? y1 : s->of->h) - y0};
}

/* Tiles in planes of the whole scene at `planes`. */
static inline void work_tiles(struct work_scene *s, uint8_t *planes, size_t row_bytes,
                              size_t plane_bytes)
{
    const struct work_level *level = &s->level[0];
    s->n_tiles = level->across * level->down;
    s->tile_in = work_host(s->n_tiles, sizeof *s->tile_in);
    s->read = work_host(s->n_tiles, sizeof *s->read);
    for (uint32_t t = 0; t < s->n_tiles; t++) {
        struct pb_tile_in *in = &s->tile_in[t];
        in->core =
            work_rect(s->of->block_px, s->of->w, s->of->h, t % level->across, t / level->across);
        in->image_w = s->of->w;
        in->image_h = s->of->h;
        s->read[t] = work_read(s, &in->core);
        in->window[0] = (struct pb_window){.data = planes + (size_t)s->read[t].y * row_bytes +
                                                   (size_t)s->read[t].x * 2,
                                           .row_bytes = row_bytes,
                                           .plane_bytes = plane_bytes,
                                           .rect = s->read[t]};
    }
    s->view.tile_in = work_there(s, s->tile_in, s->n_tiles * sizeof *s->tile_in);
}
#endif
