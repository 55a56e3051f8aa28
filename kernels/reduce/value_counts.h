/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_VALUE_COUNTS_H
#define PB_VALUE_COUNTS_H
/* How often each value occurs in each of many groups, in one pass and in memory that does not grow:
 * exact while there are at most `entries` pairs of a group and a value. When there are more, values
 * that differ in the lowest bit of their key alone become one, and so on: at level k the k lowest
 * bits of the 24 of a mantissa are left out, and what is found is wrong by less than 2^(k - 23) of
 * its amount. The level is the least at which everything fits, so it depends on the set of values
 * and not on their order, nor on how they were split. Keys order as values do. Plain memory of the
 * caller, without pointers; one thread an object. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_value_count {
    uint64_t group, n;
    uint32_t key;
};

struct pb_value_counts;
struct pb_value_part;

/* entries: a power of two, at least twice the groups: so many always fit. */
size_t pb_value_counts_bytes(uint32_t entries);
void pb_value_counts_begin(struct pb_value_counts *counts, uint32_t entries);
/* Takes n values; those that are not finite are left out, -0 is 0. Returns how many were taken:
 * fewer than n when the object is full, and then it is to be merged into another one and cleared.
 */
size_t pb_value_counts_add(struct pb_value_counts *counts, uint64_t group, const float *value,
                           size_t n);
/* Takes over what `from` has, raises the level where it does not fit, clears `from`, and hands its
 * level down. False: there are too many groups; `into` is undefined then. */
bool pb_value_counts_merge(struct pb_value_counts *into, struct pb_value_counts *from);
/* Takes a part of what a device has counted (value_table.h), into group 0; all parts of an object
 * have the same level. False: a malformed part, or too many entries. */
bool pb_value_counts_take_part(struct pb_value_counts *into, const struct pb_value_part *part);
/* Gives an object that has nothing the level of another one, so that it may be merged into that. */
void pb_value_counts_take_level(struct pb_value_counts *empty, const struct pb_value_counts *of);

/* 0: counts are of values. */
uint32_t pb_value_counts_level(const struct pb_value_counts *counts);
/* Orders the entries by group and value. The last call before those below. */
void pb_value_counts_sort(struct pb_value_counts *counts);
/* The entries of a group in the order of values; NULL and 0 = there is none. Borrowed. */
const struct pb_value_count *pb_value_counts_of(const struct pb_value_counts *counts,
                                                uint64_t group, size_t *out_n);

/* The value of a key of that level: at level 0 the value itself, else the middle of those that
 * share it; and by how much it may be wrong. */
double pb_value_of_key(uint32_t key, uint32_t level, double *out_error);
/* The percentile p, 0 .. 100, of n > 0 entries, with linear interpolation between the two nearest
 * ranks as numpy does by default; *io_error grows to what it may be wrong by. */
double pb_value_percentile(const struct pb_value_count *entry, size_t n, uint32_t level, double p,
                           double *io_error);
/* The most and the least frequent entry, of several the one of the least value. n > 0. */
const struct pb_value_count *pb_value_majority(const struct pb_value_count *entry, size_t n);
const struct pb_value_count *pb_value_minority(const struct pb_value_count *entry, size_t n);
#endif
