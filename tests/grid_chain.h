/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_GRID_CHAIN_H
#define PB_GRID_CHAIN_H
/* Random chains that change grids: crop, resample by every method to finer and coarser grids,
 * difference, pansharpen, focal operations and expressions between them, over a scene (bands a and
 * b) and a source of other type, pixels and place (bands p and q); and tiles for them. */
#include "kernels/chain/chain.h"
#include "tests/op_params.h"
#include "tests/random_tile.h"

#include <stdio.h>
#include <string.h>

#define GRID_CHAIN_STEPS   5
#define GRID_CHAIN_SOURCES 2

/* Facts about a band for the random steps; `grid`: equal numbers are one grid. */
struct grid_chain_band {
    char name[8];
    int32_t w, h, grid;
};

struct grid_chain_step {
    struct op_params params;
    struct pb_item item[3], window[4], minus;
    char text[64];
};

struct grid_chain {
    uint32_t *random;
    struct random_image image[GRID_CHAIN_SOURCES];
    struct pb_chain_source source[GRID_CHAIN_SOURCES];
    struct grid_chain_band band[4 + GRID_CHAIN_STEPS];
    size_t n_bands;
    int32_t n_grids;
    struct grid_chain_step step[GRID_CHAIN_STEPS];
    struct pb_chain_step plain[GRID_CHAIN_STEPS];
    size_t n_steps;
};

static const char *const grid_chain_methods[] = {"nearest", "bilinear", "cubic", "average", "mode"};

static inline uint32_t grid_chain_random(struct grid_chain *g, uint32_t n)
{
    *g->random = *g->random * 1664525u + 1013904223u;
    return (*g->random >> 8) % n;
}

static inline void grid_chain_images(struct grid_chain *g, int32_t side_max)
{
    static const double scales[] = {0.25, 0.5, 1.0, 1.0, 2.0, 4.0, 1.3};
    const double scale = scales[grid_chain_random(g, 7)];

    for (int i = 0; i < GRID_CHAIN_SOURCES; i++)
        g->image[i] =
            (struct random_image){.seed = grid_chain_random(g, 1u << 20),
                                  .type = (enum pb_type)grid_chain_random(g, PB_TYPE_COUNT),
                                  .masked = grid_chain_random(g, 3) == 0};
    g->image[0].w = 3 + (int32_t)grid_chain_random(g, (uint32_t)side_max);
    g->image[0].h = 3 + (int32_t)grid_chain_random(g, (uint32_t)side_max);
    g->image[1].w = 1 + (int32_t)(g->image[0].w * scale * (0.6 + 0.2 * grid_chain_random(g, 4)));
    g->image[1].h = 1 + (int32_t)(g->image[0].h * scale * (0.6 + 0.2 * grid_chain_random(g, 4)));
    g->source[0] = (struct pb_chain_source){g->image[0].w, g->image[0].h, true, pb_map_identity()};
    g->source[1] =
        (struct pb_chain_source){g->image[1].w,
                                 g->image[1].h,
                                 true,
                                 {scale, scale, scale * (grid_chain_random(g, 40) * 0.25 - 3.0),
                                  scale * (grid_chain_random(g, 40) * 0.5 - 7.0)}};
    for (int i = 0; i < 4; i++) {
        struct grid_chain_band *const band = &g->band[i];

        *band = (struct grid_chain_band){"", g->image[i / 2].w, g->image[i / 2].h, i / 2};
        band->name[0] = "abpq"[i];
    }
    g->n_bands = 4;
    g->n_grids = 2;
}

/* Puts a step and the band that it makes, on a grid of its own unless one is given. */
static inline void grid_chain_put(struct grid_chain *g, const char *op, const char *of, int32_t w,
                                  int32_t h, int32_t grid)
{
    struct grid_chain_step *const step = &g->step[g->n_steps];
    struct grid_chain_band *const band = &g->band[g->n_bands++];

    (void)snprintf(band->name, sizeof band->name, "x%zu", g->n_steps);
    band->w = w;
    band->h = h;
    band->grid = grid >= 0 ? grid : g->n_grids++;
    g->plain[g->n_steps++] = (struct pb_chain_step){pb_op_find(op), &step->params};
    step->item[0] = (struct pb_item){.key = band->name, .text = of};
    (void)op_give(pb_op_find(op), &step->params, "bands", step->item, 1);
}

