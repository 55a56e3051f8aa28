/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/paint/stretch.h"
#include "kernels/reduce/percentiles.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { MID_GREY = 128, CHUNK_PX = 1024, AT_ONCE = 8 };

static_assert(AT_ONCE <= PB_PERCENTILES_MAX, "of one object");

static const struct pb_samples unsampled = {.n = 0};

size_t pb_stretch_bytes(void)
{
    return pb_percentiles_bytes(AT_ONCE, &unsampled);
}

bool pb_stretch_is_shown(const float *const *planes, uint32_t n_planes, bool any, size_t pixel)
{
    for (uint32_t p = 0; p < n_planes; p++)
        if (!isfinite(planes[p][pixel]) != any)
            return any;
    return !any;
}

/* Adds the pixels of plane p that are shown. Returns their count. */
static uint64_t add_shown(const float *const *planes, uint32_t n_planes, uint32_t p, size_t n_px,
                          struct pb_percentiles *to)
{
    float chunk[CHUNK_PX];
    uint64_t shown = 0;
    for (size_t first = 0; first < n_px; first += CHUNK_PX) {
        size_t n = 0;
        for (size_t i = first; i < n_px && i < first + CHUNK_PX; i++)
            if (pb_stretch_is_shown(planes, n_planes, false, i))
                chunk[n++] = planes[p][i];
        pb_percentiles_add(to, chunk, n);
        shown += n;
    }
    return shown;
}

/* Finds n percentiles of a plane, 1 .. PB_PERCENTILES_MAX. Returns false if no pixel is shown. */
static bool find_percentiles(const float *const *planes, uint32_t n_planes, uint32_t p, size_t n_px,
                             const double *percentile, uint32_t n, struct pb_percentiles *state,
                             double *out)
{
    pb_percentiles_begin(state, percentile, n, &unsampled);
    if (add_shown(planes, n_planes, p, n_px, state) == 0)
        return false;
    while (!pb_percentiles_end(state, out))
        (void)add_shown(planes, n_planes, p, n_px, state);
    return true;
}

/* Computes mean and deviation in two passes over the shown pixels. Returns false without such
 * pixels. */
static bool find_deviations(const float *const *planes, uint32_t n_planes, uint32_t p, size_t n_px,
                            double deviations, double out[2])
{
    double sum = 0, squares = 0;
    uint64_t n = 0;
    for (size_t i = 0; i < n_px; i++)
        if (pb_stretch_is_shown(planes, n_planes, false, i)) {
            sum += (double)planes[p][i];
            n++;
        }
    const double mean = n > 0 ? sum / (double)n : 0;
    for (size_t i = 0; i < n_px; i++)
        if (pb_stretch_is_shown(planes, n_planes, false, i))
            squares += ((double)planes[p][i] - mean) * ((double)planes[p][i] - mean);
    const double width = n > 0 ? deviations * sqrt(squares / (double)n) : 0;
    out[0] = mean - width;
    out[1] = mean + width;
    return n > 0;
}

/* Finds the points of plane p; returns false if none of its pixels is shown. */
static bool find_points(const float *const *planes, uint32_t n_planes, uint32_t p, size_t n_px,
                        const struct pb_stretch_how *how, struct pb_percentiles *state,
                        struct pb_stretch_curve *out)
{
    static const double ends[2] = {0, 100};
    const double *two = how->method == PB_STRETCH_MINMAX ? ends : how->percentiles;
    const float *const *seen = how->any ? planes + p : planes; /* planes that have to be finite */
    const uint32_t n_seen = how->any ? 1 : n_planes, at = how->any ? 0 : p;
    const uint32_t n = how->method == PB_STRETCH_EQUALIZE ? PB_STRETCH_POINTS : 2;
    double found[PB_STRETCH_POINTS], percentile[PB_STRETCH_POINTS];
    bool any = true;
    for (uint32_t i = 0; i < n; i++)
        percentile[i] = n == 2 ? two[i] : 100.0 * i / (n - 1);
    if (how->method == PB_STRETCH_STDDEV)
        any = find_deviations(seen, n_seen, at, n_px, how->deviations, found);
    for (uint32_t i = 0; i < n && any && how->method != PB_STRETCH_STDDEV; i += AT_ONCE)
        any = find_percentiles(seen, n_seen, at, n_px, percentile + i,
                               n - i < AT_ONCE ? n - i : AT_ONCE, state, found + i);
    for (uint32_t i = 0; i < n && any; i++)
        out->at[i] = found[i];
    out->n = any ? n : out->n;
    return any;
}

int pb_stretch_find(const float *const *planes, uint32_t n_planes, size_t n_px,
                    const struct pb_stretch_how *how, struct pb_err *err,
                    struct pb_stretch_curve *out, bool *out_any)
{
    struct pb_percentiles *state = malloc(pb_stretch_bytes());
    uint32_t n_found = 0;
    if (state == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the stretch of a quicklook");
    for (uint32_t p = 0; p < n_planes && (how->any || n_found == p); p++)
        n_found += find_points(planes, n_planes, p, n_px, how, state, &out[p]);
    *out_any = n_found > 0 && (how->any || n_found == n_planes);
    free(state);
    return 0;
}

/* Position of value in the part from a to b; of a part without width, its middle. */
static double share_of(double value, double a, double b)
{
    if (a == b)
        return value < a ? 0 : value > a ? 1 : 0.5;
    const double t = (value - a) / (b - a);
    return t < 0 ? 0 : t > 1 ? 1 : t;
}

double pb_stretch_share(const struct pb_stretch_curve *curve, double value)
{
    double sum = 0;
    for (uint32_t i = 0; i + 1 < curve->n; i++)
        sum += share_of(value, curve->at[i], curve->at[i + 1]);
    const double share = sum / (curve->n - 1);
    return curve->gamma > 0 && curve->gamma != 1 ? pow(share, 1 / curve->gamma) : share;
}

uint8_t pb_stretch_shade(double value, double low, double high)
{
    if (!(high > low))
        return value < low ? 0 : value > high ? UINT8_MAX : MID_GREY;
    double t = (value - low) / (high - low);
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return (uint8_t)(t * UINT8_MAX + 0.5);
}
