/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/histogram.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/statistics_device.h"
#include "kernels/reduce/statistics_key.h"

/* Three digits are added for each run of pixels: far fewer than a limb has room for. */
static void take_sum(const int64_t *limb, uint64_t additions, struct pb_exact_sum *out)
{
    pb_exact_sum_init(out);
    memcpy(out->limb, limb, sizeof out->limb);
    out->pending = (uint32_t)additions;
}

bool pb_statistics_take(const struct pb_statistics_part *part, struct pb_moments *out_moments,
                        struct pb_histogram_part *out_histogram)
{
    pb_moments_begin(out_moments);
    if (part->valid == 0)
        return false;
    out_moments->valid = part->valid;
    out_moments->min = pb_statistics_value(part->min) + 0.0f; /* never -0 */
    out_moments->max = pb_statistics_value(part->max) + 0.0f;
    take_sum(part->sum, part->valid, &out_moments->sum);
    take_sum(part->squares, part->valid, &out_moments->squares);
    pb_histogram_part_begin(out_histogram, out_moments->min, out_moments->max);
    memcpy(out_histogram->lane[0], part->bin, sizeof part->bin);
    return true;
}
