/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Running a chain on the calling thread, and the geometry that both devices share. Scratch holds
 * the planes, the focal operations' temporary and, here only, what the interpreter needs; it is
 * laid out anew for every tile from the size of its core, which is what create's callers bounded.
 */
#include "kernels/chain/chain_frames.h"
#include "kernels/chain/chain_stage.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>

#define ALIGN_PX 16 /* 64 bytes */

static size_t round_px(size_t px)
{
    return (px + ALIGN_PX - 1) / ALIGN_PX * ALIGN_PX;
}

struct pb_rect pb_chain_rect_on(const struct pb_chain *chain, uint16_t grid,
                                const struct pb_rect *core, int32_t margin)
{
    const struct pb_chain_grid *const g = &chain->grids[grid];

    if (g->frame != chain->frame)
        return pb_chain_frames_rect(chain, grid, core, margin);
    return pb_rect_on(&g->map, g->w, g->h, core, margin);
}

/* The rect of a plane of this tile. */
static struct pb_rect plane_rect(const struct pb_chain *chain, const struct pb_tile_in *in,
                                 uint16_t grid, int32_t margin)
{
    return chain->keeps_grid ? pb_rect_grow(&in->core, margin, in->image_w, in->image_h)
                             : pb_chain_rect_on(chain, grid, &in->core, margin);
}

static int32_t least(double a, int32_t b)
{
    return a < b ? (int32_t)a : b;
}

/* Both ends are rounded outwards, of a number that may be off by its last bit. */
struct pb_rect pb_chain_largest_rect(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                                     uint16_t grid, int32_t margin)
{
    const struct pb_chain_grid *const g = &chain->grids[grid];

    if (chain->keeps_grid)
        return (struct pb_rect){0, 0, core_w + 2 * margin, core_h + 2 * margin};
    if (g->frame != chain->frame)
        return pb_chain_frames_largest(chain, core_w, core_h, grid, margin);
    return (struct pb_rect){0, 0, least(ceil(core_w * g->map.scale_x) + 2 + 2.0 * margin, g->w),
                            least(ceil(core_h * g->map.scale_y) + 2 + 2.0 * margin, g->h)};
}

struct pb_rect pb_chain_need_most(const struct pb_chain *chain, uint32_t source, int32_t w,
                                  int32_t h)
{
    const struct pb_source_need *const need = &chain->sources[source];

    return pb_chain_largest_rect(chain, w, h, need->grid, need->halo);
}

