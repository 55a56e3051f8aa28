/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/percentiles_state.h"

static size_t counts_of(uint32_t n, const struct pb_samples *samples)
{
    return samples->n > 0 ? samples->n : (size_t)n * PB_PERCENTILES_BUCKETS;
}

size_t pb_percentiles_bytes(uint32_t n, const struct pb_samples *samples)
{
    return sizeof(struct pb_percentiles) + counts_of(n, samples) * sizeof(uint64_t) +
           (samples->n > 0 ? 0 : PB_PERCENTILES_BUCKETS);
}

static uint8_t *roles(struct pb_percentiles *p)
{
    return (uint8_t *)(p->counts + (size_t)p->n * PB_PERCENTILES_BUCKETS);
}

static uint64_t *table(struct pb_percentiles *p, uint32_t i)
{
    return p->counts + (size_t)i * PB_PERCENTILES_BUCKETS;
}

int pb_percentiles_rounds(const struct pb_samples *samples)
{
    return samples->n > 0 ? 1 : 2;
}

/* --- counting -------------------------------------------------------------------------------- */

void pb_percentiles_begin(struct pb_percentiles *p, const double *percentile, uint32_t n,
                          const struct pb_samples *samples)
{
    memset(p, 0, pb_percentiles_bytes(n, samples));
    p->n = n;
    p->samples = *samples;
    for (uint32_t i = 0; i < n; i++)
        p->quantile[i].p = percentile[i];
}

void pb_percentiles_again(struct pb_percentiles *p, const struct pb_percentiles *ended)
{
    if (p != ended)
        memcpy(p, ended, pb_percentiles_bytes(ended->n, &ended->samples));
}

static void add_samples(struct pb_percentiles *p, const float *value, size_t count)
{
    uint64_t values = 0;

    for (size_t i = 0; i < count; i++)
        if (fabsf(value[i]) <= FLT_MAX) {
            p->counts[pb_sample_of(&p->samples, value[i])]++;
            values++;
        }
    p->values += values;
}

static void add_first(struct pb_percentiles *p, const float *value, size_t count)
{
    uint64_t values = 0;

    for (size_t i = 0; i < count; i++)
        if (fabsf(value[i]) <= FLT_MAX) {
            p->counts[pb_percentiles_key(value[i]) >> PB_PERCENTILES_LOW_BITS]++;
            values++;
        }
    p->values += values;
}

static void add_by_role(struct pb_percentiles *p, uint32_t role, uint32_t key)
{
    if (role < PB_PERCENTILES_COUNTED + PB_PERCENTILES_MAX) {
        table(p, role - PB_PERCENTILES_COUNTED)[key % PB_PERCENTILES_BUCKETS]++;
        return;
    }
    uint32_t *const least = &p->least[role - PB_PERCENTILES_COUNTED - PB_PERCENTILES_MAX];
    *least = key < *least ? key : *least;
}

static void add_second(struct pb_percentiles *p, const float *value, size_t count)
{
    const uint8_t *const role = pb_percentiles_roles(p);

    for (size_t i = 0; i < count; i++) {
        const uint32_t key = pb_percentiles_key(value[i]);
        const uint32_t own =
            role[key >>
                 PB_PERCENTILES_LOW_BITS]; /* PB_PERCENTILES_LEFT_OUT of what is not finite */

        if (own != PB_PERCENTILES_LEFT_OUT)
            add_by_role(p, own, key);
    }
}

void pb_percentiles_add(struct pb_percentiles *p, const float *value, size_t count)
{
    if (p->second)
        add_second(p, value, count);
    else if (p->samples.n > 0)
        add_samples(p, value, count);
    else
        add_first(p, value, count);
}

void pb_percentiles_merge(struct pb_percentiles *into, const struct pb_percentiles *from)
{
    const size_t n = into->second          ? (size_t)into->n_counted * PB_PERCENTILES_BUCKETS
                     : into->samples.n > 0 ? into->samples.n
                                           : PB_PERCENTILES_BUCKETS;

    if (!into->second)
        into->values += from->values;
    for (size_t k = 0; k < n; k++)
        into->counts[k] += from->counts[k];
    for (uint32_t i = 0; i < into->n_minima; i++)
        into->least[i] = from->least[i] < into->least[i] ? from->least[i] : into->least[i];
}

/* --- results --------------------------------------------------------------------------------- */

/* The count that holds a rank, and how many values are in those before it. The last one where the
 * counts do not reach that far: a second round that saw other values than the first. */
static uint32_t find_rank(const uint64_t *counts, uint32_t n, uint64_t rank, uint64_t *out_before)
{
    uint64_t before = 0;
    uint32_t i = 0;

    while (i + 1 < n && before + counts[i] <= rank)
        before += counts[i++];
    *out_before = before;
    return i;
}

