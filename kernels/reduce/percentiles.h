/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PERCENTILES_H
#define PB_PERCENTILES_H
/* Exact percentiles of any number of float32 values, in memory that does not grow with them. Values
 * are ordered by a 32-bit key; a first round over all values counts the high 16 bits of their
 * keys, a second one the low 16 bits of those that share the high ones with a wanted rank. Values
 * that are known to be the samples of a 16-bit band are counted by sample, and one round is enough.
 * Counts add up, so the order of values and their split between threads change nothing. Plain
 * memory of the caller, without pointers; one thread an object. */
#include "kernels/reduce/samples.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_PERCENTILES_MAX 8

struct pb_percentiles;

/* Bytes of an object for n percentiles, 1 .. PB_PERCENTILES_MAX, of values of these samples. */
size_t pb_percentiles_bytes(uint32_t n, const struct pb_samples *samples);
/* For n percentiles, 0 .. 100 each. */
void pb_percentiles_begin(struct pb_percentiles *percentiles, const double *p, uint32_t n,
                          const struct pb_samples *samples);
/* Values that are not finite are left out. */
void pb_percentiles_add(struct pb_percentiles *percentiles, const float *value, size_t count);
/* Both in the same round. */
void pb_percentiles_merge(struct pb_percentiles *into, const struct pb_percentiles *from);
/* After a round over all values. True: the results, with linear interpolation between the two
 * nearest ranks as numpy does by default; NaN when there was no value. False: all values have to be
 * added once more, to this object or to others that pb_percentiles_again made. */
bool pb_percentiles_end(struct pb_percentiles *percentiles, double *out_results);
/* Makes an object for the next round of `ended`, which pb_percentiles_end has prepared; may be the
 * same. */
void pb_percentiles_again(struct pb_percentiles *percentiles, const struct pb_percentiles *ended);
/* Rounds that values of these samples take: 1 or 2. */
int pb_percentiles_rounds(const struct pb_samples *samples);
#endif
