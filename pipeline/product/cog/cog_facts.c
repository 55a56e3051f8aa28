/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Units, scales, colours and palettes of a COG's bands. Those of the scene hold for a band that
 * passes through: whose values are the stored ones, perhaps masked, cropped or resampled to the
 * nearest. */
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/product.h"

#include <stdio.h>

enum { PALETTE = 2, ALPHA = 6 }; /* GDAL's numbers */

static void take_over(const struct pb_raster_info *info, int32_t number, uint32_t n_bands,
                      const struct pb_cog_config *cog, struct pb_band_facts *out)
{
    const struct pb_raster_band *band = &info->band[number - 1];
    bool as_stored = out->scale == 0;
    if (out->unit[0] == '\0')
        (void)snprintf(out->unit, sizeof out->unit, "%s", band->unit);
    if (as_stored && band->scale != 0 && (band->scale != 1 || band->offset != 0)) {
        out->scale = band->scale;
        out->offset = band->offset;
    }
    if (band->color > PALETTE && band->color != ALPHA)
        out->color = band->color;
    bool holds = cog->type == info->type && (cog->type == PB_U8 || cog->type == PB_U16);
    if (as_stored && info->has_palette && number == 1 && n_bands == 1 && holds)
        out->palette_of = number;
}

void pb_cog_facts(const struct pb_product_env *env, const struct pb_cog_config *cog, uint32_t plane,
                  uint32_t n_bands, struct pb_band_facts *out)
{
    int32_t origin = env->scene_bands != NULL ? env->scene_bands[plane] : 0;
    *out = (struct pb_band_facts){.scale = 0};
    if (cog->has_scale || cog->offset != 0) {
        out->scale = cog->has_scale ? cog->scale : 1;
        out->offset = cog->offset;
    }
    if (cog->unit != NULL)
        (void)snprintf(out->unit, sizeof out->unit, "%s", cog->unit);
    if (origin > 0)
        take_over(env->info, origin, n_bands, cog, out);
}
