/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COUNTS_H
#define PB_COUNTS_H
/* How often each value of an image occurs, and the curve that gives the values of one image the
 * distribution of another. Values that are samples of 16 bits are counted one by one; of others
 * those of a bin (threshold.h) are counted as its greatest one. */
#include "kernels/reduce/threshold.h"

struct pb_counts {
    uint32_t n;      /* values that occur */
    float *value;    /* ascending */
    uint64_t *below; /* how many are no greater */
    double width;    /* of a bin; 0: values were counted one by one */
};

/* Of counted values; out: zeroed, or of another call. 0 or -ENOMEM. */
int pb_counts_of(const struct pb_threshold *counted, struct pb_counts *out);
void pb_counts_fini(struct pb_counts *counts);
/* Bytes of one, at most. */
size_t pb_counts_bytes(void);
/* Knots (kernels/vm/curve_pixel.h) that give `from` the distribution of `to`: each value becomes
 * the one below which there is the same share of `to`, with linear interpolation between the values
 * of `to`; those of a bin are taken as evenly spread over it. Returns how many, at most
 * PB_THRESHOLD_COUNTS; 0 where one of them has no value. */
uint32_t pb_counts_match(const struct pb_counts *from, const struct pb_counts *to, float *knots);
#endif
