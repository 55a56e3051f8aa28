/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/block_copy.h"

#include "kernels/codec/mask_pixel.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/codec/unpredict.h"

#include <string.h>

static uint8_t byte_of(enum pb_type type, const void *samples, size_t i)
{
    switch (type) {
    case PB_U8:
        return ((const uint8_t *)samples)[i];
    case PB_I16:
        return pb_mask_of_integer(((const int16_t *)samples)[i]);
    case PB_U16:
        return pb_mask_of_integer(((const uint16_t *)samples)[i]);
    case PB_I32:
        return pb_mask_of_integer(((const int32_t *)samples)[i]);
    case PB_U32:
        return pb_mask_of_integer(((const uint32_t *)samples)[i]);
    case PB_F32:
        return pb_mask_of_float((double)((const float *)samples)[i]);
    default:
        return pb_mask_of_float(((const double *)samples)[i]);
    }
}

static bool wants_alpha(const struct pb_block_target *target, uint32_t plane)
{
    return target->to->mask != NULL && target->alpha_band > 0 &&
           (!target->layout->planar || (uint32_t)target->alpha_band == plane + 1);
}

static bool wants_band(const struct pb_block_target *target, uint32_t plane, size_t i)
{
    return !target->layout->planar || (uint32_t)target->bands[i] == plane + 1;
}

bool pb_block_wants_plane(const struct pb_block_target *target, uint32_t plane)
{
    if (target->to == NULL || wants_alpha(target, plane))
        return true;
    for (size_t i = 0; i < target->n_bands; i++) {
        if (wants_band(target, plane, i))
            return true;
    }
    return false;
}

static char *band_row(const struct pb_block_target *target, size_t i, int32_t x, int32_t y)
{
    const struct pb_window *to = target->to;
    return (char *)to->data + i * to->plane_bytes + (size_t)(y - target->rect->y) * to->row_bytes +
           (size_t)(x - target->rect->x) * target->sample_bytes;
}

static void make_mask(const struct pb_block_target *target, int32_t x, int32_t y, int32_t w,
                      const void *samples, size_t step)
{
    const struct pb_window *to = target->to;
    uint8_t *out =
        to->mask + (size_t)(y - target->rect->y) * to->mask_row_bytes + (x - target->rect->x);
    for (size_t i = 0; i < (size_t)w; i++)
        out[i] = byte_of(target->type, samples, i * step);
}

/* Byte offset of a band's sample in a pixel of a block. */
static size_t sample_at(const struct pb_block_target *target, int32_t band)
{
    return target->layout->planar ? 0 : (size_t)(band - 1) * (target->layout->bits / 8);
}

void pb_block_copy_row(const struct pb_block_target *target, uint32_t plane, int32_t x, int32_t y,
                       int32_t w, const unsigned char *pixels)
{
    size_t step = target->layout->planar ? 1 : (size_t)target->layout->bands;
    for (size_t i = 0; i < target->n_bands; i++) {
        if (!wants_band(target, plane, i))
            continue;
        const unsigned char *from = pixels + sample_at(target, target->bands[i]);
        char *out = band_row(target, i, x, y);
        if (target->complex != NULL)
            pb_complex_row(target->complex, from, step, (size_t)w, (float *)(void *)out);
        else
            pb_gather_samples(from, target->sample_bytes, step, (size_t)w, out);
    }
    if (wants_alpha(target, plane))
        make_mask(target, x, y, w, pixels + sample_at(target, target->alpha_band), step);
}

bool pb_block_is_by_band(const struct pb_block_target *target, uint32_t plane)
{
    return target->complex == NULL && !wants_alpha(target, plane) &&
           pb_block_layout_predictor(target->layout) != PB_PREDICTOR_FLOAT;
}

void pb_block_undo_row(const struct pb_block_target *target, uint32_t plane, int32_t x, int32_t y,
                       int32_t w, const unsigned char *pixels)
{
    const struct pb_block_layout *l = target->layout;
    const size_t step = l->planar ? 1 : (size_t)l->bands;
    for (size_t i = 0; i < target->n_bands; i++)
        if (wants_band(target, plane, i))
            pb_unpredict_band(pb_block_layout_predictor(l), target->sample_bytes,
                              pb_block_layout_swaps(l),
                              pixels + sample_at(target, target->bands[i]), step, (size_t)w,
                              band_row(target, i, x, y));
}

static void fill_row(const struct pb_block_target *target, uint32_t plane, int32_t x, int32_t y,
                     int32_t w)
{
    size_t bytes = target->sample_bytes;
    for (size_t i = 0; i < target->n_bands; i++) {
        char *out = band_row(target, i, x, y);
        for (size_t j = 0; wants_band(target, plane, i) && j < (size_t)w; j++)
            memcpy(out + j * bytes, target->fill->sample[target->bands[i] - 1], bytes);
    }
    if (wants_alpha(target, plane))
        make_mask(target, x, y, w, target->fill->sample[target->alpha_band - 1], 0);
}

void pb_block_fill_part(const struct pb_block_target *target, uint32_t plane,
                        const struct pb_rect *part)
{
    for (int32_t y = part->y; y < part->y + part->h; y++)
        fill_row(target, plane, part->x, y, part->w);
}
