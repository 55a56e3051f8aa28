/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/numbers/zones_all.h"

#include <pthread.h>
#include <stdlib.h>

/* Capacity of a worker: zones of a row of tiles, and values that fit into a core's cache.
 * Capacity of the whole: counts of values take 8 MiB per band, more if there are more zones. */
enum { WORKER_ZONES = 64, WORKER_VALUES = 8192, ALL_VALUES = 1 << 18 };

struct part {
    pthread_mutex_t lock; /* protects the sums of the whole */
    struct pb_zone_sums *sums;
    struct counted {
        pthread_mutex_t lock; /* protects the counts of the whole */
        struct pb_value_counts *counts;
    } * band;
};

struct pb_zones_all {
    struct pb_zones_shape shape;
    struct part whole, *worker;
};

/* Returns a power of two, at least two for each zone: with fewer, counts of values may not fit
 * at any level. */
static uint32_t all_values(const struct pb_zones_shape *shape)
{
    return 2 * shape->zones > ALL_VALUES ? 2 * shape->zones : ALL_VALUES;
}

static uint64_t part_bytes(const struct pb_zones_shape *shape, uint32_t zones, uint32_t values)
{
    uint64_t bytes = sizeof(struct part) + pb_zone_sums_bytes(zones, shape->bands) +
                     shape->bands * sizeof(struct counted);
    return bytes + (shape->counts_values ? shape->bands * pb_value_counts_bytes(values) : 0);
}

uint64_t pb_zones_bytes(const struct pb_zones_shape *shape)
{
    return sizeof(struct pb_zones_all) + part_bytes(shape, shape->zones, all_values(shape)) +
           shape->workers * part_bytes(shape, WORKER_ZONES, WORKER_VALUES);
}

static bool begin(struct part *part, const struct pb_zones_shape *shape, uint32_t zones,
                  uint32_t values)
{
    part->sums = malloc(pb_zone_sums_bytes(zones, shape->bands));
    part->band = calloc(shape->bands + 1, sizeof *part->band);
    if (part->sums == NULL || part->band == NULL)
        return false;
    pb_zone_sums_begin(part->sums, zones, shape->bands);
    for (uint32_t b = 0; shape->counts_values && b < shape->bands; b++) {
        part->band[b].counts = malloc(pb_value_counts_bytes(values));
        if (part->band[b].counts == NULL)
            return false;
        pb_value_counts_begin(part->band[b].counts, values);
    }
    return true;
}

static void end(struct part *part, const struct pb_zones_shape *shape)
{
    for (uint32_t b = 0; part->band != NULL && b < shape->bands; b++)
        free(part->band[b].counts);
    free(part->band);
    free(part->sums);
}

struct pb_zones_all *pb_zones_create(const struct pb_zones_shape *shape)
{
    struct pb_zones_all *all = calloc(1, sizeof *all);
    if (all == NULL)
        return NULL;
    all->shape = *shape;
    all->worker = calloc(shape->workers + 1, sizeof *all->worker);
    bool good = all->worker != NULL && begin(&all->whole, shape, shape->zones, all_values(shape));
    for (uint32_t i = 0; i < shape->workers && good; i++)
        good = begin(&all->worker[i], shape, WORKER_ZONES, WORKER_VALUES);
    if (!good) {
        for (uint32_t i = 0; all->worker != NULL && i < shape->workers; i++)
            end(&all->worker[i], shape);
        end(&all->whole, shape);
        free(all->worker);
        free(all);
        return NULL;
    }
    pthread_mutex_init(&all->whole.lock, NULL);
    for (uint32_t b = 0; b < shape->bands; b++)
        pthread_mutex_init(&all->whole.band[b].lock, NULL);
    return all;
}

void pb_zones_destroy(struct pb_zones_all *all)
{
    if (all == NULL)
        return;
    pthread_mutex_destroy(&all->whole.lock);
    for (uint32_t b = 0; b < all->shape.bands; b++)
        pthread_mutex_destroy(&all->whole.band[b].lock);
    for (uint32_t i = 0; i < all->shape.workers; i++)
        end(&all->worker[i], &all->shape);
    end(&all->whole, &all->shape);
    free(all->worker);
    free(all);
}

static bool merge_sums(struct pb_zones_all *all, struct part *part)
{
    pthread_mutex_lock(&all->whole.lock);
    bool fits = pb_zone_sums_merge(all->whole.sums, part->sums);
    pthread_mutex_unlock(&all->whole.lock);
    return fits;
}

static bool merge_counts(struct pb_zones_all *all, struct part *part, uint32_t band)
{
    struct counted *whole = &all->whole.band[band];
    pthread_mutex_lock(&whole->lock);
    bool fits = pb_value_counts_merge(whole->counts, part->band[band].counts);
    pthread_mutex_unlock(&whole->lock);
    return fits;
}

bool pb_zones_run(struct pb_zones_all *all, uint32_t worker, uint64_t zone,
                  const float *const *planes, size_t n, int64_t area)
{
    struct part *part = &all->worker[worker];
    int32_t i = pb_zone_sums_find(part->sums, zone);
    if (i < 0 && !merge_sums(all, part))
        return false;
    if (i < 0)
        i = pb_zone_sums_find(part->sums, zone);
    pb_zone_sums_pixels(part->sums, i, n, area);
    for (uint32_t b = 0; planes != NULL && b < all->shape.bands; b++) {
        pb_zone_sums_values(part->sums, i, b, planes[b], n);
        for (size_t done = 0; all->shape.counts_values && done < n;) {
            done += pb_value_counts_add(part->band[b].counts, zone, planes[b] + done, n - done);
            if (done < n && !merge_counts(all, part, b))
                return false;
        }
    }
    return true;
}

bool pb_zones_end(struct pb_zones_all *all)
{
    bool fits = true;
    for (uint32_t i = 0; i < all->shape.workers; i++) {
        fits = fits && merge_sums(all, &all->worker[i]);
        for (uint32_t b = 0; all->shape.counts_values && b < all->shape.bands; b++)
            fits = fits && merge_counts(all, &all->worker[i], b);
    }
    for (uint32_t b = 0; all->shape.counts_values && b < all->shape.bands; b++)
        pb_value_counts_sort(all->whole.band[b].counts);
    return fits;
}

const struct pb_zone_sums *pb_zones_sums(const struct pb_zones_all *all)
{
    return all->whole.sums;
}

const struct pb_value_counts *pb_zones_counts(const struct pb_zones_all *all, uint32_t band)
{
    return all->whole.band[band].counts;
}
