/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tune/tune.h"

/* Fractions of the copy engines' speed. */
#define AT_COPIES  0.95
#define AT_ONE_WAY 0.9

const char *pb_tune_limit(const struct pb_tuning_row *row, double to_device, double from_device)
{
    double in = (double)row->rate, out = in * (double)row->out_bytes / (double)row->in_bytes;
    double to = to_device > 0 ? in / to_device : 0, from = from_device > 0 ? out / from_device : 0;
    if (to >= AT_ONE_WAY && to >= from)
        return "link to the GPU";
    if (from >= AT_ONE_WAY)
        return "link from the GPU";
    if (row->copies > 0 && in >= AT_COPIES * (double)row->copies)
        return "link, both ways";
    return "kernel";
}

#ifndef PB_HAVE_CUDA
int pb_tune(int32_t index, double seconds,
            void (*on_result)(void *user, const struct pb_tune_result *result), void *user,
            struct pb_err *err, struct pb_tuning *out_tuning)
{
    (void)seconds, (void)on_result, (void)user, (void)out_tuning;
    return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA device %d", index);
}
#endif
