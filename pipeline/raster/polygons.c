/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/raster/polygons.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Shift to the right and up, because a centre on a right or upper edge is inside and one on a
 * left edge is not; smaller upwards, because a sloping edge counts as a left or right one. */
#define RIGHT_PX 5e-8
#define UP_PX    5e-9

void pb_polygons_free(struct pb_polygons *polygons)
{
    if (polygons == NULL)
        return;
    free(polygons->xy);
    free(polygons->memory);
    free(polygons);
}

void pb_polygons_drop_vertices(struct pb_polygons *polygons)
{
    free(polygons->xy);
    polygons->xy = NULL;
}

uint64_t pb_polygons_bytes(const struct pb_polygons *polygons)
{
    return sizeof *polygons + polygons->memory_bytes +
           (polygons->xy != NULL ? polygons->n_vertices * sizeof *polygons->xy : 0);
}

int pb_polygons_to_pixels(struct pb_polygons *polygons, const double t[6])
{
    const double det = t[1] * t[5] - t[2] * t[4];
    const double right = polygons->moved ? RIGHT_PX : 0, up = polygons->moved ? UP_PX : 0;
    if (!isfinite(det) || det == 0)
        return -EINVAL;
    for (size_t i = 0; i < polygons->n_vertices; i++) {
        double *v = polygons->xy[i], x = v[0] - t[0], y = v[1] - t[3];
        v[0] = t[2] == 0 && t[4] == 0 ? x / t[1] : (x * t[5] - y * t[2]) / det;
        v[1] = t[2] == 0 && t[4] == 0 ? y / t[5] : (y * t[1] - x * t[4]) / det;
        v[0] += right;
        v[1] -= up;
    }
    return 0;
}

/* The columns of a ring. */
struct columns {
    double first, end;
};

static int by_first(const void *a, const void *b)
{
    const struct columns *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

int pb_polygons_gap(const struct pb_polygons *polygons, int32_t columns)
{
    struct columns *list = calloc(polygons->n_rings + 1, sizeof *list);
    double end = 1;
    if (list == NULL)
        return -ENOMEM;
    for (size_t r = 0; r < polygons->n_rings; r++) {
        const struct pb_ring *ring = &polygons->ring[r];
        struct columns own = {INFINITY, -INFINITY};
        for (size_t i = ring->first; i < ring->first + ring->n; i++) {
            own.first = fmin(own.first, polygons->xy[i][0]);
            own.end = fmax(own.end, polygons->xy[i][0]);
        }
        list[r] = own;
    }
    qsort(list, polygons->n_rings, sizeof *list, by_first);
    bool is_gap = false;
    for (size_t r = 0; r < polygons->n_rings && list[r].first < columns; r++) {
        is_gap |= r > 0 && list[r].first > end + 1;
        end = fmax(end, list[r].end);
    }
    is_gap &= polygons->n_rings > 0 && list[0].first < 1 && end > columns - 1;
    free(list);
    return is_gap;
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
