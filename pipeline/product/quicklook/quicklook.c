/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A small picture of the scene: one band as grey, by a ramp or in the colours of the scene's own
 * table, three as red, green and blue (quicklook_colours.h), always with alpha, transparent
 * where all shown bands are invalid, or any is (joint.h); or a sheet of such pictures, one for
 * each band (quicklook_sheet.h).
 *
 * While tiles arrive, a pyramid of averages halves the shown bands until the longer side is
 * below twice the requested size; that level is in memory. If a device halves them, it delivers
 * the blocks of that level (quicklook_blocks.c). finish() reduces the level to the exact size by
 * an area average (for classes both steps select the nearest pixel), paints the pixels and
 * writes the PNG. Pyramid, average and percentiles have one order of additions each, therefore
 * the bytes depend on the pixels only.
 *
 * North is up as far as whole pixels allow (quicklook_turn.h): rows are reversed in a south-up
 * scene or a radar scene of an ascending orbit, rows and columns are exchanged in a scene turned
 * by about 90 degrees. A scene without a transform uses its GCPs or RPCs; a scene without
 * georeferencing is shown as stored. No pixel is resampled for it: in a scene that is turned by
 * 30 degrees, north is 30 degrees from the top. */
#include "config/base/json_writer.h"
#include "pipeline/io/file_out.h"
#include "pipeline/product/quicklook/png.h"
#include "pipeline/product/product.h"
#include "pipeline/product/quicklook/quicklook.h"
#include "pipeline/product/quicklook/quicklook_colours.h"
#include "pipeline/product/quicklook/quicklook_inside.h"
#include "pipeline/product/quicklook/quicklook_sheet.h"
#include "pipeline/product/quicklook/quicklook_turn.h"
#include "pipeline/product/stac/stac_asset.h"
#include "pipeline/cog/halve.h"
#include "pipeline/cog/pyramid.h"
#include "pipeline/product/quicklook/shrink.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pb_quicklook_config *quicklook_of(const struct pb_product_config *config)
{
    return (const struct pb_quicklook_config *)config;
}

static struct pb_pyramid_options pyramid_options(const struct pb_product_env *env, bool classes,
                                                 const struct pb_grid *grid, int32_t block_px,
                                                 int32_t level, uint32_t n_bands)
{
    return (struct pb_pyramid_options){
        .grid = grid,
        .order = env->order,
        .tiles_in_flight = env->tiles_in_flight,
        .workers = env->workers,
        .block_px = block_px,
        .levels = (uint32_t)level,
        .n_bands = n_bands,
        .nearest = classes,
    };
}

static uint64_t quicklook_bytes(const struct pb_product_env *env,
                                const struct pb_product_config *config)
{
    bool shaded = quicklook_of(config)->paint.shade != NULL, sheet = pb_quicklook_is_sheet(config);
    uint32_t n = pb_quicklook_shown_of(pb_product_band_count(env, config), shaded || sheet);
    struct pb_shrink how = pb_quicklook_sizes(env, config);
    uint64_t target = (uint64_t)how.target_w * (uint64_t)how.target_h;
    uint32_t channels = pb_quicklook_channels(env, quicklook_of(config), sheet ? 1 : n - shaded);
    struct pb_sheet of = pb_sheet_of(sheet ? n : 1, how.target_w, how.target_h);
    int32_t longer =
        (int32_t)of.columns * (how.target_w > how.target_h ? how.target_w : how.target_h) +
        (int32_t)of.columns * (PB_SHEET_GAP_PX + PB_SHEET_LABEL_PX);
    uint64_t bytes = sizeof(struct quicklook) +
                     n * (uint64_t)how.source_w * (uint64_t)how.source_h * sizeof(float) +
                     n * target * sizeof(float) +
                     (sheet ? n : 1) * (sizeof(struct pb_quicklook_colours) +
                                        pb_quicklook_colours_bytes(env, quicklook_of(config))) +
                     pb_png_bytes((uint32_t)longer, (int)channels) + PB_FILE_OUT_BYTES;
    if (how.level > 0 && !pb_product_by_device(env, config)) {
        int32_t block_px;
        struct pb_grid grid = pb_quicklook_grid(env->grid, &block_px);
        bool classes = pb_quicklook_shows_classes(env, quicklook_of(config));
        struct pb_pyramid_options options =
            pyramid_options(env, classes, &grid, block_px, how.level, n);
        uint64_t pyramid = pb_pyramid_bytes(&options);
        if (pyramid == UINT64_MAX)
            return UINT64_MAX;
        bytes += pyramid;
    }
    return bytes;
}

