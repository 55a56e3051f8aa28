/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/joint.h"
#include "pipeline/product/product.h"

#include <math.h>

enum { COLOURS = 3 };

bool pb_joint_any(int32_t valid, uint32_t n, bool picture)
{
    return valid == PB_JOINT_ANY || (valid == PB_JOINT_AUTO && picture && n == COLOURS);
}

struct pb_pixel_join pb_joint_of(bool any, uint32_t n, uint32_t n_planes)
{
    const uint32_t deciding = any ? n : n_planes;
    return (struct pb_pixel_join){
        .planes = deciding > 1 ? pb_join_first(deciding) : 0, .any = any, .fill = NAN};
}

double pb_joint_nodata(const struct pb_product_env *env, const uint32_t *plane, uint32_t n)
{
    double nodata = (double)NAN;
    for (uint32_t b = 0; b < n; b++) {
        const struct pb_plane_kept *kept = env->kept != NULL ? &env->kept[plane[b]] : NULL;
        if (kept == NULL || kept->band == 0 || !kept->has_nodata || !isfinite(kept->nodata) ||
            (b > 0 && kept->nodata != nodata))
            return (double)NAN;
        nodata = kept->nodata;
    }
    return nodata;
}
