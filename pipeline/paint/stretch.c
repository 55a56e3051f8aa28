/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/stretch.h"
#include "kernels/reduce/percentiles.h"

#include <math.h>
#include <stdlib.h>

enum { MID_GREY = 128, CHUNK_PX = 1024 };

static const struct pb_samples any = {.n = 0};

size_t pb_stretch_bytes(void)
{
    return pb_percentiles_bytes(2, &any);
}

bool pb_stretch_is_shown(const float *const *planes, uint32_t n_planes, size_t pixel)
{
    for (uint32_t p = 0; p < n_planes; p++)
        if (!isfinite(planes[p][pixel]))
            return false;
    return true;
}

/* Adds the pixels of plane p that are shown. Returns how many. */
static uint64_t add_shown(const float *const *planes, uint32_t n_planes, uint32_t p, size_t n_px,
                          struct pb_percentiles *to)
{
    float chunk[CHUNK_PX];
    uint64_t shown = 0;
    for (size_t first = 0; first < n_px; first += CHUNK_PX) {
        size_t n = 0;
        for (size_t i = first; i < n_px && i < first + CHUNK_PX; i++)
            if (pb_stretch_is_shown(planes, n_planes, i))
                chunk[n++] = planes[p][i];
        pb_percentiles_add(to, chunk, n);
        shown += n;
    }
    return shown;
}

int pb_stretch_find(const float *const *planes, uint32_t n_planes, size_t n_px,
                    const double percentiles[2], struct pb_err *err, double *low, double *high,
                    bool *out_any)
{
    struct pb_percentiles *state = malloc(pb_stretch_bytes());
    if (state == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the stretch of a quicklook");
    *out_any = false;
    for (uint32_t p = 0; p < n_planes; p++) {
        double found[2];
        pb_percentiles_begin(state, percentiles, 2, &any);
        if (add_shown(planes, n_planes, p, n_px, state) == 0)
            break;
        *out_any = true;
        while (!pb_percentiles_end(state, found))
            (void)add_shown(planes, n_planes, p, n_px, state);
        low[p] = found[0];
        high[p] = found[1];
    }
    free(state);
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
