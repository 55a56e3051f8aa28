/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/counts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t pb_counts_bytes(void)
{
    return PB_THRESHOLD_COUNTS * (sizeof(float) + sizeof(uint64_t));
}

int pb_counts_of(const struct pb_threshold *counted, struct pb_counts *out)
{
    if (!out->value)
        out->value = malloc(PB_THRESHOLD_COUNTS * sizeof *out->value);
    if (!out->below)
        out->below = malloc(PB_THRESHOLD_COUNTS * sizeof *out->below);
    if (!out->value || !out->below)
        return -ENOMEM;
    out->n = pb_threshold_list(counted, out->value, out->below);
    out->width = pb_threshold_width(counted);
    for (uint32_t i = 1; i < out->n; i++)
        out->below[i] += out->below[i - 1];
    return 0;
}

void pb_counts_fini(struct pb_counts *counts)
{
    free(counts->value);
    free(counts->below);
    memset(counts, 0, sizeof *counts);
}

/* The share of value i. */
static double share(const struct pb_counts *counts, uint32_t i)
{
    return (double)counts->below[i] / (double)counts->below[counts->n - 1];
}

/* The value of share `wanted` between values j - 1 and j, samples; of the first one below it. */
static double of_samples(const struct pb_counts *to, uint32_t j, double wanted)
{
    if (j == 0 || wanted == share(to, j))
        return (double)to->value[j];
    const double low = (double)to->value[j - 1], high = (double)to->value[j];
    return (high - low) / (share(to, j) - share(to, j - 1)) * (wanted - share(to, j - 1)) + low;
}

/* The same of bins: from the bin before to the first value of bin j, then along its values. */
static double of_bins(const struct pb_counts *to, uint32_t j, double wanted)
{
    const double before = j > 0 ? (double)to->below[j - 1] : 0.0;
    const double n = (double)to->below[j] - before, high = (double)to->value[j];
    const double first = high - to->width + to->width / n;
    const double at = wanted * (double)to->below[to->n - 1] - before;

    if (at >= n)
        return high;
    if (at > 1.0)
        return first + (high - first) * ((at - 1.0) / (n - 1.0));
    return j > 0 ? (double)to->value[j - 1] + (first - (double)to->value[j - 1]) * at : first;
}

/* A walk along `to` by shares that rise. */
struct walk {
    const struct pb_counts *to;
    uint32_t j; /* the first value of no smaller share */
};

static float next_value(struct walk *w, double wanted)
{
    while (w->j + 1 < w->to->n && share(w->to, w->j) < wanted)
        w->j++;
    return (float)(w->to->width > 0.0 ? of_bins(w->to, w->j, wanted)
                                      : of_samples(w->to, w->j, wanted));
}

static void add_knot(float *knots, uint32_t *n, float x, float y)
{
    knots[2 * (size_t)*n] = x;
    knots[2 * (size_t)*n + 1] = y;
    ++*n;
}

/* Behind empty bins a bin has a knot where it begins as well, or its values would be drawn towards
 * those far below. Both together are no more than there are bins. */
uint32_t pb_counts_match(const struct pb_counts *from, const struct pb_counts *to, float *knots)
{
    struct walk w = {.to = to};
    uint32_t n = 0;

    if (from->n == 0 || to->n == 0)
        return 0;
    for (uint32_t i = 0; i < from->n; i++) {
        const float begin = (float)((double)from->value[i] - from->width);
        const double before = i > 0 ? (double)from->below[i - 1] : 0.0;

        if (from->width > 0.0 && i > 0 &&
            (double)from->value[i] - (double)from->value[i - 1] > 1.5 * from->width)
            add_knot(knots, &n, begin,
                     next_value(&w, (before + 1.0) / (double)from->below[from->n - 1]));
        add_knot(knots, &n, from->value[i], next_value(&w, share(from, i)));
    }
    return n;
}
