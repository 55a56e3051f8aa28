/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REDUCE_H
#define PB_REDUCE_H
/* Reductions: numbers that a whole image is reduced to, known when all its pixels have been added.
 * A state takes planes in any order, states merge in any order, and the results are the same to the
 * last bit. Pixels that are not finite are left out, so a mask is a plane that is NaN elsewhere.
 *
 * A loop is a reduction whose planes are made with numbers that it finds itself: those of the first
 * round are given, those of another one come of the round before. It may end after any round; when
 * they have come to rest another one changes nothing.
 *
 * States are plain memory of the caller without pointers; one thread a state. */
#include "kernels/reduce/clusters.h"
#include "kernels/reduce/components.h"
#include "kernels/reduce/percentiles.h"
#include "kernels/reduce/threshold.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_REDUCE_INPUTS_MAX (1 + PB_CLUSTERS_BANDS_MAX)
/* Those of PB_REDUCE_CLUSTERS. */
#define PB_REDUCE_NUMBERS_MAX (PB_CLUSTERS_MAX * PB_CLUSTERS_BANDS_MAX)
/* Those of PB_REDUCE_COMPONENTS; PB_REDUCE_CLUSTERS has fewer. */
#define PB_REDUCE_RESULTS_MAX PB_COMPONENTS_RESULTS_MAX

enum pb_reduce_kind {
#define PB_REDUCE(name) PB_REDUCE_##name,
#include "kernels/reduce/reduce.def"
#undef PB_REDUCE
    PB_REDUCE_COUNT
};

/* Results of PB_REDUCE_MOMENTS. Those of PB_REDUCE_PERCENTILES: result i is percentile p[i]; of
 * PB_REDUCE_THRESHOLD, PB_REDUCE_COMPONENTS and PB_REDUCE_CLUSTERS, a loop: in their headers. */
enum { PB_MOMENTS_MEAN, PB_MOMENTS_STDDEV, PB_MOMENTS_MINIMUM, PB_MOMENTS_MAXIMUM, PB_MOMENTS_N };

/* Which reduction. Equal ones are equal bytes: zero it before. */
struct pb_reduce {
    int32_t kind;
    uint32_t n;         /* results */
    uint32_t n_inputs;  /* planes */
    uint32_t n_numbers; /* of a loop: that a round is made with; 0 = no loop */
    double p[PB_PERCENTILES_MAX];
    struct pb_clusters_shape clusters;
    struct pb_components_shape components;
};

struct pb_reduce pb_reduce_moments(void);
struct pb_reduce pb_reduce_percentiles(const double *p, uint32_t n);
struct pb_reduce pb_reduce_threshold(void);
struct pb_reduce pb_reduce_clusters(const struct pb_clusters_shape *shape);
struct pb_reduce pb_reduce_components(const struct pb_components_shape *shape);
/* Whether a result says how far values are apart: 0 for an image of one value. Others are that
 * value then. */
bool pb_reduce_is_spread(const struct pb_reduce *reduce, uint32_t k);
/* "mean", "percentile 2": what result k is called. */
void pb_reduce_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes);

/* Bytes of a state for values of these samples; 8-byte aligned. */
size_t pb_reduce_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples);
/* Number of rounds, in each of which all pixels are added; fewer when no pixel is valid or a loop
 * comes to rest. */
int pb_reduce_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples);
/* samples: what is known of the values; n == 0 when nothing is. numbers: n_numbers, of a loop's
 * first round. */
void pb_reduce_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                     const float *numbers, void *state);
/* n_inputs planes of w x h pixels, rows tightly packed; the first column is a multiple of 64 of the
 * image. */
void pb_reduce_add(const struct pb_reduce *reduce, void *state, const float *const *planes,
                   int32_t w, int32_t h);
/* Whether a device can sum up the planes of a part itself; then the same is done by sums of parts,
 * as pb_clusters_add_sums has them. */
bool pb_reduce_has_sums(const struct pb_reduce *reduce);
void pb_reduce_add_sums(const struct pb_reduce *reduce, void *state, const int32_t *sums,
                        size_t stride, size_t parts);
void pb_reduce_merge(const struct pb_reduce *reduce, void *into, const void *from);
/* After a round. 0: the n results, NaN when no pixel was valid. Else another round is needed; of a
 * loop it is how many of its numbers are others in that, and the results of this round are there as
 * well. */
uint32_t pb_reduce_end(const struct pb_reduce *reduce, void *state, double *out_results);
/* Of a loop whose round has ended: the n_numbers numbers of the next one. */
const float *pb_reduce_next(const struct pb_reduce *reduce, const void *state);
/* Makes a state for the next round of `ended`; that itself last. */
void pb_reduce_again(const struct pb_reduce *reduce, void *state, const void *ended);
#endif
