/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PAINTER_H
#define PB_PAINTER_H
/* Conversion of values to pixels of 8 bits, for pictures and for COGs: one plane becomes grey
 * or, by a ramp, red, green and blue; three planes become red, green and blue; each between the
 * two ends of its range, or by a curve. One more plane may have a brightness of 0 to 255, as
 * made by `hillshade`, with which the colours are blended. A pixel is shown where every plane
 * has a finite value, or any. Invalid pixels are transparent, or nodata. Immutable after
 * creation; any thread. */
#include "pipeline/paint/ramp.h"
#include "pipeline/paint/stretch.h"

#define PB_PAINTER_PLANES_MAX 3

/* Blend of a colour c and a brightness s, both as fractions. MULTIPLY: c * s. OVERLAY: 2 * c * s
 * below half, 1 - 2 * (1 - c) * (1 - s) above: bright pixels become brighter. */
enum pb_paint_blend { PB_BLEND_MULTIPLY, PB_BLEND_OVERLAY };

struct pb_painter {
    uint32_t n_planes;                  /* 1 or 3 */
    bool has_ramp;                      /* for one plane; false: grey */
    const struct pb_ramp_table *ramp;   /* the ramp, if pixels are painted; borrowed */
    double low[PB_PAINTER_PLANES_MAX];  /* value that becomes 0; not used with a ramp */
    double high[PB_PAINTER_PLANES_MAX]; /* value that becomes 255 */
    bool is_curved; /* values become levels, or fractions of a ramp from 0 to 1, by these curves: */
    struct pb_stretch_curve curve[PB_PAINTER_PLANES_MAX];
    bool has_shade; /* planes[n_planes] has the brightness */
    enum pb_paint_blend blend;
    bool any; /* true: pixels are shown where one of several planes has a finite value; others have
                 the level of `fill` there, 0 if that is NaN; false: where each has one */
    double fill;
    bool alpha; /* a last channel: 255, 0 where invalid, or from the ramp */
    /* Without alpha: every channel of invalid pixels is nodata, and a valid level that equals
     * nodata becomes the next one; with neither, invalid pixels are 0, like valid black ones. */
    bool has_nodata;
    uint8_t nodata;
};

/* Bytes of a pixel: 1 to 4. */
uint32_t pb_painter_channels(const struct pb_painter *painter);
/* Level of a finite value of a plane, without a ramp. */
uint8_t pb_painter_level(const struct pb_painter *painter, uint32_t plane, double value);
/* Colour of a value, with a ramp. */
void pb_painter_ramp(const struct pb_painter *painter, double value, uint8_t rgba[4]);
/* Paints pixels first .. first + n - 1 of the planes; out: n x channels. */
void pb_painter_row(const struct pb_painter *painter, const float *const *planes, size_t first,
                    size_t n, uint8_t *out);
#endif
