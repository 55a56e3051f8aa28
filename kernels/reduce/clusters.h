/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLUSTERS_H
#define PB_CLUSTERS_H
/* The sums of a round of k-means: of every class, the number of its pixels and the exact sum of
 * each band. Sums are integers of a fixed scale, so order and split change nothing, and the means
 * are the same to the last bit. Plain memory of the caller without pointers; one thread an object.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_CLUSTERS_MAX       16 /* classes */
#define PB_CLUSTERS_BANDS_MAX 16

struct pb_clusters_shape {
    uint32_t classes, bands;
    uint32_t rounds; /* at most, as the caller means to ask for them */
    uint32_t sorted; /* 1: classes in ascending order of their centres; else 0 */
};

/* Results: the centre of class c in band b is result b * classes + c; then the pixels of each
 * class, the rounds that were run, and 1 when the centres have come to rest, else 0. */
static inline uint32_t pb_clusters_centres(const struct pb_clusters_shape *shape)
{
    return shape->classes * shape->bands;
}
static inline uint32_t pb_clusters_results(const struct pb_clusters_shape *shape)
{
    return pb_clusters_centres(shape) + shape->classes + 2;
}

struct pb_clusters;

size_t pb_clusters_bytes(const struct pb_clusters_shape *shape);
/* centres: of the first round, in the order of results. */
void pb_clusters_begin(struct pb_clusters *clusters, const struct pb_clusters_shape *shape,
                       const float *centres);
/* Takes n pixels: planes[0] is the class, 1 .. classes (other values are left out),
 * and planes[1 + b] band b, which is finite where there is a class. */
void pb_clusters_add(struct pb_clusters *clusters, const float *const *planes, size_t n);
/* The same from sums of parts (kernels/reduce/cluster_sums.h): of each, so many words at sums +
 * part * stride. */
void pb_clusters_add_sums(struct pb_clusters *clusters, const int32_t *sums, size_t stride,
                          size_t parts);
void pb_clusters_merge(struct pb_clusters *into, const struct pb_clusters *from);
/* After a round: the results of it, its own centres among them, and how many numbers of the next
 * round's centres are others; 0: they have come to rest. The mean of a class is its next centre,
 * exact and rounded to float32; a class without pixels keeps its centre. */
uint32_t pb_clusters_end(struct pb_clusters *clusters, double *out_results);
/* After that: the centres of the next round, in the order of results. */
const float *pb_clusters_next(const struct pb_clusters *ended);
/* Makes an object for the next round of `ended`, which may be the same. */
void pb_clusters_again(struct pb_clusters *clusters, const struct pb_clusters *ended);
#endif
