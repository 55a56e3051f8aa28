/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Sizes of a quicklook: the level of the pyramid that it uses, and its final size. */
#include "pipeline/product/joint.h"
#include "pipeline/product/quicklook/quicklook.h"
#include "pipeline/product/quicklook/quicklook_inside.h"
#include "pipeline/product/quicklook/quicklook_sheet.h"

#include <math.h>

enum { BLOCK_PX = 256, SIZE_DEFAULT = 1024, SHOWN_MAX = PB_QUICKLOOK_SHOWN_MAX };

static int32_t size_of(const struct pb_product_config *config)
{
    int32_t size = ((const struct pb_quicklook_config *)config)->size_px;
    return size > 0 ? size : SIZE_DEFAULT;
}

int32_t pb_quicklook_side(const struct pb_product_env *env, const struct pb_product_config *config)
{
    const uint32_t n =
        pb_quicklook_is_sheet(config) ? (uint32_t)pb_product_band_count(env, config) : 0;
    return n > 0 ? pb_sheet_side(n, size_of(config)) : size_of(config);
}

struct pb_shrink pb_quicklook_sizes(const struct pb_product_env *env,
                                    const struct pb_product_config *config)
{
    struct pb_shrink how = {.image_w = env->grid->image_w, .image_h = env->grid->image_h};
    int32_t longer = how.image_w > how.image_h ? how.image_w : how.image_h;
    const int32_t side = pb_quicklook_side(env, config);
    while ((int64_t)pb_pyramid_size(longer, (uint32_t)how.level) >= 2 * (int64_t)side)
        how.level++;
    how.source_w = pb_pyramid_size(how.image_w, (uint32_t)how.level);
    how.source_h = pb_pyramid_size(how.image_h, (uint32_t)how.level);
    pb_shrink_fit(how.image_w, how.image_h, side, &how.target_w, &how.target_h);
    return how;
}

struct pb_grid pb_quicklook_grid(const struct pb_grid *grid, int32_t *out_block_px)
{
    struct pb_grid out = *grid;
    if (grid->cols == 1 && grid->rows == 1)
        out.side_px = (grid->side_px + BLOCK_PX - 1) / BLOCK_PX * BLOCK_PX;
    int32_t block_px = BLOCK_PX;
    while (out.side_px % block_px != 0)
        block_px /= 2;
    *out_block_px = block_px;
    return out;
}

bool pb_quicklook_shows_classes(const struct pb_product_env *env,
                                const struct pb_quicklook_config *config)
{
    const struct pb_ramp *ramp = config->paint.chosen;
    uint32_t plane[PB_BANDS_MAX];
    if (env->classes != NULL && pb_quicklook_planes(env, &config->product, plane, NULL) == 1 &&
        env->classes[plane[0]])
        return true;
    return env->info->has_palette || (ramp != NULL && ramp->between == PB_RAMP_EXACT);
}

struct pb_pixel_join pb_quicklook_join(const struct pb_product_env *env,
                                       const struct pb_product_config *config,
                                       const uint32_t *plane, uint32_t n)
{
    const struct pb_quicklook_config *quicklook = (const struct pb_quicklook_config *)config;
    const struct pb_paint_config *paint = &quicklook->paint;
    const uint32_t coloured = n - (paint->shade != NULL);
    if (pb_quicklook_is_sheet(config))
        return (struct pb_pixel_join){.planes = 0};
    struct pb_pixel_join join =
        pb_joint_of(pb_joint_any(quicklook->valid, coloured, true), coloured, n);
    const double nodata = pb_joint_nodata(env, plane, coloured), *range = paint->range;
    if (join.any && paint->has_range && !isnan(nodata)) /* within the displayed range */
        join.fill = (float)fmin(fmax(nodata, fmin(range[0], range[1])), fmax(range[0], range[1]));
    return join;
}

uint32_t pb_quicklook_shown_of(size_t n_bands, bool all)
{
    return all ? (uint32_t)n_bands : n_bands >= SHOWN_MAX ? SHOWN_MAX : 1;
}

int pb_quicklook_planes(const struct pb_product_env *env, const struct pb_product_config *config,
                        uint32_t *out_plane, struct pb_err *err)
{
    int n = pb_product_bands(env, config, out_plane, err);
    return n < 0 || config->n_bands > 0
               ? n
               : (int)pb_quicklook_shown_of((size_t)n, pb_quicklook_is_sheet(config));
}