/* The next step, with an operator's defaults. */
static inline struct grid_chain_step *grid_chain_begin(struct grid_chain *g, const char *op)
{
    struct grid_chain_step *const step = &g->step[g->n_steps];

    op_defaults(pb_op_find(op), &step->params);
    return step;
}

static inline void grid_chain_method(struct grid_chain *g, struct grid_chain_step *step,
                                     const char *op, uint32_t n)
{
    step->item[1] = (struct pb_item){.text = grid_chain_methods[grid_chain_random(g, n)]};
    (void)op_give(pb_op_find(op), &step->params, "method", &step->item[1], 1);
}

static inline void grid_chain_crop(struct grid_chain *g, const struct grid_chain_band *band)
{
    struct grid_chain_step *const step = grid_chain_begin(g, "crop");
    const int32_t w = band->w - (int32_t)grid_chain_random(g, (uint32_t)band->w / 2 + 1);
    const int32_t h = band->h - (int32_t)grid_chain_random(g, (uint32_t)band->h / 2 + 1);
    const double window[4] = {grid_chain_random(g, (uint32_t)(band->w - w) + 1),
                              grid_chain_random(g, (uint32_t)(band->h - h) + 1), w, h};

    for (int i = 0; i < 4; i++)
        step->window[i] = (struct pb_item){.text = "", .num = window[i]};
    (void)op_give(pb_op_find("crop"), &step->params, "window", step->window, 4);
    grid_chain_put(g, "crop", band->name, w, h, -1);
}

static inline void grid_chain_resample(struct grid_chain *g, const struct grid_chain_band *band)
{
    static const double factors[] = {2.0, 3.0, 1.7, 0.5, 0.25, 0.37, 0.61, 0.05};
    struct grid_chain_step *const step = grid_chain_begin(g, "resample");
    const double factor = factors[band->w < 200 && band->h < 200 ? grid_chain_random(g, 8)
                                                                 : 3 + grid_chain_random(g, 5)];
    const double w = floor(band->w * factor + 0.5), h = floor(band->h * factor + 0.5);

    step->item[2] = (struct pb_item){.text = "", .num = factor};
    (void)op_give(pb_op_find("resample"), &step->params, "factor", &step->item[2], 1);
    grid_chain_method(g, step, "resample", 5);
    grid_chain_put(g, "resample", band->name, w > 1 ? (int32_t)w : 1, h > 1 ? (int32_t)h : 1, -1);
}

/* `band` with one on another grid: difference, pansharpen, or its own pixels on the other's. */
static inline void grid_chain_join(struct grid_chain *g, const struct grid_chain_band *band,
                                   const struct grid_chain_band *other)
{
    static const char *const ops[] = {"difference", "pansharpen", "resample"};
    static const char *const keys[] = {"minus", "pan", "like"};
    const uint32_t k = grid_chain_random(g, 3);
    struct grid_chain_step *const step = grid_chain_begin(g, ops[k]);
    const struct grid_chain_band *const onto = k == 0 ? band : other;

    step->minus = (struct pb_item){.text = other->name};
    (void)op_give(pb_op_find(ops[k]), &step->params, keys[k], &step->minus, 1);
    grid_chain_method(g, step, ops[k], 5);
    grid_chain_put(g, ops[k], band->name, onto->w, onto->h, onto->grid);
}

static inline void grid_chain_focal(struct grid_chain *g, const struct grid_chain_band *band)
{
    struct grid_chain_step *const step = grid_chain_begin(g, "roughness");

    step->item[2] = (struct pb_item){.text = "", .num = 3 + 2 * grid_chain_random(g, 3)};
    (void)op_give(pb_op_find("roughness"), &step->params, "size", &step->item[2], 1);
    grid_chain_put(g, "roughness", band->name, band->w, band->h, band->grid);
}

