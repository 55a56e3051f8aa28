/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/numbers/value_tally.h"

#include "kernels/reduce/value_counts.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* Capacity of a worker: fits into a core's second cache. Capacity of a band: 8 MiB. */
enum { WORKER_VALUES = 1 << 16, BAND_VALUES = PB_VALUE_TALLY_VALUES };

struct pb_value_tally {
    uint32_t n_bands, n_workers, n_locks;
    struct pb_value_counts **worker;
    struct tally_band {
        pthread_mutex_t lock; /* protects counts */
        struct pb_value_counts *counts;
    } * band;
};

uint64_t pb_value_tally_bytes(uint32_t bands, uint32_t workers)
{
    return sizeof(struct pb_value_tally) +
           bands * (sizeof(struct tally_band) + pb_value_counts_bytes(BAND_VALUES)) +
           workers * (sizeof(struct pb_value_counts *) + pb_value_counts_bytes(WORKER_VALUES));
}

static struct pb_value_counts *make_counts(uint32_t entries)
{
    struct pb_value_counts *counts = malloc(pb_value_counts_bytes(entries));
    if (counts != NULL)
        pb_value_counts_begin(counts, entries);
    return counts;
}

static bool allocate(struct pb_value_tally *tally)
{
    tally->worker = calloc(tally->n_workers, sizeof(struct pb_value_counts *));
    tally->band = calloc(tally->n_bands, sizeof *tally->band);
    bool good = tally->worker != NULL && tally->band != NULL;
    for (uint32_t i = 0; i < tally->n_workers && good; i++) {
        tally->worker[i] = make_counts(WORKER_VALUES);
        good = tally->worker[i] != NULL;
    }
    for (uint32_t b = 0; b < tally->n_bands && good; b++) {
        tally->band[b].counts = make_counts(BAND_VALUES);
        good = tally->band[b].counts != NULL && pthread_mutex_init(&tally->band[b].lock, NULL) == 0;
        tally->n_locks += good;
    }
    return good;
}

struct pb_value_tally *pb_value_tally_create(uint32_t bands, uint32_t workers)
{
    struct pb_value_tally *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        return NULL;
    tally->n_bands = bands;
    tally->n_workers = workers;
    if (allocate(tally))
        return tally;
    pb_value_tally_destroy(tally);
    return NULL;
}

void pb_value_tally_destroy(struct pb_value_tally *tally)
{
    if (tally == NULL)
        return;
    for (uint32_t b = 0; b < tally->n_locks; b++)
        pthread_mutex_destroy(&tally->band[b].lock);
    for (uint32_t b = 0; tally->band != NULL && b < tally->n_bands; b++)
        free(tally->band[b].counts);
    for (uint32_t i = 0; tally->worker != NULL && i < tally->n_workers; i++)
        free(tally->worker[i]);
    free(tally->band);
    free(tally->worker);
    free(tally);
}

/* One group fits at every level; therefore this never fails. */
static void hand_over(struct tally_band *band, struct pb_value_counts *part)
{
    pthread_mutex_lock(&band->lock);
    (void)pb_value_counts_merge(band->counts, part);
    pthread_mutex_unlock(&band->lock);
}

/* The worker's part is empty on entry, and gets the current level of the band. */
void pb_value_tally_add(struct pb_value_tally *tally, uint32_t worker, uint32_t band,
                        const float *value, size_t n)
{
    struct pb_value_counts *part = tally->worker[worker];
    pthread_mutex_lock(&tally->band[band].lock);
    pb_value_counts_take_level(part, tally->band[band].counts);
    pthread_mutex_unlock(&tally->band[band].lock);
    for (size_t done = 0; done < n;) {
        done += pb_value_counts_add(part, 0, value + done, n - done);
        hand_over(&tally->band[band], part);
    }
}

bool pb_value_tally_take(struct pb_value_tally *tally, uint32_t band,
                         const struct pb_value_part *part)
{
    pthread_mutex_lock(&tally->band[band].lock);
    const bool good = pb_value_counts_take_part(tally->band[band].counts, part);
    pthread_mutex_unlock(&tally->band[band].lock);
    return good;
}

void pb_value_tally_end(struct pb_value_tally *tally)
{
    for (uint32_t b = 0; b < tally->n_bands; b++)
        pb_value_counts_sort(tally->band[b].counts);
}

double pb_value_tally_percentile(const struct pb_value_tally *tally, uint32_t band, double p,
                                 double *out_error)
{
    const struct pb_value_counts *counts = tally->band[band].counts;
    size_t n;
    const struct pb_value_count *entry = pb_value_counts_of(counts, 0, &n);
    *out_error = entry != NULL ? 0 : (double)NAN;
    if (entry == NULL)
        return (double)NAN;
    return pb_value_percentile(entry, n, pb_value_counts_level(counts), p, out_error);
}
