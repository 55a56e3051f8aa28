/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SAMPLES_H
#define PB_SAMPLES_H
/* What is known of values that come from a band of 16 bits or fewer, so that they can be counted by
 * sample. Plain data; any thread. */
#include "kernels/pixel.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define PB_SAMPLES_MAX 65536

/* Values that are samples: (float)sample * scale + offset, rounded twice, or the sample itself when
 * not scaled; samples are first .. first + n - 1. n == 0: values may be any. */
struct pb_samples {
    int32_t first;
    uint32_t n; /* <= PB_SAMPLES_MAX */
    bool scaled;
    float scale, offset;
};

/* The value of sample first + i. */
PB_PIXEL float pb_sample_value(const struct pb_samples *samples, uint32_t i)
{
    const float v = (float)(samples->first + (int32_t)i);

    return samples->scaled ? v * samples->scale + samples->offset : v;
}

/* The i of a value that is a sample's. */
PB_PIXEL uint32_t pb_sample_of(const struct pb_samples *samples, float value)
{
    const double v = (double)value;
    const double sample =
        samples->scaled ? (v - (double)samples->offset) / (double)samples->scale : v;

    return (uint32_t)((int32_t)rint(sample) - samples->first) % samples->n;
}

/* Whether values fall while samples rise. */
PB_PIXEL bool pb_samples_descend(const struct pb_samples *samples)
{
    return samples->scaled && samples->scale < 0.0f;
}

/* Whether every sample can be told from its value. */
bool pb_samples_are_distinct(const struct pb_samples *samples);
#endif