static void quicklook_destroy(void *product)
{
    struct quicklook *q = product;
    if (q == NULL)
        return;
    pb_pyramid_destroy(q->pyramid);
    for (uint32_t b = 0; b < PB_QUICKLOOK_PLANES_MAX; b++) {
        free(q->level[b]);
        free(q->target[b]);
    }
    for (uint32_t i = 0; i < q->n_pictures && q->colours != NULL; i++)
        pb_quicklook_colours_fini(&q->colours[i]);
    free(q->colours);
    free(q);
}

/* Copies pixels into the level in memory. Blocks do not overlap: no lock. */
static void keep_block(struct quicklook *q, int32_t x, int32_t y, int32_t w, int32_t h,
                       const float *const *planes, size_t row_px)
{
    for (uint32_t b = 0; b < q->n_bands; b++)
        for (int32_t row = 0; row < h; row++) {
            float *to = q->level[b] + (int64_t)(y + row) * q->how.source_w + x;
            for (int32_t i = 0; i < w && planes == NULL; i++)
                to[i] = NAN;
            if (planes != NULL)
                pb_quicklook_take(planes[b] + (size_t)row * row_px, 1, w, to);
        }
}

static int on_block(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w, int32_t h,
                    const float *const *half, uint32_t worker, struct pb_err *err)
{
    struct quicklook *q = user;
    (void)worker;
    (void)err;
    if ((int32_t)level != q->how.level)
        return 0;
    const float *planes[PB_QUICKLOOK_PLANES_MAX];
    const size_t block = (size_t)q->block_px;
    const int32_t x = (int32_t)col * q->block_px, y = (int32_t)row * q->block_px;
    for (int32_t i = 0, at = 0; at < h; i++, at += q->block_px / 2) {
        const int32_t rows = h - at < q->block_px / 2 ? h - at : q->block_px / 2;
        for (uint32_t b = 0; b < q->n_bands && half != NULL; b++)
            planes[b] = half[i] + b * block * block / 2;
        keep_block(q, x, y + at, w, rows, half != NULL ? planes : NULL, block);
    }
    return 0;
}

static int choose_bands(struct quicklook *q, struct pb_err *err)
{
    int n = pb_quicklook_planes(q->env, &q->config->product, q->plane, err);
    if (n < 0)
        return n;
    bool sheet = pb_quicklook_is_sheet(&q->config->product);
    int coloured = n - (q->config->paint.shade != NULL);
    if (!sheet && coloured != 1 && coloured != PB_QUICKLOOK_SHOWN_MAX)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "quicklook.bands names %d bands; name 1 (grey) or 3 (red, green, blue)",
                       coloured);
    q->n_bands = (uint32_t)n;
    q->join = pb_quicklook_join(q->env, &q->config->product, q->plane, q->n_bands);
    q->n_pictures = sheet ? q->n_bands : 1;
    for (uint32_t i = 0; i < q->n_bands; i++)
        q->name[i] = pb_product_band_name(q->env, &q->config->product, i);
    return 0;
}

