/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Which threshold is the best does not depend on the scale of the values, so the numbers of samples
 * and bins stand for them, and all sums are of integers. Edges of bins are multiples of a power of
 * two: a value's bin is computed without rounding. */
#include "kernels/reduce/threshold.h"

#include <float.h>
#include <string.h>

enum { BINS = PB_THRESHOLD_COUNTS, FLOAT_PRECISION = FLT_MANT_DIG - 1, FINEST = -149 };

struct pb_threshold {
    struct pb_samples samples;
    bool counting;         /* values are counted in this round */
    float least, greatest; /* of no value: FLT_MAX, -FLT_MAX */
    int exponent;          /* of the width of bins */
    int64_t first;         /* number of the first bin */
    uint64_t values;
    uint64_t count[]; /* by sample or bin */
};

static uint32_t counts_of(const struct pb_samples *samples)
{
    return samples->n > 0 ? samples->n : BINS;
}

size_t pb_threshold_bytes(const struct pb_samples *samples)
{
    return sizeof(struct pb_threshold) + counts_of(samples) * sizeof(uint64_t);
}

int pb_threshold_rounds(const struct pb_samples *samples)
{
    return samples->n > 0 ? 1 : 2;
}

void pb_threshold_begin(struct pb_threshold *t, const struct pb_samples *samples)
{
    memset(t, 0, pb_threshold_bytes(samples));
    t->samples = *samples;
    t->counting = samples->n > 0;
    t->least = FLT_MAX;
    t->greatest = -FLT_MAX;
}

void pb_threshold_again(struct pb_threshold *t, const struct pb_threshold *ended)
{
    if (t != ended)
        memcpy(t, ended, pb_threshold_bytes(&ended->samples));
}

/* --- counting -------------------------------------------------------------------------------- */

static bool is_value(float x)
{
    return fabsf(x) <= FLT_MAX;
}

static int64_t bin_of(float value, double per_width)
{
    return (int64_t)floor((double)value * per_width);
}

static void find_extremes(struct pb_threshold *t, const float *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_value(value[i])) {
            t->least = value[i] < t->least ? value[i] : t->least;
            t->greatest = value[i] > t->greatest ? value[i] : t->greatest;
        }
}

static void count_samples(struct pb_threshold *t, const float *value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_value(value[i])) {
            t->count[pb_sample_of(&t->samples, value[i])]++;
            t->values++;
        }
}

static void count_bins(struct pb_threshold *t, const float *value, size_t n)
{
    const double per_width = ldexp(1.0, -t->exponent);

    for (size_t i = 0; i < n; i++)
        if (value[i] >= t->least && value[i] <= t->greatest) {
            t->count[bin_of(value[i], per_width) - t->first]++;
            t->values++;
        }
}

void pb_threshold_add(struct pb_threshold *t, const float *value, size_t n)
{
    if (!t->counting)
        find_extremes(t, value, n);
    else if (t->samples.n > 0)
        count_samples(t, value, n);
    else
        count_bins(t, value, n);
}

void pb_threshold_merge(struct pb_threshold *into, const struct pb_threshold *from)
{
    into->least = from->least < into->least ? from->least : into->least;
    into->greatest = from->greatest > into->greatest ? from->greatest : into->greatest;
    into->values += from->values;
    for (uint32_t i = 0; i < counts_of(&into->samples); i++)
        into->count[i] += from->count[i];
}

/* The narrowest bins, a power of two wide, of which BINS hold all values. Narrower ones than the
 * spacing of the greatest floats tell nothing. */
static void choose_bins(struct pb_threshold *t)
{
    const float largest = fmaxf(fabsf(t->least), fabsf(t->greatest));
    int e = largest > 0.0f ? ilogbf(largest) - FLOAT_PRECISION : FINEST;

    e = e < FINEST ? FINEST : e;
    while (bin_of(t->greatest, ldexp(1.0, -e)) - bin_of(t->least, ldexp(1.0, -e)) >= BINS)
        e++;
    t->exponent = e;
    t->first = bin_of(t->least, ldexp(1.0, -e));
    t->counting = true;
}

/* --- the threshold --------------------------------------------------------------------------- */

/* Counts in ascending order of values. */
static uint64_t count_at(const struct pb_threshold *t, uint32_t i)
{
    return t->count[pb_samples_descend(&t->samples) ? t->samples.n - 1 - i : i];
}

/* The last number of the lower class: the first of the best ones, and that of the greatest value
 * where all are equal. out_below: how many values it has. */
static uint32_t find_best(const struct pb_threshold *t, uint64_t *out_below)
{
    const uint32_t n = counts_of(&t->samples);
    uint64_t total = 0, below = 0, sum = 0;
    uint32_t best = 0;
    double greatest = 0.0;

    for (uint32_t i = 0; i < n; i++)
        total += count_at(t, i) * i;
    *out_below = t->values;
    for (uint32_t i = 0; i < n && below < t->values; i++) {
        below += count_at(t, i);
        sum += count_at(t, i) * i;
        if (greatest <= 0.0)
            best = i;
        if (below == 0 || below == t->values)
            continue;
        const uint64_t above = t->values - below;
        const double apart = (double)sum / (double)below - (double)(total - sum) / (double)above;
        const double variance = (double)below * (double)above * apart * apart;

        if (variance > greatest) {
            greatest = variance;
            best = i;
            *out_below = below;
        }
    }
    return best;
}

/* The greatest value of sample or bin i in ascending order. */
static float greatest_of(const struct pb_threshold *t, uint32_t i)
{
    if (t->samples.n > 0)
        return pb_sample_value(&t->samples,
                               pb_samples_descend(&t->samples) ? t->samples.n - 1 - i : i);
    const double edge = ldexp((double)(t->first + i + 1), t->exponent);
    return edge > (double)FLT_MAX ? FLT_MAX : nextafterf((float)edge, -FLT_MAX);
}

uint32_t pb_threshold_list(const struct pb_threshold *t, float *values, uint64_t *counts)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < counts_of(&t->samples) && t->values > 0; i++) {
        const uint64_t count = count_at(t, i);

        values[n] = greatest_of(t, i);
        counts[n] = count;
        n += count > 0;
    }
    return n;
}

double pb_threshold_width(const struct pb_threshold *t)
{
    return t->samples.n > 0 ? 0.0 : ldexp(1.0, t->exponent);
}

static void no_results(double *out)
{
    out[PB_THRESHOLD_VALUE] = (double)NAN;
    out[PB_THRESHOLD_BELOW] = out[PB_THRESHOLD_ABOVE] = out[PB_THRESHOLD_WIDTH] = 0.0;
}

bool pb_threshold_end(struct pb_threshold *t, double *out)
{
    uint64_t below;

    no_results(out);
    if (t->counting ? t->values == 0 : t->least > t->greatest)
        return true;
    if (!t->counting) {
        choose_bins(t);
        return false;
    }
    out[PB_THRESHOLD_VALUE] = (double)greatest_of(t, find_best(t, &below));
    out[PB_THRESHOLD_BELOW] = (double)below;
    out[PB_THRESHOLD_ABOVE] = (double)(t->values - below);
    out[PB_THRESHOLD_WIDTH] = pb_threshold_width(t);
    return true;
}
