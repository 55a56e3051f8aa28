/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The COG as a product: selects the bands, takes over the scene's georeference and metadata;
 * cog_writer.c does the rest. The tags are made by create, so that metadata which cannot be
 * written fails before the first pixel. */
#include "config/base/json_writer.h"
#include "pipeline/device/engine_limits.h"
#include "pipeline/cog/cog_writer.h"
#include "pipeline/cog/device_blocks.h"
#include "pipeline/codec/predictor.h"
#include "pipeline/paint/painter.h"
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/joint.h"
#include "pipeline/product/product.h"
#include "pipeline/product/cog/cog_asset.h"
#include "pipeline/product/cog/cog_blocks.h"
#include "pipeline/product/cog/cog_options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct cog {
    const struct pb_product_env *env;
    const struct pb_cog_config *config;
    struct pb_cog_writer *writer;
    struct pb_tiff_tags tags;
    struct pb_painter painter; /* painter of pictures */
    struct pb_ramp_table *ramp;
    uint32_t n_bands;
    uint32_t n_rest;
    uint32_t plane[PB_BANDS_MAX];              /* plane of the tile, by band of the product */
    uint32_t rest[PB_REST_MAX * PB_BANDS_MAX]; /* residual planes of the tile, in their order */
    char file[sizeof((struct pb_product_result *)NULL)->file];
    char path[4096 + sizeof((struct pb_product_result *)NULL)->file];
};

static const struct pb_cog_config *cog_of(const struct pb_product_config *config)
{
    return (const struct pb_cog_config *)config;
}

static enum pb_digits cog_digits(const struct pb_product_config *config)
{
    const struct pb_cog_config *cog = cog_of(config);
    if (cog->is_painted || cog->has_scale || cog->offset != 0)
        return PB_DIGITS_SOME;
    return cog->type == PB_F32             ? PB_DIGITS_FLOAT
           : pb_rest_planes(cog->type) > 0 ? PB_DIGITS_ALL
                                           : PB_DIGITS_SOME;
}

/* Lists the residual planes of the product's bands: their count per band, and their indices in
 * out_rest. */
static uint32_t list_rests(const struct pb_product_env *env, const struct pb_cog_config *config,
                           const uint32_t *plane, struct pb_cog_options *options,
                           uint32_t *out_rest)
{
    uint32_t n = 0;
    if (env->rest == NULL || cog_digits(&config->product) != PB_DIGITS_ALL)
        return 0;
    for (uint32_t b = 0; b < options->n_bands; b++) {
        const struct pb_plane_rest *rest = &env->rest[plane[b]];
        options->n_rest[b] = (uint8_t)rest->n;
        for (uint32_t k = 0; k < rest->n; k++)
            out_rest[n++] = rest->first + k;
    }
    return n;
}

/* Finds the blocks of the scene's file if they have the product's format. */
static struct pb_same_blocks same_blocks(const struct cog *cog,
                                         const struct pb_cog_options *options)
{
    struct pb_cog_blocks blocks;
    pb_cog_blocks(cog->env, cog->config, options, cog->plane, &blocks);
    if (blocks.copied)
        blocks.same.raster = cog->env->raster;
    return blocks.same;
}

static int32_t cog_block_px(const struct pb_product_config *config)
{
    return cog_of(config)->blocksize;
}

/* Blocks that are not compressed have the same place in any order. */
static bool cog_wants_rows(const struct pb_product_config *config)
{
    return cog_of(config)->compress != PB_COMPRESS_NONE;
}

/* Options that decide sizes; *painter is a part of them. */
static struct pb_cog_options sizing_options(const struct pb_product_env *env,
                                            const struct pb_product_config *config,
                                            struct pb_painter *painter)
{
    const struct pb_cog_config *cog = cog_of(config);
    uint32_t n = (uint32_t)pb_product_band_count(env, config);
    *painter = pb_cog_painter(cog, n, NULL);
    struct pb_cog_options options =
        pb_cog_options_of(env, cog, n, cog->is_painted ? painter : NULL);
    uint32_t plane[PB_BANDS_MAX], rest[PB_REST_MAX * PB_BANDS_MAX];
    if (pb_product_bands(env, config, plane, NULL) == (int)n) {
        (void)list_rests(env, cog, plane, &options, rest);
        pb_cog_options_complete(env, cog, plane, &options);
    }
    return options;
}

