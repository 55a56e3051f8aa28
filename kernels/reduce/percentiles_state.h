/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PERCENTILES_STATE_H
#define PB_PERCENTILES_STATE_H
/* The inside of struct pb_percentiles (percentiles.h), for what adds values to it: percentiles.c,
 * and devices (percentiles.cuh). */
#include "kernels/pixel.h"
#include "kernels/reduce/percentiles.h"

/* A bucket is the values whose keys have the same high 16 bits. */
enum { PB_PERCENTILES_LOW_BITS = 16, PB_PERCENTILES_BUCKETS = 1 << PB_PERCENTILES_LOW_BITS };

/* The two ranks that a percentile lies between. */
struct pb_quantile {
    double p;
    uint64_t rank;         /* of the lower one */
    double fraction;       /* of the way to the upper one */
    uint32_t bucket[2];    /* of both */
    uint64_t below;        /* values below bucket[0] */
    bool upper_is_minimum; /* the upper rank is the least value of another bucket */
};

/* What the second round does with the values of a bucket: nothing, count them
 * (PB_PERCENTILES_COUNTED + i: in table i), or find the least (PB_PERCENTILES_COUNTED +
 * PB_PERCENTILES_MAX + i: in least[i]). */
enum { PB_PERCENTILES_LEFT_OUT, PB_PERCENTILES_COUNTED };

struct pb_percentiles {
    struct pb_samples samples;
    uint32_t n;
    bool second; /* round */
    uint64_t values;
    struct pb_quantile quantile[PB_PERCENTILES_MAX];
    uint32_t n_counted, counted[PB_PERCENTILES_MAX]; /* buckets */
    uint32_t n_minima, minimum_of[PB_PERCENTILES_MAX], least[PB_PERCENTILES_MAX];
    uint64_t counts[]; /* samples: one each. Others: tables of PB_PERCENTILES_BUCKETS, the first
                          round uses one, the second one for each counted bucket; then a role for
                          each bucket */
};

/* What a bucket is for in the second round. */
PB_PIXEL const uint8_t *pb_percentiles_roles(const struct pb_percentiles *p)
{
    return (const uint8_t *)(p->counts + (size_t)p->n * PB_PERCENTILES_BUCKETS);
}

/* Keys order as the values do: negative numbers are inverted, the others above them. */
PB_PIXEL uint32_t pb_percentiles_key(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits ^ ((uint32_t)((int32_t)bits >> 31) | UINT32_C(0x80000000));
}

PB_PIXEL float pb_percentiles_value(uint32_t key)
{
    const uint32_t bits = key & UINT32_C(0x80000000) ? key ^ UINT32_C(0x80000000) : ~key;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Which of the counts a finite value adds to in the first round. */
PB_PIXEL uint32_t pb_percentiles_count_of(const struct pb_percentiles *p, float value)
{
    return p->samples.n > 0 ? pb_sample_of(&p->samples, value)
                            : pb_percentiles_key(value) >> PB_PERCENTILES_LOW_BITS;
}
#endif
