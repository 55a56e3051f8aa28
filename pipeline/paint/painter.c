/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/painter.h"
#include "pipeline/paint/stretch.h"

#include <math.h>
#include <string.h>

static uint32_t colours_of(const struct pb_painter *painter)
{
    return painter->ramp != NULL ? 3 : painter->n_planes;
}

uint32_t pb_painter_channels(const struct pb_painter *painter)
{
    return colours_of(painter) + painter->alpha;
}

/* Replaces a valid level that equals nodata by the next one. */
static uint8_t apart(uint8_t level, uint8_t nodata)
{
    if (level != nodata)
        return level;
    return (uint8_t)(nodata < UINT8_MAX ? nodata + 1 : nodata - 1);
}

static uint8_t level_of(const struct pb_painter *painter, uint32_t plane, double value)
{
    if (!painter->is_curved)
        return pb_stretch_shade(value, painter->low[plane], painter->high[plane]);
    return (uint8_t)(pb_stretch_share(&painter->curve[plane], value) * UINT8_MAX + 0.5);
}

/* Returns false if the pixel is not shown. */
static bool colour(const struct pb_painter *painter, const float *const *planes, size_t pixel,
                   uint8_t rgba[4])
{
    if (painter->ramp != NULL) {
        const double value = (double)planes[0][pixel];
        pb_ramp_colour(painter->ramp,
                       painter->is_curved && isfinite(value)
                           ? pb_stretch_share(&painter->curve[0], value)
                           : value,
                       rgba);
        return rgba[3] != 0;
    }
    if (!pb_stretch_is_shown(planes, painter->n_planes, painter->any, pixel))
        return false;
    for (uint32_t p = 0; p < painter->n_planes; p++) {
        const double value = (double)planes[p][pixel];
        const double shown = isfinite(value) ? value : painter->fill;
        rgba[p] = isfinite(shown) ? level_of(painter, p, shown) : 0;
    }
    rgba[3] = UINT8_MAX;
    return true;
}

/* Blends the colours with a brightness. Returns false if it is unknown, and the pixel is not
 * shown. */
static bool shade(const struct pb_painter *painter, const float *const *planes, size_t pixel,
                  uint8_t rgba[4])
{
    const double brightness = (double)planes[painter->n_planes][pixel] / UINT8_MAX;
    if (!isfinite(brightness))
        return false;
    const double s = brightness < 0 ? 0 : brightness > 1 ? 1 : brightness;
    for (uint32_t i = 0; i < colours_of(painter); i++) {
        const double c = (double)rgba[i] / UINT8_MAX;
        const double blended = painter->blend == PB_BLEND_MULTIPLY ? c * s
                               : c < 0.5                           ? 2 * c * s
                                                                   : 1 - 2 * (1 - c) * (1 - s);
        rgba[i] = (uint8_t)(blended * UINT8_MAX + 0.5);
    }
    return true;
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
            *out++ = !seen ? unseen : move ? apart(rgba[c], painter->nodata) : rgba[c];
        if (painter->alpha)
            *out++ = seen ? rgba[3] : 0;
    }
}
