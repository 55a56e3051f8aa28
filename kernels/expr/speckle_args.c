/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/speckle_args.h"

#include "kernels/expr/band_list.h"
#include "kernels/focal/moments_pixel.h"

#include <string.h>

float pb_speckle_args_noise(double looks, int32_t data)
{
    const double of_one_look = data == 0 ? 1.0 : 4.0 / 3.14159265358979323846 - 1.0;

    return (float)(of_one_look / looks);
}

pb_value pb_decibel(struct pb_builder *b, pb_value x)
{
    const pb_value ten = pb_builder_constant(b, 4.342944819032518f); /* 10 / ln(10) */

    return pb_builder_emit(b, PB_VM_MUL, pb_builder_emit(b, PB_VM_LOG, x, -1, -1), ten, -1);
}

/* Of x, from the mean and the variance around it. */
static pb_value estimate(struct pb_builder *b, pb_value x, pb_value mean, pb_value variance,
                         float noise)
{
    const pb_value c = pb_builder_constant(b, noise), zero = pb_builder_constant(b, 0.0f);
    const pb_value one_and_c = pb_builder_constant(b, 1.0f + noise);
    const pb_value square = pb_builder_emit(b, PB_VM_MUL, mean, mean, -1);
    const pb_value speckle = pb_builder_emit(b, PB_VM_MUL, square, c, -1);
    const pb_value rest = pb_builder_emit(b, PB_VM_SUB, variance, speckle, -1);
    const pb_value below = pb_builder_emit(b, PB_VM_MUL, one_and_c, variance, -1);
    /* Chosen, not computed, where there is no variance: 0 / 0 is invalid. */
    const pb_value k = pb_builder_emit(b, PB_VM_WHERE, pb_builder_emit(b, PB_VM_GT, rest, zero, -1),
                                       pb_builder_emit(b, PB_VM_DIV, rest, below, -1), zero);
    const pb_value above = pb_builder_emit(b, PB_VM_SUB, x, mean, -1);

    return pb_builder_emit(b, PB_VM_ADD, mean, pb_builder_emit(b, PB_VM_MUL, k, above, -1), -1);
}

int pb_speckle_args_define(struct pb_builder *b, const struct pb_items *bands,
                           enum pb_focal_kind kind, int32_t size, enum pb_edge edge, float noise)
{
    const size_t n = pb_band_list_count(bands, b);
    struct pb_focal mean, variance;
    int rc = 0;

    memset(&mean, 0, sizeof mean); /* all of it: equal operations are equal bytes */
    mean.kind = kind;
    mean.choice = PB_MOMENT_MEAN;
    mean.edge = edge;
    mean.radius = size / 2;
    variance = mean;
    variance.choice = PB_MOMENT_VARIANCE;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pb_band_pick pick = pb_band_list_at(bands, b, i);

        rc = pb_builder_define(b, pick.out,
                               estimate(b, pick.value, pb_builder_focal(b, &mean, pick.value),
                                        pb_builder_focal(b, &variance, pick.value), noise));
    }
    return rc;
}
