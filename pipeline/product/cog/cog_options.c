/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/cog/cog_options.h"

#include "kernels/nodata.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/product/joint.h"

#include <math.h>

/* The average of two classes is no class, and integers may be classes: for measurements stored as
 * scaled integers the configuration has to select average. */
static enum pb_overviews overviews_of(const struct pb_product_env *env,
                                      const struct pb_cog_config *config)
{
    enum pb_overviews asked = config->overviews;
    const struct pb_ramp *ramp = config->paint.chosen;
    if (asked != PB_OVERVIEWS_AUTO)
        return asked;
    if (config->is_painted && !env->info->has_palette) /* painted values are measurements */
        return ramp != NULL && ramp->between == PB_RAMP_EXACT ? PB_OVERVIEWS_NEAREST
                                                              : PB_OVERVIEWS_AVERAGE;
    bool classes = !pb_type_is_float(config->type) || env->info->has_palette;
    return classes ? PB_OVERVIEWS_NEAREST : PB_OVERVIEWS_AVERAGE;
}

/* Finds classes in values made by steps: where(NDVI > 0.5, 1, 0) is a class in a float. */
static bool has_classes(const struct pb_product_env *env, const struct pb_cog_config *config,
                        uint32_t n_bands, const uint32_t *plane)
{
    bool found = config->classes.n > 0;
    for (uint32_t b = 0; b < n_bands && env->classes != NULL; b++)
        found = found || env->classes[plane[b]];
    return found;
}

static struct pb_pixel_join join_of(const struct pb_cog_config *config, uint32_t n_bands)
{
    if (!config->is_painted && !config->mask)
        return (struct pb_pixel_join){.planes = 0};
    return pb_joint_of(pb_cog_any(config, n_bands), n_bands - (config->paint.shade != NULL),
                       n_bands);
}

/* Sets the value of invalid bands in pixels that other bands make valid: the stored value counts
 * in the averages of pictures, within the displayed range; in averages of values each band has
 * its own pixels. */
static void set_fill(const struct pb_product_env *env, const struct pb_cog_config *config,
                     const uint32_t *plane, struct pb_cog_options *options)
{
    const uint32_t n = options->n_bands - (config->paint.shade != NULL);
    const double nodata = pb_joint_nodata(env, plane, n);
    const double *range = config->paint.range;
    if (!options->join.any || isnan(nodata))
        return;
    if (config->is_painted) {
        options->join.fill =
            (float)fmin(fmax(nodata, fmin(range[0], range[1])), fmax(range[0], range[1]));
    } else if (options->scale == 0 && !pb_type_is_float(options->type) &&
               pb_nodata_fits(options->type, nodata)) {
        options->fill = nodata;
        options->join.fill = options->type == PB_U8 ? (float)nodata : NAN;
    }
}

struct pb_cog_options pb_cog_options_of(const struct pb_product_env *env,
                                        const struct pb_cog_config *config, uint32_t n_bands,
                                        const struct pb_painter *painter)
{
    uint32_t shade = painter != NULL && painter->has_shade;
    bool rgb = n_bands - shade == 3 || config->paint.chosen != NULL;
    return (struct pb_cog_options){
        .grid = env->grid,
        .order = env->order,
        .tiles_in_flight = env->tiles_in_flight,
        .workers = env->workers,
        .directory = env->directory,
        .progress = env->progress,
        .checksum = env->checksum,
        .n_bands = n_bands,
        .painter = painter,
        .type = config->type,
        .compress = config->compress,
        .level = config->quality != 0 ? config->quality : config->level,
        .predictor = config->predictor,
        .block_px = config->blocksize,
        .overviews = overviews_of(env, config),
        .has_nodata = config->has_nodata,
        .nodata = config->nodata,
        .mask = config->mask != 0,
        .join = join_of(config, n_bands),
        .scale = config->has_scale     ? config->scale
                 : config->offset != 0 ? 1
                                       : 0,
        .offset = config->offset,
        .photometric = config->type == PB_U8 && rgb ? PB_PHOTOMETRIC_RGB : PB_PHOTOMETRIC_GRAY,
    };
}

void pb_cog_options_complete(const struct pb_product_env *env, const struct pb_cog_config *config,
                             const uint32_t *plane, struct pb_cog_options *options)
{
    if (config->overviews == PB_OVERVIEWS_AUTO && has_classes(env, config, options->n_bands, plane))
        options->overviews = PB_OVERVIEWS_NEAREST;
    set_fill(env, config, plane, options);
    if (pb_product_by_device(env, &config->product))
        options->parts = PB_COG_BLOCKS;
}
