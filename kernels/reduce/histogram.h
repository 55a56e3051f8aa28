/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HISTOGRAM_H
#define PB_HISTOGRAM_H
/* A histogram in one pass over values whose range nobody knows beforehand, exact and independent of
 * the order. Bin i holds the values v with floor(v / 2^e) == i: edges are exact, and raising e by k
 * merges 2^k neighbours without touching a value again. e is always the smallest one for which
 * everything seen so far fits into PB_HISTOGRAM_BINS bins, a function of the smallest and the
 * largest value alone; so the state depends on the set of values and on nothing else.
 *
 * A part counts the values of one tile on one thread (its range is known from a first sweep over
 * the tile), a histogram collects parts; the caller locks the histogram. Both are plain memory of
 * the caller, allocate nothing and hold no pointers. */
#include "kernels/reduce/histogram_pixel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: nothing seen. */
struct pb_histogram {
    bool used; /* false: nothing seen, min and max mean nothing */
    float min, max;
    int e;
    int side;                           /* which of the two tables is current */
    uint64_t bin[2][PB_HISTOGRAM_BINS]; /* the other one is all zero: room for re-binning */
};

struct pb_histogram_part {
    float min, max;
    int e;
    uint32_t lane[2][PB_HISTOGRAM_BINS + 1]; /* neighbouring pixels count in different tables: equal
                                                values do not wait for each other; the last slot
                                                takes the invalid ones */
};

/* Starts a part for at most 2^32 - 1 values, the smallest of which is min and the largest max, both
 * finite. The lanes must be zero:
 * once by the caller, afterwards pb_histogram_merge leaves them so. */
void pb_histogram_part_begin(struct pb_histogram_part *part, float min, float max);
/* Counts n values; those that are not finite are left out. */
void pb_histogram_part_add(struct pb_histogram_part *part, const float *value, size_t n);
/* Takes the part's counts over and clears it. */
void pb_histogram_merge(struct pb_histogram *histogram, struct pb_histogram_part *part);

/* For tests and for readers of the state: exponent of the bin width for a range, and the bin of a
 * value. */
int pb_histogram_exponent(float min, float max);
int64_t pb_histogram_bin_of(float value, int e);

/* Folds into 1 .. max_buckets equal buckets, each of 2^k bins, the first beginning at the bin of
 * the smallest value. bucket holds max_buckets counts. Returns how many are in use; 0 when nothing
 * was seen. */
uint32_t pb_histogram_fold(const struct pb_histogram *histogram, uint32_t max_buckets,
                           uint64_t *bucket, double *out_min, double *out_max);
#endif
