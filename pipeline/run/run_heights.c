/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_heights.h"
#include "config/config.h"
#include "pipeline/plan/choose.h"

#include "kernels/chain/chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 1024, WINDOW_PX = 1 << 20 };

struct window {
    struct pb_raster *raster;
    struct pb_chain *chain;
    struct pb_rect step; /* w x h: largest size of a window */
    void *stored;
    uint8_t *mask;
    float *pixels;
    void *scratch;
};

static void fini(struct window *w)
{
    pb_chain_destroy(w->chain);
    free(w->stored);
    free(w->mask);
    free(w->pixels);
    free(w->scratch);
}

/* Length of whole blocks, up to SIDE pixels. */
static int32_t step_of(int32_t block, int32_t size)
{
    const int32_t most = block < SIDE ? SIDE / block * block : block;
    return most < size ? most : size;
}

/* Bytes of a window with that many rows, and of its reader. */
static uint64_t bytes_of(const struct window *w, int32_t rows)
{
    const struct pb_raster_info *info = pb_raster_info(w->raster);
    const uint64_t px = (uint64_t)w->step.w * (uint64_t)rows;
    return pb_raster_reader_bytes(info) +
           px * ((uint64_t)pb_type_bytes(info->type) + info->has_mask + sizeof(float)) +
           pb_chain_scratch_bytes(w->chain, w->step.w, rows);
}

/* Count of rows for a block that is larger than a window. */
static int32_t rows_of_block(const struct window *w, uint64_t memory)
{
    const struct pb_raster_info *info = pb_raster_info(w->raster);
    const int32_t few = WINDOW_PX / w->step.w > 1 ? WINDOW_PX / w->step.w : 1;
    int32_t rows = strcmp(info->compression, "NONE") == 0 && few < w->step.h ? few : w->step.h;
    while (rows > 1 && bytes_of(w, rows) > memory)
        rows = (rows + 1) / 2;
    return rows;
}

static int size_window(struct window *w, uint64_t memory, struct pb_err *err)
{
    const struct pb_raster_info *info = pb_raster_info(w->raster);
    w->step.w = step_of(info->block_w, info->width);
    w->step.h = step_of(info->block_h, info->height);
    while ((int64_t)w->step.w * w->step.h > WINDOW_PX && w->step.h / 2 >= info->block_h)
        w->step.h /= 2;
    if ((int64_t)w->step.w * w->step.h > WINDOW_PX)
        w->step.h = rows_of_block(w, memory);
    const uint64_t bytes = bytes_of(w, w->step.h);
    if (bytes <= memory)
        return 0;
    return pb_fail(err, PB_E_PLAN_MEMORY,
                   "compute.memory is %llu MiB, but to read the heights of the ground from a file "
                   "of %d x %d, blocks of %d x %d, takes at least %llu MiB",
                   (unsigned long long)(memory >> 20), info->width, info->height, info->block_w,
                   info->block_h, (unsigned long long)((bytes + (1 << 20) - 1) >> 20));
}

static int init(struct window *w, struct pb_raster *raster, const struct pb_chain_input *input,
                uint64_t memory, struct pb_err *err)
{
    const struct pb_raster_info *info = pb_raster_info(raster);
    const struct pb_chain_source source = {info->width, info->height, true, pb_map_identity()};
    struct pb_chain_input alone = *input;
    struct pb_diag diag = {.kind = PB_DIAG_NONE};
    const char *name = "heights";
    size_t at;
    *w = (struct window){.raster = raster};
    alone.name = name;
    alone.source = 0;
    alone.bring = 0;
    const struct pb_chain_spec spec = {.inputs = &alone,
                                       .n_inputs = 1,
                                       .outputs = &name,
                                       .n_outputs = 1,
                                       .sources = &source,
                                       .n_sources = 1};
    if (pb_chain_create(&spec, &diag, &at, &w->chain) < 0) /* one band without steps is valid */
        return pb_fail(err, PB_E_MEMORY, "out of memory for the heights of the ground");
    int rc = size_window(w, memory, err);
    if (rc < 0)
        return rc;
    const size_t px = (size_t)w->step.w * (size_t)w->step.h;
    const size_t bytes = pb_chain_scratch_bytes(w->chain, w->step.w, w->step.h);
    w->stored = malloc(px * (size_t)pb_type_bytes(info->type));
    w->mask = info->has_mask ? malloc(px) : NULL;
    w->pixels = malloc(px * sizeof *w->pixels);
    w->scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (w->stored && w->pixels && w->scratch && (w->mask || !info->has_mask))
        return 0;
    return pb_fail(err, PB_E_MEMORY, "out of memory for the heights of the ground");
}

/* Widens the range by the pixels. Invalid pixels are NaN, for which no comparison is true. */
static void widen(double range[2], const float *pixels, size_t n)
{
    float low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        low = pixels[i] < low ? pixels[i] : low;
        high = pixels[i] > high ? pixels[i] : high;
    }
    range[0] = fmin(range[0], (double)low);
    range[1] = fmax(range[1], (double)high);
}

