/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/tuning.h"

#include <math.h>

/* An octave of the ratio outweighs any difference of size. */
#define RATIO_WEIGHT 100

static double octaves(double a, double b)
{
    return fabs(log2(a / b));
}

static double at_least_one(uint64_t bytes)
{
    return bytes > 0 ? (double)bytes : 1;
}

static double distance(const struct pb_tuning_row *row, double in, double out)
{
    double row_in = at_least_one(row->in_bytes), row_out = at_least_one(row->out_bytes);
    return RATIO_WEIGHT * octaves(row_in / row_out, in / out) + octaves(row_in, in);
}

const struct pb_tuning_row *pb_tuning_find(const struct pb_tuning *tuning, uint64_t in_bytes,
                                           uint64_t out_bytes)
{
    const struct pb_tuning_row *best = NULL;
    double in = at_least_one(in_bytes), out = at_least_one(out_bytes), least = 0;
    for (uint32_t i = 0; i < tuning->n_rows; i++) {
        double d = distance(&tuning->rows[i], in, out);
        if (best == NULL || d < least) {
            best = &tuning->rows[i];
            least = d;
        }
    }
    return best;
}
