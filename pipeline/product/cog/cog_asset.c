/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/cog/cog_asset.h"

#include "pipeline/codec/predictor.h"
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/stac/stac_asset.h"
#include "pipeline/product/stac/stac_classes.h"
#include "pipeline/product/stac/stac_presets.h"

static const struct pb_cog_config *cog_of(const struct pb_product_config *config)
{
    return (const struct pb_cog_config *)config;
}

size_t pb_cog_band_names(const struct pb_product_env *env, const struct pb_cog_config *config,
                         size_t n_planes, const char *names[PB_BANDS_MAX])
{
    static const char *const colours[] = {"red", "green", "blue"};
    bool ramp = config->paint.chosen != NULL;
    size_t n = ramp ? 3 : n_planes - (config->paint.shade != NULL);
    for (size_t b = 0; b < n; b++)
        names[b] = ramp ? colours[b] : pb_product_band_name(env, &config->product, b);
    if (config->has_alpha)
        names[n++] = "alpha";
    return n;
}

bool pb_cog_names_classes(const struct pb_product_env *env, const struct pb_product_config *config)
{
    const struct pb_cog_config *cog = cog_of(config);
    uint32_t plane[PB_BANDS_MAX];
    bool found = cog->classes.n > 0;
    int n = cog->is_painted || pb_type_is_float(cog->type)
                ? 0
                : pb_product_bands(env, config, plane, NULL);
    for (int b = 0; b < n && !found; b++) {
        struct pb_band_facts facts;
        pb_cog_facts(env, cog, plane[b], (uint32_t)n, &facts);
        found = facts.scale == 0 && pb_stac_has_preset(env, env->band_names[plane[b]]);
    }
    return found;
}

bool pb_cog_stored(const struct pb_product_env *env, const struct pb_product_config *config,
                   uint32_t plane, struct pb_stored_band *out)
{
    const struct pb_cog_config *cog = cog_of(config);
    uint32_t planes[PB_BANDS_MAX];
    int n = cog->is_painted ? 0 : pb_product_bands(env, config, planes, NULL);
    for (int b = 0; b < n; b++)
        if (planes[b] == plane) {
            struct pb_band_facts facts;
            pb_cog_facts(env, cog, plane, (uint32_t)n, &facts);
            bool plain = !cog->has_scale && cog->offset == 0;
            *out = (struct pb_stored_band){.number = (uint32_t)b + 1,
                                           .scale = plain ? 1 : facts.scale,
                                           .offset = plain ? 0 : facts.offset};
            return true;
        }
    return false;
}

int pb_cog_describe(const struct pb_stac_item *item, const struct pb_product_result *result,
                    struct pb_err *err)
{
    const struct pb_cog_config *cog = cog_of(result->config);
    struct pb_band_facts facts[PB_BANDS_MAX];
    uint32_t plane[PB_BANDS_MAX];
    int n = pb_product_bands(item->env, result->config, plane, err);
    for (int b = 0; b < n; b++)
        pb_cog_facts(item->env, cog, plane[b], (uint32_t)n, &facts[b]);
    const bool palette = n == 1 && facts[0].n_colours > 0;
    const struct pb_stac_classes classes = {
        .names = &cog->classes,
        .palette = palette ? facts[0].colours : NULL,
        .n_palette = palette ? facts[0].n_colours : 0,
        .has_nodata = cog->has_nodata,
        .nodata = cog->nodata,
    };
    const struct pb_stac_pixels pixels = {
        .type = cog->type,
        .has_nodata = cog->has_nodata,
        .nodata = cog->nodata,
        .has_mask = cog->mask != 0,
        .facts = facts,
        .classes = &classes,
    };
    if (n < 0)
        return n;
    if (result->moved_off_nodata > 0)
        pb_json_int(item->json, "pushbroom:moved_off_nodata", (int64_t)result->moved_off_nodata);
    const char *names[PB_BANDS_MAX];
    if (!cog->is_painted)
        return pb_stac_raster(item, result->config, &pixels, err);
    pb_stac_legend(item, &cog->paint);
    pb_stac_levels(item, names, pb_cog_band_names(item->env, cog, (size_t)n, names), &pixels);
    return 0;
}
