/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stretch.h"
#include "pipeline/product/shrink.h"

#include <math.h>
#include <stdlib.h>

enum { MID_GREY = 128 };

bool pb_stretch_is_shown(const float *const *planes, uint32_t n_planes, size_t pixel)
{
    for (uint32_t p = 0; p < n_planes; p++)
        if (!isfinite(planes[p][pixel]))
            return false;
    return true;
}

int pb_stretch_find(const float *const *planes, uint32_t n_planes, size_t n_px,
                    const double percentiles[2], struct pb_err *err, double *low, double *high,
                    bool *out_any)
{
    float *sorted = malloc(2 * n_px * sizeof *sorted); /* the second half is scratch */
    if (sorted == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the stretch of a quicklook");
    *out_any = false;
    for (uint32_t p = 0; p < n_planes; p++) {
        size_t shown = 0;
        for (size_t i = 0; i < n_px; i++)
            if (pb_stretch_is_shown(planes, n_planes, i))
                sorted[shown++] = planes[p][i];
        if (shown == 0)
            break;
        *out_any = true;
        pb_sort_floats(sorted, sorted + n_px, shown);
        low[p] = pb_percentile(sorted, shown, percentiles[0]);
        high[p] = pb_percentile(sorted, shown, percentiles[1]);
    }
    free(sorted);
    return 0;
}

uint8_t pb_stretch_shade(double value, double low, double high)
{
    if (!(high > low))
        return value < low ? 0 : value > high ? UINT8_MAX : MID_GREY;
    double t = (value - low) / (high - low);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return (uint8_t)(t * UINT8_MAX + 0.5);
}