/* An expression of bands on one grid. */
static inline void grid_chain_math(struct grid_chain *g, const struct grid_chain_band *band)
{
    struct grid_chain_step *const step = grid_chain_begin(g, "math");
    const struct grid_chain_band one = *band;
    struct grid_chain_band other = *band;

    for (size_t i = 0; i < g->n_bands; i++)
        if (g->band[i].grid == one.grid && grid_chain_random(g, 2))
            other = g->band[i];
    (void)snprintf(step->text, sizeof step->text, "%s * 0.5 - sqrt(abs(%s))", one.name, other.name);
    grid_chain_put(g, "math", step->text, band->w, band->h, band->grid);
}

static inline void grid_chain_next(struct grid_chain *g)
{
    /* Mostly what the last step made, so that chains become deep. */
    const size_t n = g->n_bands,
                 at = grid_chain_random(g, 3) ? n - 1 : grid_chain_random(g, (uint32_t)n);
    const struct grid_chain_band *const band = &g->band[at];

    switch (grid_chain_random(g, 6)) {
    case 0:
        grid_chain_crop(g, band);
        break;
    case 1:
        grid_chain_math(g, band);
        break;
    case 2:
        grid_chain_focal(g, band);
        break;
    case 3:
        grid_chain_resample(g, band);
        break;
    default:
        grid_chain_join(g, band, &g->band[grid_chain_random(g, 4)]);
        break;
    }
}

/* A chain of up to GRID_CHAIN_STEPS over images of up to side_max pixels a side; random: advanced,
 * borrowed as long as g. -EINVAL: these steps do not fit each other, for example because a scale is
 * out of bounds. */
static inline int grid_chain_make(uint32_t *random, uint32_t side_max, struct grid_chain *g,
                                  struct pb_diag *diag, struct pb_chain **out_chain)
{
    struct pb_chain_input inputs[4];
    const struct pb_scene_facts scene = {.has_transform = true, .transform = {0, 1, 0, 0, 0, -1}};
    size_t at;

    memset(g, 0, sizeof *g);
    g->random = random;
    grid_chain_images(g, (int32_t)side_max);
    for (uint32_t n = 1 + grid_chain_random(g, GRID_CHAIN_STEPS); n > 0; n--)
        grid_chain_next(g);
    for (uint32_t i = 0; i < 4; i++)
        inputs[i] = (struct pb_chain_input){.name = g->band[i].name,
                                            .type = g->image[i / 2].type,
                                            .has_nodata = true,
                                            .nodata = TILE_NODATA,
                                            .scale = i == 1 ? 0.01 : 1.0,
                                            .source = i / 2};
    const char *const output = g->band[g->n_bands - 1].name;
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 4,
                                       .steps = g->plain,
                                       .n_steps = g->n_steps,
                                       .outputs = &output,
                                       .n_outputs = 1,
                                       .sources = g->source,
                                       .n_sources = GRID_CHAIN_SOURCES,
                                       .scene = &scene};
    return pb_chain_create(&spec, diag, &at, out_chain);
}

/* Reads what a core of the chain needs of each of its images, and `more` pixels around it.
 * source_of an input: which image it is a band of; its number is that of the band. */
static inline bool grid_tile_make(const struct pb_chain *chain, const struct random_image *images,
                                  size_t n_images, const uint32_t *source_of,
                                  const struct pb_rect *core, int32_t more, size_t pad_px,
                                  struct random_tile *out)
{
    const struct pb_geometry grid = pb_chain_geometry(chain);
    const uint32_t *used;
    const size_t n_used = pb_chain_used(chain, &used);
    bool good = true;

    *out = (struct random_tile){.in = {.core = *core, .image_w = grid.w, .image_h = grid.h}};
    for (size_t s = 0; s < n_images && good; s++) {
        struct pb_rect read = pb_chain_need(chain, (uint32_t)s, core);
        uint32_t bands[64];
        size_t n = 0;

        for (size_t i = 0; i < n_used; i++)
            if (source_of[used[i]] == s)
                bands[n++] = used[i];
        if (n == 0 || read.w == 0)
            continue;
        read = pb_rect_grow(&read, more, images[s].w, images[s].h);
        good = random_window_make(&images[s], &read, bands, n, pad_px, &out->source[s]);
        out->in.window[s] = out->source[s].window;
    }
    return good;
}
#endif
