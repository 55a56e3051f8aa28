/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Units on one axis are 1 / target pixels of level 0: source pixel i covers [i 2^level target,
 * min((i + 1) 2^level, image) target), target pixel t covers [t image, (t + 1) image). All
 * values are below 2^62. */
#include "pipeline/product/quicklook/shrink.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SAME_SIZE_PX ((size_t)1 << 29)

void pb_shrink_fit(int32_t image_w, int32_t image_h, int32_t long_px, int32_t *out_w,
                   int32_t *out_h)
{
    int64_t longer = image_w > image_h ? image_w : image_h;
    int64_t side = longer < long_px ? longer : long_px;
    int64_t w = (2 * (int64_t)image_w * side + longer) / (2 * longer);
    int64_t h = (2 * (int64_t)image_h * side + longer) / (2 * longer);
    *out_w = w > 0 ? (int32_t)w : 1;
    *out_h = h > 0 ? (int32_t)h : 1;
}

/* One axis of a target pixel: range of source pixels that it covers. */
struct span {
    int64_t first, last;
    int64_t begin, end; /* range of the target pixel */
    int64_t step;       /* source pixel, in the same units */
    int64_t limit;      /* end of the image */
};

static struct span span_of(int64_t t, int64_t target, int64_t image, int32_t level)
{
    struct span span = {
        .begin = t * image,
        .end = (t + 1) * image,
        .step = (INT64_C(1) << level) * target,
        .limit = image * target,
    };
    span.first = span.begin / span.step;
    span.last = (span.end - 1) / span.step;
    return span;
}

static double overlap(const struct span *span, int64_t i)
{
    int64_t from = i * span->step, to = from + span->step;
    if (to > span->limit)
        to = span->limit;
    if (from < span->begin)
        from = span->begin;
    if (to > span->end)
        to = span->end;
    return (double)(to - from);
}

/* Returns true if every source pixel is a target pixel, as for a scene smaller than its
 * quicklook. The average of one value is that value: a weight below 2^29 times a float is exact
 * in a double. */
static bool is_same_size(const struct pb_shrink *how)
{
    return how->level == 0 && how->target_w == how->image_w && how->target_h == how->image_h;
}

void pb_shrink_area(const struct pb_shrink *how, const float *source, float *target)
{
    size_t n_px = (size_t)how->target_w * (size_t)how->target_h;
    if (is_same_size(how) && n_px < SAME_SIZE_PX) {
        for (size_t i = 0; i < n_px; i++)
            target[i] = isfinite(source[i]) ? source[i] : NAN;
        return;
    }
    for (int32_t ty = 0; ty < how->target_h; ty++) {
        struct span rows = span_of(ty, how->target_h, how->image_h, how->level);
        for (int32_t tx = 0; tx < how->target_w; tx++) {
            struct span cols = span_of(tx, how->target_w, how->image_w, how->level);
            double sum = 0, weight = 0;
            for (int64_t y = rows.first; y <= rows.last; y++) {
                double row_weight = overlap(&rows, y);
                const float *row = source + y * how->source_w;
                for (int64_t x = cols.first; x <= cols.last; x++) {
                    if (!isfinite(row[x]))
                        continue;
                    double w = row_weight * overlap(&cols, x);
                    sum += w * (double)row[x];
                    weight += w;
                }
            }
            *target++ = weight > 0 ? (float)(sum / weight) : NAN;
        }
    }
}

/* Source pixel at the target pixel's middle. The span's units are integers, but its middle may
 * be half a unit. */
static int64_t middle_of(int64_t t, int64_t target, int64_t image, int32_t level)
{
    struct span span = span_of(t, target, image, level);
    return (span.begin + span.end) / 2 / span.step;
}

void pb_shrink_nearest(const struct pb_shrink *how, const float *source, float *target)
{
    for (int32_t ty = 0; ty < how->target_h; ty++) {
        int64_t y = middle_of(ty, how->target_h, how->image_h, how->level);
        for (int32_t tx = 0; tx < how->target_w; tx++) {
            int64_t x = middle_of(tx, how->target_w, how->image_w, how->level);
            *target++ = source[y * how->source_w + x];
        }
    }
}
