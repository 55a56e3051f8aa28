/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ZONES_ALL_H
#define PB_ZONES_ALL_H
/* What is summed up of zones while tiles pass. Each worker has a small part of its own, which goes
 * into the whole under a lock when it is full, and at the end; so the result depends on neither
 * tiles nor threads. Pure memory. Thread: pb_zones_run is called by worker < workers, each number
 * on one thread at a time; the others by one thread, when no worker runs. */
#include "kernels/reduce/value_counts.h"
#include "kernels/reduce/zone_sums.h"

struct pb_zones_shape {
    uint32_t zones; /* at most, a power of two */
    uint32_t bands;
    bool counts_values;
    uint32_t workers;
};

struct pb_zones_all;

uint64_t pb_zones_bytes(const struct pb_zones_shape *shape);
/* NULL = no memory. */
struct pb_zones_all *pb_zones_create(const struct pb_zones_shape *shape);
void pb_zones_destroy(struct pb_zones_all *all);
/* n neighbouring pixels of a zone: pixel i of band b is planes[b][i]; NULL: none is valid. area: of
 * each, in units of the caller. False: there are more zones than the shape says; all that follows
 * is undefined. Allocates nothing. */
bool pb_zones_run(struct pb_zones_all *all, uint32_t worker, uint64_t zone,
                  const float *const *planes, size_t n, int64_t area);
/* After the last pixel. False as above. */
bool pb_zones_end(struct pb_zones_all *all);
/* Then: the sums, and the counts of a band's values, sorted, NULL when they are not counted.
 * Borrowed. */
const struct pb_zone_sums *pb_zones_sums(const struct pb_zones_all *all);
const struct pb_value_counts *pb_zones_counts(const struct pb_zones_all *all, uint32_t band);
#endif
