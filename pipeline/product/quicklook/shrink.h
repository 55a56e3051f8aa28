/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SHRINK_H
#define PB_SHRINK_H
/* Area average of a level of a pyramid down to an exact size. Every target pixel is the mean of
 * the valid source pixels it covers, weighted by the area of the overlap; it is invalid (NaN) if
 * it covers none. Weights are exact integers and the order of additions is fixed, therefore the
 * result is reproducible. */
#include <stdint.h>

struct pb_shrink {
    int32_t image_w, image_h;   /* area of source and target, in pixels of level 0 */
    int32_t level;              /* source pixel = 2^level pixels of level 0, clipped to the image */
    int32_t source_w, source_h; /* ceil(image / 2^level) */
    int32_t target_w, target_h; /* >= 1 */
};

/* Size with the longer side at most long_px (never enlarged), aspect kept, rounded, at least 1. */
void pb_shrink_fit(int32_t image_w, int32_t image_h, int32_t long_px, int32_t *out_w,
                   int32_t *out_h);
/* One plane, rows tightly packed, invalid = NaN. */
void pb_shrink_area(const struct pb_shrink *how, const float *source, float *target);
/* The same by nearest neighbour: each value is that of the source pixel that contains the middle
 * of the target pixel. */
void pb_shrink_nearest(const struct pb_shrink *how, const float *source, float *target);
#endif
