/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/cog/cog_blocks.h"

#include "pipeline/codec/predictor.h"
#include "pipeline/cog/cog_format.h"

#include <stdio.h>

enum { OLD_DEFLATE = 32946, DEFLATE = 8 };

/* Returns true if the product's bands are those of the file. */
static bool passes(const struct pb_product_env *env, const struct pb_cog_options *options,
                   const uint32_t *plane)
{
    const struct pb_codec *codec = pb_codec_of(options->compress);
    bool all = env->kept != NULL && env->info->complex.kind == PB_COMPLEX_NONE &&
               (int32_t)options->n_bands == env->info->n_bands && codec->encode != NULL &&
               codec->bands == 0;
    for (uint32_t b = 0; all && b < options->n_bands; b++)
        all = env->kept[plane[b]].band == (int32_t)b + 1;
    return all;
}

/* Returns NULL if values are stored as in the file, else the difference. */
static const char *values_differ(const struct pb_product_env *env,
                                 const struct pb_cog_options *options)
{
    uint32_t n_rest = pb_rest_planes(options->type);
    if (options->painter != NULL)
        return "they are a picture";
    if (options->scale != 0)
        return "cog.scale or cog.offset is given";
    if (options->type != env->info->type)
        return "the file's pixels are of another type (cog.type)";
    if (options->type == PB_F64)
        return "float64 may lose digits";
    for (uint32_t b = 0; b < options->n_bands; b++)
        if (options->n_rest[b] != n_rest)
            return "steps take the values rounded";
    return NULL;
}

static const char *predictor_name(int predictor)
{
    return predictor == PB_PREDICTOR_FLOAT        ? "float"
           : predictor == PB_PREDICTOR_HORIZONTAL ? "horizontal"
                                                  : "none";
}

/* Returns true if the file's blocks have the product's layout and compression; else writes the
 * reason. */
static bool is_same_format(const struct pb_raster_info *info, const struct pb_block_format *format,
                           char *why, size_t n)
{
    uint16_t codec = info->tiff_compression == OLD_DEFLATE ? DEFLATE : info->tiff_compression;
    if (!info->own_blocks)
        (void)snprintf(why, n, "GDAL decodes the file");
    else if (!info->tiled)
        (void)snprintf(why, n, "the file has strips");
    else if (info->n_bands > 1 && !info->pixel_interleaved)
        (void)snprintf(why, n, "each of the file's is of one band");
    else if (info->big_endian && pb_type_bytes(info->type) > 1)
        (void)snprintf(why, n, "the file is big-endian");
    else if (codec != format->codec->tiff_compression)
        (void)snprintf(why, n, "the file has %s (cog.compress)", info->compression);
    else if (info->tiff_predictor != format->predictor)
        (void)snprintf(why, n, "the file's have predictor %s (cog.predictor)",
                       predictor_name(info->tiff_predictor));
    else if (info->block_w != format->block_px || info->block_h != format->block_px)
        (void)snprintf(why, n, "the file's are of %d x %d px (cog.blocksize)", (int)info->block_w,
                       (int)info->block_h);
    else
        return true;
    return false;
}

/* Returns true if the product's blocks are aligned with the file's. */
static bool lies_on(const struct pb_product_env *env, int32_t side, struct pb_same_blocks *out)
{
    const struct pb_geometry *g = &env->geometry; /* mapped from the scene's grid */
    if (g->frame != 0 || !pb_map_is_shift(&g->map) || g->map.offset_x > 0 || g->map.offset_y > 0)
        return false;
    out->dx = (int32_t)-g->map.offset_x;
    out->dy = (int32_t)-g->map.offset_y;
    out->width = env->info->width;
    out->height = env->info->height;
    return out->dx % side == 0 && out->dy % side == 0 && g->w <= out->width - out->dx &&
           g->h <= out->height - out->dy;
}

/* Returns true if a pixel is invalid exactly where the file has the product's nodata value. An
 * infinity of floats is invalid too. */
static bool is_certain(const struct pb_product_env *env, const struct pb_cog_options *options,
                       const uint32_t *plane)
{
    bool certain = !env->info->has_mask && options->has_nodata && !pb_type_is_float(options->type);
    for (uint32_t b = 0; certain && b < options->n_bands; b++) {
        const struct pb_plane_kept *kept = &env->kept[plane[b]];
        certain = kept->untouched && kept->has_nodata && kept->nodata == options->nodata;
    }
    return certain;
}

void pb_cog_blocks(const struct pb_product_env *env, const struct pb_cog_config *config,
                   const struct pb_cog_options *options, const uint32_t *plane,
                   struct pb_cog_blocks *out)
{
    struct pb_block_format format = {.codec = &pb_codec_none};
    *out = (struct pb_cog_blocks){.passes = passes(env, options, plane)};
    if (!out->passes || pb_cog_format(options, NULL, &format) != 0)
        return;
    const char *why = config->blocks == PB_COG_BLOCKS_ENCODE ? "cog.blocks is encode"
                      : config->level != 0                   ? "cog.level is given"
                                                             : values_differ(env, options);
    if (why == NULL && !is_same_format(env->info, &format, out->why, sizeof out->why))
        return;
    if (why == NULL && !lies_on(env, options->block_px, &out->same))
        why = "the crop begins within one of the file's";
    if (why != NULL)
        (void)snprintf(out->why, sizeof out->why, "%s", why);
    out->copied = why == NULL;
    out->same.certain = is_certain(env, options, plane);
}