static int look(struct window *w, int32_t band, const struct pb_rect *rect, struct pb_err *err,
                double range[2])
{
    const struct pb_raster_info *info = pb_raster_info(w->raster);
    const size_t row = (size_t)rect->w * (size_t)pb_type_bytes(info->type),
                 px = (size_t)rect->w * (size_t)rect->h;
    const struct pb_tile_out out = {w->pixels, px};
    struct pb_tile_in in = {.core = *rect, .image_w = info->width, .image_h = info->height};
    in.window[0] = (struct pb_window){.data = w->stored,
                                      .row_bytes = row,
                                      .plane_bytes = row * (size_t)rect->h,
                                      .mask = w->mask,
                                      .mask_row_bytes = (size_t)rect->w,
                                      .rect = *rect};
    int rc = pb_raster_read(w->raster, &band, 1, &in.window[0], err);
    rc = rc ? rc : pb_chain_run_cpu(w->chain, &in, &out, w->scratch);
    if (rc == 0)
        widen(range, w->pixels, px);
    return rc;
}

static bool holds(const struct pb_rect *big, const struct pb_rect *small)
{
    return small->x >= big->x && small->y >= big->y && small->x + small->w <= big->x + big->w &&
           small->y + small->h <= big->y + big->h;
}

static int look_at_all(struct window *w, int32_t band, const struct pb_rect *area,
                       struct pb_err *err, double range[2])
{
    const int32_t right = area->x + area->w, bottom = area->y + area->h;
    int rc = 0;
    for (int32_t y = area->y / w->step.h * w->step.h; y < bottom && rc == 0; y += w->step.h)
        for (int32_t x = area->x / w->step.w * w->step.w; x < right && rc == 0; x += w->step.w) {
            const int32_t x0 = x > area->x ? x : area->x, y0 = y > area->y ? y : area->y;
            const int32_t x1 = right - x < w->step.w ? right : x + w->step.w;
            const int32_t y1 = bottom - y < w->step.h ? bottom : y + w->step.h;
            const struct pb_rect rect = {x0, y0, x1 - x0, y1 - y0};
            rc = look(w, band, &rect, err, range);
        }
    return rc;
}

/* Parts of the area outside the known one, which it contains: above, left, right, below. */
static void subtract(const struct pb_rect *area, const struct pb_rect *known, struct pb_rect out[4])
{
    const int32_t right = known->x + known->w, bottom = known->y + known->h;
    out[0] = (struct pb_rect){area->x, area->y, area->w, known->y - area->y};
    out[1] = (struct pb_rect){area->x, known->y, known->x - area->x, known->h};
    out[2] = (struct pb_rect){right, known->y, area->x + area->w - right, known->h};
    out[3] = (struct pb_rect){area->x, bottom, area->w, area->y + area->h - bottom};
}

/* Range to begin with: the known one of the largest area in the new one, because grids grow step by
 * step. */
static struct pb_plan_heights_range seed_of(const struct pb_plan_heights *h)
{
    const struct pb_plan_heights_lack *lack = &h->lacks;
    struct pb_plan_heights_range seed = {.input = lack->input, .range = {INFINITY, -INFINITY}};
    for (size_t i = 0; i < h->n; i++) {
        const struct pb_plan_heights_range *known = &h->known[i];
        if (known->input == lack->input && holds(&lack->area, &known->area) &&
            (int64_t)known->area.w * known->area.h > (int64_t)seed.area.w * seed.area.h)
            seed = *known;
    }
    return seed;
}

/* Reads the range that the last plan lacks. */
static int read_range(const struct pb_plan_request *request, struct pb_plan_heights_range *out,
                      struct pb_err *err)
{
    const struct pb_plan_heights_lack *lack = &request->heights->lacks;
    struct pb_rect part[4] = {lack->area};
    struct window w;
    *out = seed_of(request->heights);
    if (out->area.w > 0)
        subtract(&lack->area, &out->area, part);
    int rc = init(&w, lack->file == 0 ? request->raster : request->others[lack->file - 1].raster,
                  &lack->band, request->config->compute.memory_bytes, err);
    for (int i = 0; i < 4 && rc == 0; i++)
        if (part[i].w > 0 && part[i].h > 0)
            rc = look_at_all(&w, lack->number, &part[i], err, out->range);
    fini(&w);
    out->area = lack->area;
    return rc;
}

int pb_run_heights_read(const struct pb_plan_request *request, struct pb_err *err)
{
    struct pb_plan_heights *h = request->heights;
    struct pb_plan_heights_range *more = realloc(h->known, (h->n + 1) * sizeof *more);
    if (more == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the heights of the ground");
    h->known = more;
    int rc = read_range(request, &more[h->n], err);
    h->n += rc == 0;
    return rc;
}

int pb_run_heights_plan(const struct pb_plan_request *request, struct pb_err *err,
                        struct pb_plan **out)
{
    struct pb_err own = {0};
    int rc;
    while ((rc = pb_plan_create(request, &own, out)) < 0 && request->heights->lacks.area.w > 0) {
        own = (struct pb_err){0};
        if ((rc = pb_run_heights_read(request, &own)) < 0)
            break;
    }
    if (rc < 0 && err != NULL)
        *err = own;
    return rc;
}

void pb_run_heights_fini(struct pb_plan_heights *heights)
{
    free(heights->known);
    *heights = (struct pb_plan_heights){.n = 0};
}
