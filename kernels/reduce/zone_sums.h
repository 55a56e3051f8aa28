/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ZONE_SUMS_H
#define PB_ZONE_SUMS_H
/* Pixels, area and exact sums of bands, by zone: a zone is known by a number of the caller's. Sums
 * of parts of an image merge into those of the whole, the same to the last bit whatever the parts.
 * Plain memory of the caller, aligned to 16 bytes, without pointers; one thread an object. */
#include "kernels/reduce/float_sums.h"

#include <stdbool.h>

struct pb_zone {
    uint64_t key;
    uint64_t pixels; /* valid or not */
    pb_int128 area;  /* sum of the areas that were given with them */
};

struct pb_zone_sums;

/* For at most `entries` zones, a power of two. */
size_t pb_zone_sums_bytes(uint32_t entries, uint32_t bands);
void pb_zone_sums_begin(struct pb_zone_sums *sums, uint32_t entries, uint32_t bands);
/* The number of a zone, which is new or was there; -1: it is new and there is no room. */
int32_t pb_zone_sums_find(struct pb_zone_sums *sums, uint64_t key);
/* n pixels, each of this area. */
void pb_zone_sums_pixels(struct pb_zone_sums *sums, int32_t zone, uint64_t n, int64_t area);
/* n values of a band. */
void pb_zone_sums_values(struct pb_zone_sums *sums, int32_t zone, uint32_t band, const float *value,
                         size_t n);
/* Takes over what `from` has and clears that. False: there are more zones than room; nothing is
 * defined then. */
bool pb_zone_sums_merge(struct pb_zone_sums *into, struct pb_zone_sums *from);

uint32_t pb_zone_sums_count(const struct pb_zone_sums *sums);
/* Zone i, in no particular order; and its sums of a band. Borrowed. */
const struct pb_zone *pb_zone_sums_zone(const struct pb_zone_sums *sums, uint32_t i);
const struct pb_float_sums *pb_zone_sums_band(const struct pb_zone_sums *sums, uint32_t i,
                                              uint32_t band);
#endif
