/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_THRESHOLD_H
#define PB_THRESHOLD_H
/* Otsu's threshold: the one that parts values into two classes with the greatest variance between
 * them, from the counts of all values. Values that are known to be samples of a 16-bit band are
 * counted by sample, in one round. Of others a first round finds the least and the greatest, a
 * second one counts them in at most 65536 bins of a width that is a power of two. Order and split
 * change nothing. Plain memory of the caller without pointers; one thread an object. */
#include "kernels/reduce/samples.h"

#include <stddef.h>

/* Results. Values up to the threshold are class 0, those above it class 1. The width of the bins is
 * 0 when values were counted by sample. */
enum {
    PB_THRESHOLD_VALUE,
    PB_THRESHOLD_BELOW, /* values of class 0 */
    PB_THRESHOLD_ABOVE,
    PB_THRESHOLD_WIDTH,
    PB_THRESHOLD_N
};

#define PB_THRESHOLD_COUNTS 65536

struct pb_threshold;

size_t pb_threshold_bytes(const struct pb_samples *samples);
void pb_threshold_begin(struct pb_threshold *threshold, const struct pb_samples *samples);
/* Values that are not finite are left out. */
void pb_threshold_add(struct pb_threshold *threshold, const float *value, size_t n);
void pb_threshold_merge(struct pb_threshold *into, const struct pb_threshold *from);
/* After a round. True: the results. The threshold is the greatest value that a sample or bin of
 * class 0 can have: the greatest of all when they are equal, NaN when there was none. False:
 * another round is needed. */
bool pb_threshold_end(struct pb_threshold *threshold, double *out_results);
/* When it has ended: the values that samples or bins of it have, in ascending order, each with its
 * count; of a bin its greatest one. At most PB_THRESHOLD_COUNTS; returns how many. */
uint32_t pb_threshold_list(const struct pb_threshold *threshold, float *values, uint64_t *counts);
/* When it has ended: the width of its bins; 0: values were counted by sample. */
double pb_threshold_width(const struct pb_threshold *threshold);
/* Makes an object for the next round of `ended`, which may be the same. */
void pb_threshold_again(struct pb_threshold *threshold, const struct pb_threshold *ended);
/* Rounds that values of these samples take: 1 or 2. */
int pb_threshold_rounds(const struct pb_samples *samples);
#endif