static uint64_t cog_file_bytes(const struct pb_product_env *env,
                               const struct pb_product_config *config, bool *out_packed)
{
    struct pb_painter painter;
    const struct pb_cog_options options = sizing_options(env, config, &painter);
    return pb_cog_writer_raw_bytes(&options, out_packed);
}

static uint64_t cog_bytes(const struct pb_product_env *env, const struct pb_product_config *config)
{
    struct pb_painter painter;
    const struct pb_ramp *ramp = cog_of(config)->paint.chosen;
    const struct pb_cog_options options = sizing_options(env, config, &painter);
    uint64_t bytes = pb_cog_writer_bytes(&options);
    uint64_t table = ramp != NULL ? pb_ramp_table_bytes(ramp) : 0;
    return bytes == UINT64_MAX ? UINT64_MAX : bytes + table + sizeof(struct cog);
}

/* Makes the tags, and finds the meaning of the colours. */
static int make_tags(struct cog *cog, struct pb_cog_options *options, struct pb_err *err)
{
    const char *names[PB_BANDS_MAX];
    struct pb_band_facts facts[PB_BANDS_MAX] = {{.scale = 0}};
    for (uint32_t b = 0; b < cog->n_bands && !cog->config->is_painted; b++) {
        pb_cog_facts(cog->env, cog->config, cog->plane[b], cog->n_bands, &facts[b]);
        if (options->photometric == PB_PHOTOMETRIC_RGB)
            facts[b].color = 0; /* the photometric interpretation defines it */
    }
    struct pb_geo_extra extra = {
        .band_names = names,
        .facts = facts,
        .n_bands = pb_cog_band_names(cog->env, cog->config, cog->n_bands, names),
        .has_nodata = !options->mask && !cog->config->has_alpha, /* default: pb_cog_writer_nodata */
        .nodata = pb_cog_writer_nodata(options),
        .type = options->type,
        .grid = &cog->env->geometry,
        .placed = cog->env->placed,
    };
    if (cog->n_bands == 1 && facts[0].n_colours > 0)
        options->photometric = PB_PHOTOMETRIC_PALETTE;
    return pb_raster_geo_tags(cog->env->raster, &extra, err, &cog->tags);
}

static int make_painter(struct cog *cog, struct pb_err *err)
{
    const struct pb_cog_config *config = cog->config;
    cog->ramp = pb_cog_ramp(config);
    cog->painter = pb_cog_painter(config, cog->n_bands, cog->ramp);
    cog->painter.fill = pb_joint_nodata(cog->env, cog->plane, cog->painter.n_planes);
    return config->paint.chosen == NULL || cog->ramp != NULL
               ? 0
               : pb_fail(err, PB_E_MEMORY, "no memory for a product's colours");
}

static void cog_destroy(void *product)
{
    struct cog *cog = product;
    if (cog == NULL)
        return;
    pb_cog_writer_destroy(cog->writer);
    pb_tiff_tags_free(&cog->tags);
    pb_ramp_table_destroy(cog->ramp);
    free(cog);
}