static size_t area(const struct pb_rect *rect)
{
    return (size_t)rect->w * (size_t)rect->h;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void pb_chain_measure(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                      struct pb_chain_layout *out_layout)
{
    size_t temp_px = 0, plane_px = 0;

    for (size_t k = 0; k < chain->n_stages; k++) {
        const struct pb_stage *const stage = &chain->stages[k];
        struct pb_rect rect =
            pb_chain_largest_rect(chain, core_w, core_h, stage->grid, stage->margin);

        plane_px = larger(plane_px, area(&rect));
        for (size_t i = 0; i < stage->n_focals; i++) {
            const struct pb_stage_focal *const s = &stage->focals[i];

            rect = pb_chain_largest_rect(chain, core_w, core_h, s->to_grid, s->to_margin);
            plane_px = larger(plane_px, area(&rect));
            temp_px =
                larger(temp_px, s->is_warp       ? pb_warp_temp_px(&s->warp, (size_t)rect.w)
                                : s->is_resample ? pb_resample_temp_px(&s->resample, (size_t)rect.w)
                                                 : pb_focal_temp_px(&s->focal, &rect));
        }
    }
    out_layout->plane_px = round_px(plane_px);
    out_layout->planes_px = out_layout->plane_px * chain->n_planes;
    out_layout->temp_px = round_px(temp_px);
}

size_t pb_chain_bases_px(const struct pb_chain *chain)
{
    return chain->n_legs > 0 ? round_px(chain->n_grids * sizeof(struct pb_rect) / sizeof(float))
                             : 0;
}

size_t pb_chain_plane_px(const struct pb_chain *chain, int32_t w, int32_t h)
{
    struct pb_chain_layout layout;

    pb_chain_measure(chain, w, h, &layout);
    return larger(layout.plane_px, (size_t)w * (size_t)h);
}

size_t pb_chain_scratch_bytes(const struct pb_chain *chain, int32_t core_w, int32_t core_h)
{
    struct pb_chain_layout layout;
    uint32_t most_code = 0;

    pb_chain_measure(chain, core_w, core_h, &layout);
    for (size_t k = 0; k < chain->n_stages; k++)
        most_code = chain->stages[k].n_code > most_code ? chain->stages[k].n_code : most_code;
    return (layout.planes_px + layout.temp_px) * sizeof(float) +
           pb_program_cpu_bytes(chain->n_registers, most_code);
}

static bool inside(const struct pb_rect *small, const struct pb_rect *big)
{
    return small->x >= big->x && small->y >= big->y && small->w > 0 && small->h > 0 &&
           small->w <= big->w - (small->x - big->x) && small->h <= big->h - (small->y - big->y);
}

static bool window_holds(const struct pb_chain *chain, uint32_t source,
                         const struct pb_window *window, const struct pb_rect *needed)
{
    if (needed->w == 0)
        return true;
    if (!window->data || !inside(needed, &window->rect))
        return false;
    if (window->mask && window->mask_row_bytes < (size_t)window->rect.w)
        return false;
    for (size_t i = 0; i < chain->n_used; i++) {
        const size_t bytes = pb_type_bytes((enum pb_type)chain->inputs[i].type);
        const size_t strides = (uintptr_t)window->data | window->row_bytes | window->plane_bytes;

        if (chain->inputs[i].window == source &&
            (strides % bytes != 0 || window->row_bytes < (size_t)window->rect.w * bytes))
            return false;
    }
    return true;
}

int pb_chain_check(const struct pb_chain *chain, const struct pb_tile_in *in,
                   const struct pb_tile_out *out)
{
    const struct pb_rect image = {0, 0, chain->keeps_grid ? in->image_w : chain->geometry.w,
                                  chain->keeps_grid ? in->image_h : chain->geometry.h};

    if (!out->data || !inside(&in->core, &image) ||
        out->plane_px < (size_t)in->core.w * (size_t)in->core.h)
        return -EINVAL;
    for (uint32_t s = 0; s < PB_SOURCES_MAX; s++) {
        if (chain->sources[s].n_planes == 0)
            continue;
        const struct pb_rect needed =
            plane_rect(chain, in, chain->sources[s].grid, chain->sources[s].halo);
        if (!window_holds(chain, s, &in->window[s], &needed) ||
            (chain->keeps_grid && !inside(&in->window[s].rect, &image)))
            return -EINVAL;
    }
    return 0;
}

void pb_chain_sweep(const struct pb_chain *chain, size_t stage, const struct pb_tile_in *in,
                    const struct pb_tile_out *out, float *scratch, struct pb_sweep *out_sweep)
{
    const struct pb_stage *const s = &chain->stages[stage];
    const bool last = stage + 1 == chain->n_stages;
    const struct pb_rect rect = plane_rect(chain, in, s->grid, s->margin);
    struct pb_chain_layout layout;

    pb_chain_measure(chain, in->core.w, in->core.h, &layout);
    *out_sweep = (struct pb_sweep){.code = s->code,
                                   .n_code = s->n_code,
                                   .n_registers = s->n_registers,
                                   .inputs = chain->inputs,
                                   .in = *in,
                                   .rect = rect,
                                   .out = last ? out->data : scratch,
                                   .out_px = last ? out->plane_px : layout.plane_px,
                                   .out_row = (size_t)rect.w,
                                   .planes = scratch,
                                   .plane_px = layout.plane_px,
                                   .places = chain->keeps_grid ? NULL : chain->leaf_places};
}

void pb_chain_planes(const struct pb_chain *chain, const struct pb_stage_focal *focal,
                     const struct pb_tile_in *in, float *scratch, struct pb_stage_planes *out)
{
    struct pb_chain_layout layout;

    pb_chain_measure(chain, in->core.w, in->core.h, &layout);
    *out = (struct pb_stage_planes){
        .from = {scratch + focal->from * layout.plane_px,
                 plane_rect(chain, in, focal->from_grid, focal->from_margin)},
        .to = {scratch + focal->to * layout.plane_px,
               plane_rect(chain, in, focal->to_grid, focal->to_margin)}};
    if (focal->has_heights)
        out->heights =
            (struct pb_plane){scratch + focal->heights * layout.plane_px,
                              plane_rect(chain, in, focal->heights_grid, focal->heights_margin)};
    assert(area(&out->from.rect) <= layout.plane_px && area(&out->to.rect) <= layout.plane_px);
}

static void make_plane(const struct pb_chain *chain, const struct pb_stage_focal *s,
                       const struct pb_tile_in *in, float *planes, float *temp)
{
    const struct pb_chain_grid *const grid = &chain->grids[s->to_grid];
    struct pb_stage_planes p;

    pb_chain_planes(chain, s, in, planes, &p);
    if (p.to.rect.w == 0)
        return;
    if (s->is_warp)
        pb_warp_run_cpu(&s->warp, &p.from, s->has_heights ? &p.heights : NULL, &p.to, temp);
    else if (s->is_resample)
        pb_resample_run_cpu(&s->resample, &p.from, &p.to, temp);
    else
        pb_focal_run_cpu(&s->focal, &p.from, &p.to, chain->keeps_grid ? in->image_w : grid->w,
                         chain->keeps_grid ? in->image_h : grid->h, temp);
}

int pb_chain_run_cpu(const struct pb_chain *chain, const struct pb_tile_in *in,
                     const struct pb_tile_out *out, void *scratch)
{
    struct pb_chain_layout layout;
    struct pb_rect bases[PB_GRAPH_GRIDS_MAX];
    const int rc = pb_chain_check(chain, in, out);

    if (rc < 0)
        return rc;
    pb_chain_frames_bases(chain, &in->core, bases);
    pb_chain_measure(chain, in->core.w, in->core.h, &layout);
    float *const planes = scratch;
    float *const temp = planes + layout.planes_px;
    void *const program = temp + layout.temp_px; /* memory of the interpreter */

    for (size_t k = 0; k < chain->n_stages; k++) {
        const struct pb_stage *const stage = &chain->stages[k];
        struct pb_sweep sweep;

        pb_chain_sweep(chain, k, in, out, planes, &sweep);
        sweep.bases = bases;
        if (sweep.n_code)
            pb_program_run_cpu(&sweep, program);
        for (size_t i = 0; i < stage->n_focals; i++)
            make_plane(chain, &stage->focals[i], in, planes, temp);
    }
    return 0;
}
