/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAINT_PIXEL_H
#define PB_PAINT_PIXEL_H
/* Colours of a picture's pixels, as a device paints them. All float32 values are cut into steps,
 * each with one colour, which the host finds by its own painter (pipeline/paint/paint_steps.h):
 * a device only compares, and ramps, ranges and gamma are the host's to the last bit. The functions
 * on colours are shared with the host's painter. Plain data, C11 and C++17. */
#include "kernels/pixel.h"

/* Values from `from` on, up to the next step, have this colour; of levels, the first byte. */
struct pb_paint_step {
    float from;
    uint8_t rgba[4];
};

#define PB_PAINT_STEPS_MAX  65536
#define PB_PAINT_PLANES_MAX 3

struct pb_paint {
    uint32_t n_planes; /* planes of values, 1 or 3; 0: pixels are not painted */
    uint32_t n_steps;  /* 1 .. PB_PAINT_STEPS_MAX; the first step has the least value */
    bool has_ramp;     /* steps are colours of one plane; false: levels of each plane */
    bool has_shade;    /* one more plane has a brightness of 0 to 255, ... */
    bool overlays;     /* ... blended by overlay; false: by multiplication */
    bool any;          /* true: pixels are shown where one plane is finite; false: where all are */
    bool alpha;        /* a last channel: 255 or the ramp's, 0 where the pixel is not shown */
    bool has_nodata;   /* without alpha: value of pixels that are not shown */
    uint8_t nodata;
    uint8_t fill;       /* level of a plane that is not finite in a pixel that is shown */
    uint8_t invalid[4]; /* ramp: colour of values that are not finite */
};

/* Count of the planes that are read. */
PB_PIXEL uint32_t pb_paint_planes(const struct pb_paint *paint)
{
    return paint->n_planes + (paint->has_shade ? 1 : 0);
}

PB_PIXEL uint32_t pb_paint_colours(const struct pb_paint *paint)
{
    return paint->has_ramp || paint->n_planes > 1 ? 3 : 1;
}

/* Bytes of a pixel. */
PB_PIXEL uint32_t pb_paint_channels(const struct pb_paint *paint)
{
    return pb_paint_colours(paint) + (paint->alpha ? 1 : 0);
}

/* Replaces a valid level that equals nodata by the next one. */
PB_PIXEL uint8_t pb_paint_apart(uint8_t level, uint8_t nodata)
{
    if (level != nodata)
        return level;
    return (uint8_t)(nodata < UINT8_MAX ? nodata + 1 : nodata - 1);
}

/* Blends a level with a finite brightness. */
PB_PIXEL uint8_t pb_paint_blend(uint8_t level, float shade, bool overlays)
{
    const double brightness = (double)shade / UINT8_MAX;
    const double s = brightness < 0 ? 0 : brightness > 1 ? 1 : brightness;
    const double c = (double)level / UINT8_MAX;
    const double blended = !overlays ? c * s : c < 0.5 ? 2 * c * s : 1 - 2 * (1 - c) * (1 - s);
    return (uint8_t)(blended * UINT8_MAX + 0.5);
}

/* Colour of a finite value. */
PB_PIXEL const uint8_t *pb_paint_find(const struct pb_paint *paint,
                                      const struct pb_paint_step *step, float value)
{
    uint32_t low = 0, high = paint->n_steps;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (step[middle].from <= value)
            low = middle;
        else
            high = middle;
    }
    return step[low].rgba;
}

/* Colours of a pixel before the shade. Returns false if it is not shown. */
PB_PIXEL bool pb_paint_colour(const struct pb_paint *paint, const struct pb_paint_step *step,
                              const float *value, uint8_t *rgba)
{
    bool one = false, all = true;
    for (uint32_t p = 0; p < paint->n_planes; p++) {
        const bool is_finite = fabsf(value[p]) <= FLT_MAX;
        one = one || is_finite;
        all = all && is_finite;
        if (paint->has_ramp)
            memcpy(rgba, is_finite ? pb_paint_find(paint, step, value[p]) : paint->invalid, 4);
        else
            rgba[p] = is_finite ? pb_paint_find(paint, step, value[p])[0] : paint->fill;
    }
    if (paint->has_ramp)
        return rgba[3] != 0;
    rgba[3] = UINT8_MAX;
    return paint->any ? one : all;
}

/* Paints a pixel; value: pb_paint_planes() of them; out: 4 bytes, of which pb_paint_channels() are
 * used. */
PB_PIXEL void pb_paint_pixel(const struct pb_paint *paint, const struct pb_paint_step *step,
                             const float *value, uint8_t *out)
{
    const uint32_t colours = pb_paint_colours(paint);
    const bool moves = !paint->alpha && paint->has_nodata;
    uint8_t rgba[4] = {0, 0, 0, 0};
    bool seen = pb_paint_colour(paint, step, value, rgba);
    if (paint->has_shade && !(fabsf(value[paint->n_planes]) <= FLT_MAX))
        seen = false;
    for (uint32_t c = 0; c < colours; c++) {
        const uint8_t level = paint->has_shade && seen
                                  ? pb_paint_blend(rgba[c], value[paint->n_planes], paint->overlays)
                                  : rgba[c];
        out[c] = !seen   ? (uint8_t)(moves ? paint->nodata : 0)
                 : moves ? pb_paint_apart(level, paint->nodata)
                         : level;
    }
    if (paint->alpha)
        out[colours] = seen ? rgba[3] : 0;
}
#endif
