/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Products whose blocks are made by the process that has the device: the formats of their blocks as
 * numbers. Only that process knows how many planes its tiles have: pb_plan_out checks the
 * rest. */
#include "pipeline/plan/plan_served.h"
#include "pipeline/plan/plan_out.h"

#include <math.h>

static void say(const struct pb_plan_made *made, struct pb_served_made *out)
{
    const struct pb_device_blocks *b = &made->blocks;
    const struct pb_encode_format *f = &b->format;
    *out = (struct pb_served_made){.product = made->product,
                                   .first_plane = made->first_plane,
                                   .n_planes = made->n_planes,
                                   .block_px = f->block_px,
                                   .type = (int32_t)f->quantizer.type,
                                   .predictor = f->predictor,
                                   .has_mask = b->has_mask,
                                   .nearest = b->nearest,
                                   .parts = b->parts,
                                   .top_only = b->top_only,
                                   .n_bands = f->n_bands,
                                   .with = (uint32_t)f->with,
                                   .mask_with = (uint32_t)b->mask_with,
                                   .levels = b->levels,
                                   .n_join = b->n_join,
                                   .any = b->any,
                                   .fill = (double)b->fill,
                                   .scale = f->scale,
                                   .offset = f->offset,
                                   .nodata = f->quantizer.nodata,
                                   .below = f->quantizer.below,
                                   .above = f->quantizer.above};
    for (uint32_t i = 0; i < f->n_bands; i++)
        out->plane[i] = f->plane[i];
}

void pb_served_say_out(const struct pb_plan_out *out, struct pb_served_out *said)
{
    said->n = out->n;
    said->size = out->size;
    said->host_planes = out->host_planes;
    for (uint32_t i = 0; i < out->n; i++)
        say(&out->made[i], &said->made[i]);
}

static bool is_sound(const struct pb_served_made *said)
{
    const int32_t px = said->block_px;
    bool planes = said->n_bands >= 1 && said->n_bands <= PB_BANDS_MAX && said->n_planes >= 1 &&
                  said->n_planes <= PB_BANDS_MAX && said->first_plane < PB_BANDS_MAX;
    for (uint32_t i = 0; planes && i < said->n_bands; i++)
        planes = said->plane[i] < said->n_planes;
    planes = planes && said->n_join <= said->n_bands;
    bool sized = px >= 16 && px <= 4096 && (px & (px - 1)) == 0;
    return planes && sized && said->type >= 0 && said->type < PB_TYPE_COUNT &&
           said->levels < PB_OUT_LEVELS && said->with <= PB_ENCODE_INTEGERS &&
           said->mask_with <= PB_ENCODE_INTEGERS;
}

static bool take(const struct pb_served_made *said, struct pb_plan_made *out)
{
    struct pb_encode_needs needs;
    if (!is_sound(said))
        return false;
    *out =
        (struct pb_plan_made){.product = said->product,
                              .first_plane = said->first_plane,
                              .n_planes = said->n_planes,
                              .blocks = {.format = {.block_px = said->block_px,
                                                    .n_bands = said->n_bands,
                                                    .scale = said->scale,
                                                    .offset = said->offset,
                                                    .quantizer = {.type = (enum pb_type)said->type,
                                                                  .nodata = said->nodata,
                                                                  .below = said->below,
                                                                  .above = said->above},
                                                    .predictor = said->predictor,
                                                    .with = (enum pb_encode_with)said->with},
                                         .has_mask = said->has_mask != 0,
                                         .mask_with = (enum pb_encode_with)said->mask_with,
                                         .levels = said->levels,
                                         .nearest = said->nearest != 0,
                                         .n_join = said->n_join,
                                         .any = said->any != 0,
                                         .fill = (float)said->fill,
                                         .top_only = said->top_only != 0}};
    for (uint32_t i = 0; i < said->n_bands; i++)
        out->blocks.format.plane[i] = (uint16_t)said->plane[i];
    out->blocks.parts = said->parts != 0;
    if (out->blocks.parts) /* no encoder is used */
        return !out->blocks.has_mask && out->blocks.levels == 0;
    for (uint32_t layer = 0; layer < (out->blocks.has_mask ? 2u : 1u); layer++) {
        const struct pb_encode_format format = pb_plan_out_format(out, layer);
        if (pb_encode_measure(&format, 1, &needs) != 0)
            return false;
    }
    return true;
}

bool pb_served_take_out(const struct pb_served_out *said, struct pb_plan_out *out)
{
    *out = (struct pb_plan_out){.n = said->n, .size = said->size, .host_planes = said->host_planes};
    bool good = said->n <= PB_OUT_MADE && said->size < PB_OUT_SIZES;
    for (uint32_t i = 0; good && i < said->n; i++)
        good = take(&said->made[i], &out->made[i]);
    return good;
}
