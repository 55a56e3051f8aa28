/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ZONES_ALL_H
#define PB_ZONES_ALL_H
/* Sums by zone, updated while tiles arrive. Each worker has a small part of its own, which is
 * added to the whole under a lock when it is full, and at the end; therefore the result depends
 * on neither tiles nor threads. Pure memory. Thread: pb_zones_run is called by worker < workers,
 * each number on one thread at a time; the others by one thread, when no worker runs. */
#include "kernels/reduce/value_counts.h"
#include "kernels/reduce/zone_sums.h"

struct pb_zones_shape {
    uint32_t zones; /* upper bound, a power of two */
    uint32_t bands;
    bool counts_values;
    uint32_t workers;
};

struct pb_zones_all;

uint64_t pb_zones_bytes(const struct pb_zones_shape *shape);
/* Returns NULL if out of memory. */
struct pb_zones_all *pb_zones_create(const struct pb_zones_shape *shape);
void pb_zones_destroy(struct pb_zones_all *all);
/* Adds n neighbouring pixels of a zone: pixel i of band b is planes[b][i]; NULL: no valid pixel.
 * area: of each pixel, in units of the caller. Returns false if there are more zones than
 * shape.zones; later results are undefined. Allocates nothing. */
bool pb_zones_run(struct pb_zones_all *all, uint32_t worker, uint64_t zone,
                  const float *const *planes, size_t n, int64_t area);
/* Call after the last pixel. Returns false as above. */
bool pb_zones_end(struct pb_zones_all *all);
/* Results after the end: the sums, and the counts of a band's values, sorted, NULL if they are
 * not counted. Borrowed. */
const struct pb_zone_sums *pb_zones_sums(const struct pb_zones_all *all);
const struct pb_value_counts *pb_zones_counts(const struct pb_zones_all *all, uint32_t band);
#endif
