/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Slots are addressed modulo the number of bins: the bins in use span at most so many numbers, so a
 * slot stands for one bin only and nothing has to move when the range grows to either side. The bin
 * is computed in double, where v * 2^-e is exact for every float and every e in use. */
#include "kernels/reduce/histogram.h"

#include "kernels/pixel.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum { SLOT_MASK = PB_HISTOGRAM_BINS - 1, CHUNK = 256 };
int64_t pb_histogram_bin_of(float value, int e)
{
    return pb_histogram_bin(value, e);
}

int pb_histogram_exponent(float min, float max)
{
    return pb_histogram_exponent_of(min, max);
}

/* Widens the histogram to [min, max]; the counts move into the other table when bins merge. */
static void widen(struct pb_histogram *histogram, float min, float max)
{
    if (!histogram->used) {
        histogram->used = true;
        histogram->min = min;
        histogram->max = max;
        histogram->e = pb_histogram_exponent(min, max);
        return;
    }
    int64_t first = pb_histogram_bin_of(histogram->min, histogram->e);
    int64_t last = pb_histogram_bin_of(histogram->max, histogram->e);
    histogram->min = fminf(histogram->min, min);
    histogram->max = fmaxf(histogram->max, max);
    int raise = pb_histogram_exponent(histogram->min, histogram->max) - histogram->e;
    assert(raise >= 0);
    if (raise == 0)
        return;
    if (raise > 62)
        raise = 62; /* bins are below 2^25: all become 0 or -1 long before */
    uint64_t *from = histogram->bin[histogram->side];
    uint64_t *to = histogram->bin[!histogram->side];
    for (int64_t i = first; i <= last; i++) {
        to[(i >> raise) & SLOT_MASK] += from[i & SLOT_MASK];
        from[i & SLOT_MASK] = 0;
    }
    histogram->side = !histogram->side;
    histogram->e = pb_histogram_exponent(histogram->min, histogram->max);
}

void pb_histogram_part_begin(struct pb_histogram_part *part, float min, float max)
{
    part->min = min;
    part->max = max;
    part->e = pb_histogram_exponent(min, max);
}

/* Slots of n <= CHUNK values. Truncation, put right for negative numbers, is floor without its
 * call; invalid values are computed as `stand_in` and sent to the last slot. Vectorises. */
PB_CLONES
static void slots_of(const float *value, size_t n, double scale, float stand_in, int32_t *slot)
{
    for (size_t i = 0; i < n; i++) {
        bool valid = fabsf(value[i]) <= FLT_MAX;
        double scaled = (double)(valid ? value[i] : stand_in) * scale;
        int32_t bin = (int32_t)scaled;
        bin -= scaled < (double)bin;
        slot[i] = valid ? bin & SLOT_MASK : PB_HISTOGRAM_BINS;
    }
}

void pb_histogram_part_add(struct pb_histogram_part *part, const float *value, size_t n)
{
    double scale = ldexp(1.0, -part->e);
    uint32_t *even = part->lane[0], *odd = part->lane[1];
    int32_t slot[CHUNK];
    while (n > 0) {
        size_t chunk = n < CHUNK ? n : CHUNK;
        slots_of(value, chunk, scale, part->min, slot);
        size_t i = 0;
        for (; i + 2 <= chunk; i += 2) {
            even[slot[i]]++;
            odd[slot[i + 1]]++;
        }
        if (i < chunk)
            even[slot[i]]++;
        value += chunk;
        n -= chunk;
    }
}

void pb_histogram_merge(struct pb_histogram *histogram, struct pb_histogram_part *part)
{
    widen(histogram, part->min, part->max);
    int raise = histogram->e - part->e;
    assert(raise >= 0);
    if (raise > 62)
        raise = 62;
    uint64_t *to = histogram->bin[histogram->side];
    int64_t first = pb_histogram_bin_of(part->min, part->e);
    int64_t last = pb_histogram_bin_of(part->max, part->e);
    for (int64_t i = first; i <= last; i++) {
        size_t slot = (size_t)(i & SLOT_MASK);
        to[(i >> raise) & SLOT_MASK] += (uint64_t)part->lane[0][slot] + part->lane[1][slot];
    }
    memset(part->lane, 0, sizeof part->lane);
}

uint32_t pb_histogram_fold(const struct pb_histogram *histogram, uint32_t max_buckets,
                           uint64_t *bucket, double *out_min, double *out_max)
{
    if (!histogram->used || max_buckets == 0)
        return 0;
    const uint64_t *bin = histogram->bin[histogram->side];
    int64_t first = pb_histogram_bin_of(histogram->min, histogram->e);
    int64_t bins = pb_histogram_bin_of(histogram->max, histogram->e) - first + 1;
    int64_t width = 1;
    while ((bins + width - 1) / width > (int64_t)max_buckets)
        width *= 2;
    uint32_t used = (uint32_t)((bins + width - 1) / width);
    memset(bucket, 0, used * sizeof *bucket);
    for (int64_t i = 0; i < bins; i++)
        bucket[i / width] += bin[(first + i) & SLOT_MASK];
    *out_min = ldexp((double)first, histogram->e);
    *out_max = ldexp((double)(first + width * (int64_t)used), histogram->e);
    return used;
}
