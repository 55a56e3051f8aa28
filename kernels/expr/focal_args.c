/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/focal_args.h"

#include "kernels/expr/band_list.h"

#include <string.h>

enum pb_edge pb_focal_args_edge(const struct pb_arg *edge)
{
    const char *const name = edge->n > 0 ? edge->items[0].text : "reflect";

    return strcmp(name, "clamp") == 0    ? PB_EDGE_CLAMP
           : strcmp(name, "nodata") == 0 ? PB_EDGE_NODATA
                                         : PB_EDGE_REFLECT;
}

int pb_focal_args_radius(const struct pb_arg *size, const char *step, struct pb_builder *b)
{
    const int side = size->n > 0 ? (int)size->items[0].num : 3;

    if (side < 3 || side > PB_FOCAL_SIDE_MAX || side % 2 == 0)
        return pb_builder_mistake(b, PB_DIAG_VALUE, size->items, 0,
                                  "%s: size is %d; it must be odd, 3 to %d", step, side,
                                  PB_FOCAL_SIDE_MAX);
    return side / 2;
}

int pb_focal_args_define(const struct pb_arg *bands, const struct pb_focal *focal,
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