static int allocate(struct quicklook *q, struct pb_err *err)
{
    size_t source = (size_t)q->how.source_w * (size_t)q->how.source_h;
    size_t target = (size_t)q->how.target_w * (size_t)q->how.target_h;
    q->colours = calloc(q->n_pictures, sizeof *q->colours);
    if (q->colours == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a quicklook");
    for (uint32_t b = 0; b < q->n_bands; b++) {
        q->level[b] = malloc(source * sizeof(float));
        q->target[b] = malloc(target * sizeof(float));
        if (q->level[b] == NULL || q->target[b] == NULL)
            return pb_fail(err, PB_E_MEMORY, "no memory for a quicklook of %d x %d",
                           q->how.target_w, q->how.target_h);
    }
    if (q->how.level == 0 || pb_product_by_device(q->env, &q->config->product))
        return 0;
    q->grid = pb_quicklook_grid(q->env->grid, &q->block_px);
    struct pb_pyramid_options options =
        pyramid_options(q->env, pb_quicklook_shows_classes(q->env, q->config), &q->grid,
                        q->block_px, q->how.level, q->n_bands);
    options.join = q->join;
    options.sink = on_block;
    options.user = q;
    return pb_pyramid_create(&options, err, &q->pyramid);
}

static int quicklook_create(const struct pb_product_env *env,
                            const struct pb_product_config *config, struct pb_err *err,
                            void **out_product)
{
    struct quicklook *q = calloc(1, sizeof *q);
    if (q == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a quicklook");
    q->env = env;
    q->config = quicklook_of(config);
    q->how = pb_quicklook_sizes(env, config);
    q->turn = pb_turn_of(env->place_info);
    int rc = choose_bands(q, err);
    if (rc == 0)
        rc = allocate(q, err);
    if (rc < 0) {
        quicklook_destroy(q);
        return rc;
    }
    *out_product = q;
    return 0;
}

static int quicklook_tile(void *product, const struct pb_tile *tile,
                          const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    struct quicklook *q = product;
    const float *planes[PB_QUICKLOOK_PLANES_MAX];
    const struct pb_rect *core = &tile->core;
    bool any = pixels->plane_px > 0;
    for (uint32_t b = 0; b < q->n_bands && any; b++)
        planes[b] = pixels->data + q->plane[b] * pixels->plane_px;
    if (q->pyramid != NULL)
        return pb_pyramid_add(q->pyramid, core, any ? planes : NULL, (size_t)core->w, worker, err);
    keep_block(q, core->x, core->y, core->w, core->h, any ? planes : NULL, (size_t)core->w);
    return 0;
}

static int quicklook_finish(void *product, const struct pb_product_result *earlier,
                            size_t n_earlier, struct pb_err *err,
                            struct pb_product_result *out_result)
{
    struct quicklook *q = product;
    void (*shrink)(const struct pb_shrink *how, const float *source, float *target) =
        pb_quicklook_shows_classes(q->env, q->config) ? pb_shrink_nearest : pb_shrink_area;
    (void)earlier;
    (void)n_earlier;
    if (q->join.planes != 0) /* joins level 0; other levels are joined already */
        pb_join_row(&q->join, (const float *const *)q->level, q->n_bands, 0,
                    (size_t)q->how.source_w * (size_t)q->how.source_h, q->level);
    for (uint32_t b = 0; b < q->n_bands; b++) {
        shrink(&q->how, q->level[b], q->target[b]);
        q->shown[b] = q->target[b];
    }
    size_t n_px = (size_t)q->how.target_w * (size_t)q->how.target_h;
    int rc = 0;
    for (uint32_t i = 0; i < q->n_pictures && rc == 0; i++)
        rc = pb_quicklook_colours_init(&q->colours[i], q->env, q->config, q->plane + i,
                                       q->n_bands - q->n_pictures + 1, q->shown + i, n_px, err);
    if (rc < 0)
        return rc;
    struct pb_product_result result = {
        .kind = &pb_kind_quicklook,
        .name = q->config->product.name,
        .media_type = "image/png",
        .config = &q->config->product,
        .shown = q->n_pictures == 1 ? pb_quicklook_shown(&q->colours[0]) : NULL,
        .is_map = !pb_quicklook_is_sheet(&q->config->product),
    };
    pb_turn_corners(&q->turn, result.corner);
    pb_quicklook_image_size(q, &result.width, &result.height);
    pb_product_file(q->env, &q->config->product, result.file, sizeof result.file);
    rc = pb_quicklook_write_png(q, err, &result);
    if (rc == 0)
        *out_result = result;
    return rc;
}

static int quicklook_describe(const struct pb_stac_item *item,
                              const struct pb_product_result *result, struct pb_err *err)
{
    (void)err;
    pb_stac_picture(item, result->width, result->height);
    pb_stac_legend(item, &quicklook_of(result->config)->paint);
    return 0;
}

/* Explains the joint validity of a picture of several bands. */
static void explain_valid(const struct pb_product_env *env, const struct pb_product_config *config,
                          struct pb_json *json)
{
    uint32_t plane[PB_BANDS_MAX];
    const int n = pb_quicklook_planes(env, config, plane, NULL);
    if (n < 1)
        return;
    const struct pb_pixel_join join = pb_quicklook_join(env, config, plane, (uint32_t)n);
    if (join.planes != 0)
        pb_json_string(json, "valid", join.any ? "any" : "all");
}

static void quicklook_explain(const struct pb_product_env *env,
                              const struct pb_product_config *config, struct pb_json *json)
{
    char ramp[200];
    bool turned = pb_turn_of(env->place_info).transposed;
    int32_t w, h;
    pb_shrink_fit(env->geometry.w, env->geometry.h, pb_quicklook_side(env, config), &w, &h);
    struct pb_sheet sheet =
        pb_sheet_of((uint32_t)pb_product_band_count(env, config), turned ? h : w, turned ? w : h);
    pb_json_int(json, "width", pb_quicklook_is_sheet(config) ? pb_sheet_width(&sheet) : sheet.w);
    pb_json_int(json, "height", pb_quicklook_is_sheet(config) ? pb_sheet_height(&sheet) : sheet.h);
    explain_valid(env, config, json);
    pb_json_string(json, "ramp",
                   pb_paint_ramp_text(&quicklook_of(config)->paint, ramp, sizeof ramp));
}

const struct pb_product_type pb_product_quicklook = {
    .kind = &pb_kind_quicklook,
    .suffix = ".png",
    .asset = "quicklook",
    .title = "Quicklook",
    .role = "overview",
    .describe = quicklook_describe,
    .bytes = quicklook_bytes,
    .explain = quicklook_explain,
    .create = quicklook_create,
    .tile = quicklook_tile,
    .on_device = pb_quicklook_on_device,
    .block = pb_quicklook_block,
    .finish = quicklook_finish,
    .destroy = quicklook_destroy,
};