static int cog_create(const struct pb_product_env *env, const struct pb_product_config *config,
                      struct pb_err *err, void **out_product)
{
    struct cog *cog = calloc(1, sizeof *cog);
    if (cog == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a product");
    cog->env = env;
    cog->config = cog_of(config);
    int rc = pb_product_bands(env, config, cog->plane, err);
    if (rc >= 0) {
        cog->n_bands = (uint32_t)rc;
        rc = make_painter(cog, err);
    }
    if (rc == 0) {
        struct pb_cog_options options = pb_cog_options_of(
            env, cog->config, cog->n_bands, cog->config->is_painted ? &cog->painter : NULL);
        pb_cog_options_complete(env, cog->config, cog->plane, &options);
        cog->n_rest = list_rests(env, cog->config, cog->plane, &options, cog->rest);
        options.same = same_blocks(cog, &options);
        pb_product_file(env, config, cog->file, sizeof cog->file);
        (void)snprintf(cog->path, sizeof cog->path, "%s/%s", env->directory, cog->file);
        options.path = cog->path;
        options.tags = &cog->tags;
        rc = make_tags(cog, &options, err);
        if (rc == 0)
            rc = pb_cog_writer_create(&options, err, &cog->writer);
    }
    if (rc != 0) {
        cog_destroy(cog);
        return rc;
    }
    *out_product = cog;
    return 0;
}

static int cog_tile(void *product, const struct pb_tile *tile, const struct pb_tile_planes *pixels,
                    uint32_t worker, struct pb_err *err)
{
    struct cog *cog = product;
    const float *planes[PB_COG_PLANES_MAX];
    for (uint32_t b = 0; b < cog->n_bands && pixels->plane_px > 0; b++)
        planes[b] = pixels->data + cog->plane[b] * pixels->plane_px;
    for (uint32_t k = 0; k < cog->n_rest && pixels->plane_px > 0; k++)
        planes[cog->n_bands + k] = pixels->rest + cog->rest[k] * pixels->plane_px;
    return pb_cog_writer_tile(cog->writer, &tile->core, pixels->plane_px > 0 ? planes : NULL,
                              worker, err);
}

/* Computes the options of a product before its creation, and whether the scene's blocks can be
 * copied. Returns the count of bands. */
static int look_ahead(const struct pb_product_env *env, const struct pb_cog_config *config,
                      struct pb_painter *painter, uint32_t *plane, struct pb_cog_options *options,
                      struct pb_cog_blocks *blocks)
{
    uint32_t rest[PB_REST_MAX * PB_BANDS_MAX];
    int n = pb_product_bands(env, &config->product, plane, NULL);
    *blocks = (struct pb_cog_blocks){.passes = false};
    if (n < 1)
        return n;
    *painter = pb_cog_painter(config, (uint32_t)n, NULL);
    painter->fill = pb_joint_nodata(env, plane, painter->n_planes);
    *options = pb_cog_options_of(env, config, (uint32_t)n, config->is_painted ? painter : NULL);
    (void)list_rests(env, config, plane, options, rest);
    pb_cog_options_complete(env, config, plane, options);
    pb_cog_blocks(env, config, options, plane, blocks);
    return n;
}

static const char *cog_on_device(const struct pb_product_env *env,
                                 const struct pb_product_config *config,
                                 struct pb_device_blocks *out)
{
    uint32_t plane[PB_BANDS_MAX];
    struct pb_painter painter;
    struct pb_cog_options options;
    struct pb_cog_blocks blocks;
    int n = look_ahead(env, cog_of(config), &painter, plane, &options, &blocks);
    return n < 1 ? pb_limit_reason(PB_LIMIT_PRODUCTS_UNKNOWN)
           : blocks.copied
               ? pb_limit_reason(PB_LIMIT_PRODUCTS_COPIED)
               : pb_device_blocks_of(&options, plane,
                                     cog_of(config)->steps.n > 0 ? &cog_of(config)->steps : NULL,
                                     out);
}

static void cog_expect(void *product, const struct pb_cog_block *block)
{
    pb_cog_writer_expect(((struct cog *)product)->writer, block);
}

static int cog_block(void *product, const struct pb_cog_block *block, uint32_t worker,
                     struct pb_err *err)
{
    return pb_cog_writer_block(((struct cog *)product)->writer, block, worker, err);
}

static int cog_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                      struct pb_err *err, struct pb_product_result *out_result)
{
    struct cog *cog = product;
    struct pb_product_result result = {
        .kind = &pb_kind_cog,
        .name = cog->config->product.name,
        .media_type = "image/tiff; application=geotiff; profile=cloud-optimized",
        .config = &cog->config->product,
        .width = cog->env->grid->image_w,
        .height = cog->env->grid->image_h,
    };
    struct pb_cog_summary summary;
    (void)earlier;
    (void)n_earlier;
    (void)snprintf(result.file, sizeof result.file, "%s", cog->file);
    int rc = pb_cog_writer_finish(cog->writer, err, &summary);
    if (rc != 0)
        return rc;
    result.bytes = summary.bytes;
    result.moved_off_nodata = summary.moved;
    (void)snprintf(result.checksum, sizeof result.checksum, "%s", summary.checksum);
    *out_result = result;
    return 0;
}

