/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/expr/scene_pairs.h"

#include <errno.h>
#include <stdlib.h>

int pb_scene_pairs_check(const struct pb_scene_pairs *pairs, struct pb_builder *b)
{
    if (pairs->bands->n == pairs->others->n)
        return 0;
    return pb_builder_wrong(b, pairs->others, "'%s' has %zu entries, '%s' %zu; give one for each",
                            pairs->bands_name, pairs->bands->n, pairs->others_name,
                            pairs->others->n);
}

pb_value pb_scene_pairs_emit(const struct pb_scene_pairs *pairs, struct pb_builder *b,
                             enum pb_vm_op op, size_t i)
{
    const pb_value x = pb_band_list_at(pairs->bands, b, i).value;
    const struct pb_band_pick other = pb_band_list_at(pairs->others, b, i);
    const int32_t grid = x == PB_VALUE_POISON ? -1 : pb_builder_grid(b, x);
    pb_value y = other.value;

    if (grid >= 0)
        y = pb_builder_resample(b, pb_grid_args_how(&pairs->method, b, &other, grid), y, grid);
    return pb_builder_emit(b, op, x, y, -1);
}

int pb_scene_pairs_define(const struct pb_scene_pairs *pairs, struct pb_builder *b,
                          enum pb_vm_op op)
{
    const size_t n = pairs->bands->n;
    pb_value *const values = calloc(n + 1, sizeof *values);
    int rc = values ? pb_scene_pairs_check(pairs, b) : -ENOMEM;

    for (size_t i = 0; i < n && rc == 0; i++)
        values[i] = pb_scene_pairs_emit(pairs, b, op, i);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = pb_builder_define(b, pb_item_band(&pairs->bands->items[i]), values[i]);
    free(values);
    return rc;
}
