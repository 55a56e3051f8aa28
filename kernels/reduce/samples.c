/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/samples.h"

/* Whether pb_sample_of() stays within what an int32 holds. */
static bool is_near(const struct pb_samples *samples, float value)
{
    const double steps = samples->scaled
                             ? ((double)value - (double)samples->offset) / (double)samples->scale
                             : (double)value;

    return fabs(steps) < 1e9;
}

bool pb_samples_are_distinct(const struct pb_samples *samples)
{
    if (samples->n == 0 || samples->n > PB_SAMPLES_MAX)
        return false;
    for (uint32_t i = 0; i < samples->n; i++) {
        const float v = pb_sample_value(samples, i);

        if (!is_near(samples, v) || pb_sample_of(samples, v) != i)
            return false;
    }
    return true;
}
