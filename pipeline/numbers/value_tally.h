/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VALUE_TALLY_H
#define PB_VALUE_TALLY_H
/* Count of each value of some bands, updated while tiles arrive, and the percentiles of the
 * values: exact for a band with at most 2^18 different values (each band of 16 bits or fewer,
 * scaled or not), else of values rounded to as many bits of the mantissa as let them fit
 * (kernels/reduce/value_counts.h), with the greatest error of that rounding. The result depends
 * on neither tiles nor threads. Pure memory. Thread: pb_value_tally_add is called by worker <
 * workers, each number on one thread at a time; the others by one thread, when no worker runs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Different values of a band that are counted exactly: 2^18. */
#define PB_VALUE_TALLY_VALUES (1 << 18)

struct pb_value_part;
struct pb_value_tally;

uint64_t pb_value_tally_bytes(uint32_t bands, uint32_t workers);
/* Returns NULL if out of memory. */
struct pb_value_tally *pb_value_tally_create(uint32_t bands, uint32_t workers);
void pb_value_tally_destroy(struct pb_value_tally *tally);
/* Adds n values of a band; values that are not finite are ignored. Allocates nothing. */
void pb_value_tally_add(struct pb_value_tally *tally, uint32_t worker, uint32_t band,
                        const float *value, size_t n);
/* Takes a part of what a device has counted for a band, instead of values; false: it is malformed.
 * Thread: any. */
bool pb_value_tally_take(struct pb_value_tally *tally, uint32_t band,
                         const struct pb_value_part *part);
/* Call after the last value, before pb_value_tally_percentile. */
void pb_value_tally_end(struct pb_value_tally *tally);
/* Percentile p, 0 .. 100, of a band, with linear interpolation between the two nearest ranks
 * like numpy's default; *out_error: its greatest possible error. Both NaN without a value. */
double pb_value_tally_percentile(const struct pb_value_tally *tally, uint32_t band, double p,
                                 double *out_error);
#endif
