/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Running a chain on the calling thread, and the geometry that both devices share. Scratch holds
 * the planes, the focal operations' temporary and, here only, the registers; it is laid out anew
 * for every tile from the size of its core, which is what create's callers bounded. */
#include "kernels/chain/chain_stage.h"

#include <errno.h>
#include <stdint.h>

#define ALIGN_PX 16 /* 64 bytes */

static size_t round_px(size_t px)
{
    return (px + ALIGN_PX - 1) / ALIGN_PX * ALIGN_PX;
}

void pb_chain_measure(const struct pb_chain *chain, int32_t core_w, int32_t core_h,
                      struct pb_chain_layout *out_layout)
{
    size_t temp_px = 0;

    for (size_t k = 0; k < chain->n_stages; k++)
        for (size_t i = 0; i < chain->stages[k].n_focals; i++) {
            const struct pb_stage_focal *const s = &chain->stages[k].focals[i];
            const struct pb_rect rect = {0, 0, core_w + 2 * s->to_margin,
                                         core_h + 2 * s->to_margin};
            const size_t px = pb_focal_temp_px(&s->focal, &rect);

            temp_px = px > temp_px ? px : temp_px;
        }
    out_layout->plane_px =
        round_px((size_t)(core_w + 2 * chain->halo) * (size_t)(core_h + 2 * chain->halo));
    out_layout->planes_px = out_layout->plane_px * chain->n_planes;
    out_layout->temp_px = round_px(temp_px);
}

size_t pb_chain_scratch_bytes(const struct pb_chain *chain, int32_t core_w, int32_t core_h)
{
    struct pb_chain_layout layout;

    pb_chain_measure(chain, core_w, core_h, &layout);
    return (layout.planes_px + layout.temp_px) * sizeof(float) +
           pb_program_cpu_bytes(chain->n_registers);
}

static bool inside(const struct pb_rect *small, const struct pb_rect *big)
{
    return small->x >= big->x && small->y >= big->y && small->w > 0 && small->h > 0 &&
           small->w <= big->w - (small->x - big->x) && small->h <= big->h - (small->y - big->y);
}

int pb_chain_check(const struct pb_chain *chain, const struct pb_tile_in *in,
                   const struct pb_tile_out *out)
{
    const struct pb_rect image = {0, 0, in->image_w, in->image_h};

    if (!in->data || !out->data || !inside(&in->read, &image) || !inside(&in->core, &in->read))
        return -EINVAL;
    const struct pb_rect needed = pb_rect_grow(&in->core, chain->halo, in->image_w, in->image_h);
    if (!inside(&needed, &in->read) || out->plane_px < (size_t)in->core.w * (size_t)in->core.h)
        return -EINVAL;
    if (in->mask && in->mask_row_bytes < (size_t)in->read.w)
        return -EINVAL;
    for (size_t i = 0; i < chain->n_used; i++) {
        const size_t bytes = pb_type_bytes((enum pb_type)chain->inputs[i].type);
        const size_t strides = (uintptr_t)in->data | in->row_bytes | in->plane_bytes;

        if (strides % bytes != 0 || in->row_bytes < (size_t)in->read.w * bytes)
            return -EINVAL;
    }
    return 0;
}

void pb_chain_sweep(const struct pb_chain *chain, size_t stage, const struct pb_tile_in *in,
                    const struct pb_tile_out *out, float *scratch, struct pb_sweep *out_sweep)
{
    const struct pb_stage *const s = &chain->stages[stage];
    const bool last = stage + 1 == chain->n_stages;
    const struct pb_rect rect = pb_rect_grow(&in->core, s->margin, in->image_w, in->image_h);
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
                                   .plane_px = layout.plane_px};
}

void pb_chain_planes(const struct pb_chain *chain, const struct pb_stage_focal *focal,
                     const struct pb_tile_in *in, float *scratch, struct pb_plane *out_from,
                     struct pb_plane *out_to)
{
    struct pb_chain_layout layout;

    pb_chain_measure(chain, in->core.w, in->core.h, &layout);
    *out_from =
        (struct pb_plane){scratch + focal->from * layout.plane_px,
                          pb_rect_grow(&in->core, focal->from_margin, in->image_w, in->image_h)};
    *out_to =
        (struct pb_plane){scratch + focal->to * layout.plane_px,
                          pb_rect_grow(&in->core, focal->to_margin, in->image_w, in->image_h)};
}

int pb_chain_run_cpu(const struct pb_chain *chain, const struct pb_tile_in *in,
                     const struct pb_tile_out *out, void *scratch)
{
    struct pb_chain_layout layout;
    const int rc = pb_chain_check(chain, in, out);

    if (rc < 0)
        return rc;
    pb_chain_measure(chain, in->core.w, in->core.h, &layout);
    float *const planes = scratch;
    float *const temp = planes + layout.planes_px;
    void *const registers = temp + layout.temp_px;

    for (size_t k = 0; k < chain->n_stages; k++) {
        const struct pb_stage *const stage = &chain->stages[k];
        struct pb_sweep sweep;

        pb_chain_sweep(chain, k, in, out, planes, &sweep);
        if (sweep.n_code)
            pb_program_run_cpu(&sweep, registers);
        for (size_t i = 0; i < stage->n_focals; i++) {
            struct pb_plane from, to;

            pb_chain_planes(chain, &stage->focals[i], in, planes, &from, &to);
            pb_focal_run_cpu(&stage->focals[i].focal, &from, &to, in->image_w, in->image_h, temp);
        }
    }
    return 0;
}