/* Explains, for a product with the bands of the file, whether its blocks are copied or encoded. */
static void explain_blocks(const struct pb_product_env *env, const struct pb_cog_config *config,
                           struct pb_json *json)
{
    uint32_t plane[PB_BANDS_MAX];
    struct pb_painter painter;
    struct pb_cog_options options;
    struct pb_cog_blocks blocks;
    (void)look_ahead(env, config, &painter, plane, &options, &blocks);
    if (blocks.passes)
        pb_json_string(json, "blocks", blocks.copied ? "copied" : "encoded");
    if (blocks.passes && !blocks.copied)
        pb_json_string(json, "blocks_why", blocks.why);
}

/* Explains the joint validity of several bands. */
static void explain_valid(const struct pb_product_env *env, const struct pb_cog_config *config,
                          struct pb_json *json)
{
    const uint32_t n = (uint32_t)pb_product_band_count(env, &config->product);
    if ((config->is_painted || config->mask) && n > 1)
        pb_json_string(json, "valid", pb_cog_any(config, n) ? "any" : "all");
}

/* Returns true if all bands have the scale and offset of the first, which is stored in *out. */
static bool share_scale(const struct pb_product_env *env, const struct pb_cog_config *cog,
                        struct pb_band_facts *out)
{
    uint32_t plane[PB_BANDS_MAX];
    int n = pb_product_bands(env, &cog->product, plane, NULL);
    bool same = n > 0;
    for (int b = 0; b < n && same; b++) {
        struct pb_band_facts facts;
        pb_cog_facts(env, cog, plane[b], (uint32_t)n, &facts);
        *out = b == 0 ? facts : *out;
        same = facts.scale != 0 && facts.scale == out->scale && facts.offset == out->offset;
    }
    return same;
}

static void cog_explain(const struct pb_product_env *env, const struct pb_product_config *config,
                        struct pb_json *json)
{
    const struct pb_cog_config *cog = cog_of(config);
    char ramp[200];
    bool has_nodata = !cog->mask && !(cog->is_painted && cog->has_alpha);
    pb_json_int(json, "width", env->geometry.w);
    pb_json_int(json, "height", env->geometry.h);
    pb_json_string(json, "data_type", pb_type_name(cog->type));
    pb_json_string(json, "compress", pb_compress_name(cog->compress));
    explain_blocks(env, cog, json);
    if (has_nodata && isnan(cog->nodata))
        pb_json_string(json, "nodata", "nan");
    else if (has_nodata)
        pb_json_number(json, "nodata", cog->nodata);
    pb_json_bool(json, "mask", cog->mask != 0);
    pb_json_bool(json, "alpha", cog->is_painted && cog->has_alpha);
    explain_valid(env, cog, json);
    struct pb_band_facts facts = {.scale = 0};
    if (!cog->is_painted && share_scale(env, cog, &facts)) {
        pb_json_number(json, "scale", facts.scale);
        pb_json_number(json, "offset", facts.offset);
    }
    pb_json_string(json, "ramp", pb_paint_ramp_text(&cog->paint, ramp, sizeof ramp));
}

const struct pb_product_type pb_product_cog = {
    .kind = &pb_kind_cog,
    .suffix = ".tif",
    .asset = "data",
    .title = "Data",
    .role = "data",
    .extension = "raster/v2.0.0",
    .describe = pb_cog_describe,
    .stored = pb_cog_stored,
    .bytes = cog_bytes,
    .file_bytes = cog_file_bytes,
    .block_px = cog_block_px,
    .wants_rows = cog_wants_rows,
    .explain = cog_explain,
    .digits = cog_digits,
    .names_classes = pb_cog_names_classes,
    .create = cog_create,
    .tile = cog_tile,
    .on_device = cog_on_device,
    .block = cog_block,
    .expect = cog_expect,
    .keeps_blocks = true,
    .finish = cog_finish,
    .destroy = cog_destroy,
};