static void find_ranks(struct pb_percentiles *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct pb_quantile *const q = &p->quantile[i];
        const double rank = (double)(p->values - 1) * (q->p / 100.0);

        q->rank = (uint64_t)rank;
        q->fraction = rank - (double)q->rank;
        if (q->rank + 1 >= p->values) {
            q->rank = p->values - 1;
            q->fraction = 0.0;
        }
    }
}

static double between(const struct pb_quantile *q, double low, double high)
{
    const double t = q->fraction;

    return t < 0.5 ? low + (high - low) * t : high - (high - low) * (1 - t);
}

/* The rank above, or the same one at the end. */
static uint64_t rank_above(const struct pb_percentiles *p, const struct pb_quantile *q)
{
    return q->rank + 1 < p->values ? q->rank + 1 : q->rank;
}

static double sample_at(const struct pb_percentiles *p, uint64_t rank)
{
    const bool descending = pb_samples_descend(&p->samples);
    uint64_t before;

    return (double)pb_sample_value(
        &p->samples,
        find_rank(p->counts, p->samples.n, descending ? p->values - 1 - rank : rank, &before));
}

static void end_samples(const struct pb_percentiles *p, double *out)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct pb_quantile *const q = &p->quantile[i];

        out[i] = between(q, sample_at(p, q->rank), sample_at(p, rank_above(p, q)));
    }
}

/* The number of a bucket in a list, new or known. */
static uint32_t number_of(uint32_t *list, uint32_t *n, uint32_t bucket)
{
    uint32_t i = 0;

    while (i < *n && list[i] != bucket)
        i++;
    if (i == *n)
        list[(*n)++] = bucket;
    return i;
}

static void set_roles(struct pb_percentiles *p)
{
    uint8_t *const role = roles(p);

    for (uint32_t i = 0; i < p->n_counted; i++)
        role[p->counted[i]] = (uint8_t)(PB_PERCENTILES_COUNTED + i);
    for (uint32_t i = 0; i < p->n; i++) {
        const uint32_t bucket = p->quantile[i].bucket[1];

        if (role[bucket] != PB_PERCENTILES_LEFT_OUT)
            continue;
        const uint32_t k = number_of(p->minimum_of, &p->n_minima, bucket);
        role[bucket] = (uint8_t)(PB_PERCENTILES_COUNTED + PB_PERCENTILES_MAX + k);
        p->least[k] = UINT32_MAX;
    }
}

/* Which buckets the second round looks at. */
static void prepare_second(struct pb_percentiles *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct pb_quantile *const q = &p->quantile[i];
        uint64_t before;

        q->bucket[0] = find_rank(p->counts, PB_PERCENTILES_BUCKETS, q->rank, &q->below);
        q->bucket[1] = find_rank(p->counts, PB_PERCENTILES_BUCKETS, rank_above(p, q), &before);
        q->upper_is_minimum = q->bucket[1] != q->bucket[0];
        (void)number_of(p->counted, &p->n_counted, q->bucket[0]);
    }
    set_roles(p);
    p->second = true;
    memset(p->counts, 0, (size_t)p->n * PB_PERCENTILES_BUCKETS * sizeof p->counts[0]);
}

/* The value of a rank within a bucket. */
static double value_at(struct pb_percentiles *p, uint32_t bucket, uint64_t rank)
{
    const uint32_t role = roles(p)[bucket];
    uint64_t before;

    if (role >= PB_PERCENTILES_COUNTED + PB_PERCENTILES_MAX)
        return (double)pb_percentiles_value(
            p->least[role - PB_PERCENTILES_COUNTED - PB_PERCENTILES_MAX]);
    return (double)pb_percentiles_value(
        bucket << PB_PERCENTILES_LOW_BITS |
        find_rank(table(p, role - PB_PERCENTILES_COUNTED), PB_PERCENTILES_BUCKETS, rank, &before));
}

static void end_second(struct pb_percentiles *p, double *out)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct pb_quantile *const q = &p->quantile[i];
        const uint64_t above = q->upper_is_minimum ? 0 : rank_above(p, q) - q->below;

        out[i] = between(q, value_at(p, q->bucket[0], q->rank - q->below),
                         value_at(p, q->bucket[1], above));
    }
}

bool pb_percentiles_end(struct pb_percentiles *p, double *out)
{
    if (p->values == 0) {
        for (uint32_t i = 0; i < p->n; i++)
            out[i] = (double)NAN;
        return true;
    }
    if (p->second) {
        end_second(p, out);
        return true;
    }
    find_ranks(p);
    if (p->samples.n > 0)
        end_samples(p, out);
    else
        prepare_second(p);
    return p->samples.n > 0;
}
