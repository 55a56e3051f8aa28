/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/focal_args.h"

#include "kernels/expr/band_list.h"

#include <math.h>

enum pb_edge pb_focal_args_edge(int32_t edge)
{
    static const enum pb_edge edges[] = {PB_EDGE_REFLECT, PB_EDGE_CLAMP, PB_EDGE_NODATA,
                                         PB_EDGE_EXTRAPOLATE};

    return edges[edge];
}

void pb_focal_args_gaussian(struct pb_focal *focal, double sigma)
{
    const int side = 2 * focal->radius + 1;
    double weight[PB_FOCAL_SIDE_MAX], sum = 0;

    if (sigma <= 0)
        sigma = 0.3 * ((side - 1) * 0.5 - 1) + 0.8;
    for (int i = 0; i < side; i++) {
        const double d = i - focal->radius;

        weight[i] = exp(-d * d / (2 * sigma * sigma));
        sum += weight[i];
    }
    for (int i = 0; i < side; i++)
        focal->weight_x[i] = focal->weight_y[i] = (float)(weight[i] / sum);
}

int pb_focal_args_define(const struct pb_items *bands, const struct pb_focal *focal,
                         struct pb_builder *b)
{
    const size_t n = pb_band_list_count(bands, b);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct pb_band_pick pick = pb_band_list_at(bands, b, i);

        rc = pb_builder_define(b, pick.out,
                               focal ? pb_builder_focal(b, focal, pick.value) : PB_VALUE_POISON);
    }
    return rc;
}
