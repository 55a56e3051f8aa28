/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPONENTS_H
#define PB_COMPONENTS_H
/* Principal components of up to 16 bands: means, covariances and what follows of them, the
 * eigenvalues and eigenvectors of the matrix. Sums and products of runs of 64 pixels that lie in
 * the same columns of the image whatever the tiles are made in double and added without rounding
 * (exact_sum.h), so that order and split change nothing. Products of float32 are exact in a double.
 * Plain memory of the caller without pointers; one thread an object. */
#include <stddef.h>
#include <stdint.h>

#define PB_COMPONENTS_MAX 16 /* bands, and as many components */

struct pb_components_shape {
    uint32_t bands;
    uint32_t correlation; /* 1: of the matrix of correlations; 0: of covariances */
};

/* Results. Of component c, from the greatest eigenvalue down: its eigenvalue, its share of the sum
 * of all, and its eigenvector, whose element of the greatest magnitude is positive. Of each band:
 * mean and standard deviation (n - 1). Then the number of pixels. */
enum { PB_COMPONENT_EIGENVALUE, PB_COMPONENT_SHARE, PB_COMPONENT_VECTOR };
static inline uint32_t pb_components_at(const struct pb_components_shape *shape, uint32_t c)
{
    return c * (PB_COMPONENT_VECTOR + shape->bands);
}
static inline uint32_t pb_components_of_band(const struct pb_components_shape *shape, uint32_t b)
{
    return pb_components_at(shape, shape->bands) + 2 * b;
}
static inline uint32_t pb_components_results(const struct pb_components_shape *shape)
{
    return pb_components_of_band(shape, shape->bands) + 1;
}
#define PB_COMPONENTS_RESULTS_MAX (PB_COMPONENTS_MAX * (PB_COMPONENTS_MAX + 4) + 1)

struct pb_components;

size_t pb_components_bytes(const struct pb_components_shape *shape);
void pb_components_begin(struct pb_components *components, const struct pb_components_shape *shape);
/* A plane of w x h pixels for each band, rows tightly packed; the first column is a multiple of 64
 * of the image. Pixels that are not finite in one of them are left out. */
void pb_components_add(struct pb_components *components, const float *const *planes, int32_t w,
                       int32_t h);
void pb_components_merge(struct pb_components *into, const struct pb_components *from);
/* All NaN but for the number of pixels when there was none. */
void pb_components_end(const struct pb_components *components, double *out_results);
#endif
