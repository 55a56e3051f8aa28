/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/polygons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void pb_polygons_free(struct pb_polygons *polygons)
{
    if (polygons == NULL)
        return;
    free(polygons->memory);
    free(polygons);
}

int pb_polygons_to_pixels(struct pb_polygons *polygons, const double t[6])
{
    const double det = t[1] * t[5] - t[2] * t[4];
    if (!isfinite(det) || det == 0)
        return -EINVAL;
    for (size_t i = 0; i < polygons->n_vertices; i++) {
        double *v = polygons->xy[i], x = v[0] - t[0], y = v[1] - t[3];
        v[0] = t[2] == 0 && t[4] == 0 ? x / t[1] : (x * t[5] - y * t[2]) / det;
        v[1] = t[2] == 0 && t[4] == 0 ? y / t[5] : (y * t[1] - x * t[4]) / det;
    }
    return 0;
}

bool pb_polygons_bounds(const struct pb_polygons *polygons, double out[4])
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < polygons->n_vertices; i++)
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], polygons->xy[i][k]);
            high[k] = fmax(high[k], polygons->xy[i][k]);
        }
    for (int k = 0; k < 2; k++) {
        out[k] = low[k];
        out[2 + k] = high[k];
    }
    return polygons->n_vertices > 0;
}

void pb_polygons_left_out(const struct pb_polygons *polygons, const char *path, char *text,
                          size_t bytes)
{
    text[0] = '\0';
    if (polygons->n_left_out > 0)
        (void)snprintf(text, bytes,
                       "%zu feature%s of %.100s left out: %s no polygon (the first: feature %lld)",
                       polygons->n_left_out, polygons->n_left_out == 1 ? "" : "s", path,
                       polygons->n_left_out == 1 ? "it is" : "they are",
                       (long long)polygons->first_left_out);
}
