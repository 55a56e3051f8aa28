/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/painter.h"
#include "kernels/codec/paint_pixel.h"
#include "pipeline/paint/stretch.h"

#include <math.h>
#include <string.h>

static uint32_t colours_of(const struct pb_painter *painter)
{
    return painter->has_ramp ? 3 : painter->n_planes;
}

uint32_t pb_painter_channels(const struct pb_painter *painter)
{
    return colours_of(painter) + painter->alpha;
}

uint8_t pb_painter_level(const struct pb_painter *painter, uint32_t plane, double value)
{
    if (!painter->is_curved)
        return pb_stretch_shade(value, painter->low[plane], painter->high[plane]);
    return (uint8_t)(pb_stretch_share(&painter->curve[plane], value) * UINT8_MAX + 0.5);
}

void pb_painter_ramp(const struct pb_painter *painter, double value, uint8_t rgba[4])
{
    pb_ramp_colour(
        painter->ramp,
        painter->is_curved && isfinite(value) ? pb_stretch_share(&painter->curve[0], value) : value,
        rgba);
}

/* Returns false if the pixel is not shown. */
static bool colour(const struct pb_painter *painter, const float *const *planes, size_t pixel,
                   uint8_t rgba[4])
{
    if (painter->has_ramp) {
        pb_painter_ramp(painter, (double)planes[0][pixel], rgba);
        return rgba[3] != 0;
    }
    if (!pb_stretch_is_shown(planes, painter->n_planes, painter->any, pixel))
        return false;
    for (uint32_t p = 0; p < painter->n_planes; p++) {
        const double value = (double)planes[p][pixel];
        const double shown = isfinite(value) ? value : painter->fill;
        rgba[p] = isfinite(shown) ? pb_painter_level(painter, p, shown) : 0;
    }
    rgba[3] = UINT8_MAX;
    return true;
}

/* Blends the colours with a brightness. Returns false if it is unknown, and the pixel is not
 * shown. */
static bool shade(const struct pb_painter *painter, const float *const *planes, size_t pixel,
                  uint8_t rgba[4])
{
    const float brightness = planes[painter->n_planes][pixel];
    for (uint32_t i = 0; i < PB_PAINTER_PLANES_MAX && isfinite(brightness); i++)
        rgba[i] = pb_paint_blend(rgba[i], brightness, painter->blend == PB_BLEND_OVERLAY);
    return isfinite(brightness);
}

void pb_painter_row(const struct pb_painter *painter, const float *const *planes, size_t first,
                    size_t n, uint8_t *out)
{
    uint32_t colours = colours_of(painter);
    uint8_t unseen = painter->alpha || !painter->has_nodata ? 0 : painter->nodata;
    bool move = !painter->alpha && painter->has_nodata;
    for (size_t i = 0; i < n; i++) {
        uint8_t rgba[4] = {0, 0, 0, 0};
        bool seen = colour(painter, planes, first + i, rgba) &&
                    (!painter->has_shade || shade(painter, planes, first + i, rgba));
        for (uint32_t c = 0; c < colours; c++)
            *out++ = !seen ? unseen : move ? pb_paint_apart(rgba[c], painter->nodata) : rgba[c];
        if (painter->alpha)
            *out++ = seen ? rgba[3] : 0;
    }
}
