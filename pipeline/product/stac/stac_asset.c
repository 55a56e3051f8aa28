/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Grid fields are in the assets to which they apply: a quicklook has its own shape and no
 * georeference; therefore properties have proj:code only (for searches) and quicklooks override
 * it with null. */
#include "pipeline/product/stac/stac_asset.h"

#include "config/base/href.h"
#include "config/product_words.h"
#include "pipeline/product/stac/stac_classes.h"
#include "pipeline/product/stac/stac_facts.h"
#include "pipeline/product/stac/stac_presets.h"
#include "pipeline/product/stac/stac_processing.h"

#include "config/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THUMBNAIL_PX = 600 }; /* STAC's best practices: the greatest width of a thumbnail */

static const struct pb_band_statistics *find_statistics(const struct pb_stac_item *item,
                                                        const char *band)
{
    for (size_t i = 0; i < item->n_results; i++)
        for (size_t s = 0; s < item->results[i].n_statistics; s++)
            if (strcmp(item->results[i].statistics[s].name, band) == 0)
                return &item->results[i].statistics[s];
    return NULL;
}

/* --- projection ------------------------------------------------------------------------------- */

void pb_stac_code(const struct pb_stac_item *item)
{
    const char *code = item->env->place_info->crs_code;
    pb_json_string(item->json, "proj:code", code[0] ? code : NULL);
}

static void write_shape(struct pb_json *json, int32_t rows, int32_t cols)
{
    pb_json_array(json, "proj:shape");
    pb_json_int(json, NULL, rows);
    pb_json_int(json, NULL, cols);
    pb_json_end(json);
}

/* t in GDAL's order. */
static void write_transform(struct pb_json *json, const double *t)
{
    const double row_major[6] = {t[1], t[2], t[0], t[4], t[5], t[3]};
    pb_json_array(json, "proj:transform");
    for (int i = 0; i < 6; i++)
        pb_json_number(json, NULL, row_major[i]);
    pb_json_end(json);
}

static void write_proj_bbox(struct pb_json *json, const struct pb_product_env *env)
{
    const double *t = env->transform;
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int corner = 0; corner < 4; corner++) {
        double col = corner & 1 ? env->geometry.w : 0, row = corner & 2 ? env->geometry.h : 0;
        for (int axis = 0; axis < 2; axis++) {
            double at = t[3 * axis] + t[3 * axis + 1] * col + t[3 * axis + 2] * row;
            low[axis] = fmin(low[axis], at);
            high[axis] = fmax(high[axis], at);
        }
    }
    pb_json_array(json, "proj:bbox");
    pb_json_number(json, NULL, low[0]);
    pb_json_number(json, NULL, low[1]);
    pb_json_number(json, NULL, high[0]);
    pb_json_number(json, NULL, high[1]);
    pb_json_end(json);
}

static void write_grid(const struct pb_stac_item *item)
{
    const struct pb_raster_info *info = item->env->place_info;
    pb_stac_code(item);
    if (info->crs_code[0] == '\0' && item->wkt2 != NULL)
        pb_json_string(item->json, "proj:wkt2", item->wkt2);
    if (info->crs_code[0] == '\0' && item->projjson != NULL)
        pb_json_raw(item->json, "proj:projjson", item->projjson);
    write_shape(item->json, item->env->geometry.h, item->env->geometry.w);
    if (info->has_transform) {
        write_transform(item->json, item->env->transform);
        if (info->has_crs)
            write_proj_bbox(item->json, item->env);
    }
}

/* --- bands ------------------------------------------------------------------------------------ */

static int bits_of(enum pb_type type)
{
    switch (type) {
    case PB_U8:
        return 8;
    case PB_I16:
    case PB_U16:
        return 16;
    case PB_F64:
        return 64;
    default:
        return 32;
    }
}

static bool is_float(enum pb_type type)
{
    return type == PB_F32 || type == PB_F64;
}

static void write_nodata(struct pb_json *json, const struct pb_stac_pixels *pixels)
{
    double nodata = pixels->has_nodata ? pixels->nodata : NAN;
    if (!pixels->has_nodata && (pixels->has_mask || !is_float(pixels->type)))
        return;
    if (isfinite(nodata))
        pb_json_number(json, "nodata", nodata);
    else
        pb_json_string(json, "nodata", isnan(nodata) ? "nan" : nodata < 0 ? "-inf" : "inf");
}

/* Writes percentiles in addition to the fields of STAC, named as in titiler and rio-tiler:
 * "percentile_98". */
static void write_percentiles(struct pb_json *json, const struct pb_band_statistics *statistics)
{
    for (uint32_t i = 0; i < statistics->n_percentiles; i++) {
        char name[64] = "percentile_", text[PB_UNITS_TEXT];
        (void)pb_units_number_text(statistics->percentile[i].p, text);
        (void)snprintf(name, sizeof name, "percentile_%s", text);
        pb_json_number(json, name, statistics->percentile[i].value);
    }
}

/* The raster extension requires at least three buckets. */
static void write_statistics(struct pb_json *json, const struct pb_band_statistics *statistics)
{
    pb_json_object(json, "statistics");
    if (statistics->valid > 0) {
        pb_json_float(json, "minimum", (float)statistics->minimum);
        pb_json_float(json, "maximum", (float)statistics->maximum);
        pb_json_number(json, "mean", statistics->mean);
        pb_json_number(json, "stddev", statistics->stddev);
        write_percentiles(json, statistics);
    }
    pb_json_int(json, "count", (int64_t)statistics->count);
    pb_json_number(json, "valid_percent",
                   100.0 * (double)statistics->valid / (double)statistics->count);
    pb_json_end(json);
    if (statistics->n_buckets < 3)
        return;
    pb_json_object(json, "raster:histogram");
    pb_json_int(json, "count", statistics->n_buckets);
    pb_json_number(json, "min", statistics->histogram_min);
    pb_json_number(json, "max", statistics->histogram_max);
    pb_json_array(json, "buckets");
    for (uint32_t i = 0; i < statistics->n_buckets; i++)
        pb_json_int(json, NULL, (int64_t)statistics->bucket[i]);
    pb_json_end(json);
    pb_json_end(json);
}

/* Writes unit and scale if known. */
static void write_facts(struct pb_json *json, const struct pb_band_facts *facts)
{
    if (facts->unit[0] != '\0')
        pb_json_string(json, "unit", facts->unit);
    if (facts->scale == 0)
        return;
    pb_json_number(json, "raster:scale", facts->scale);
    pb_json_number(json, "raster:offset", facts->offset);
}

static int write_bands(const struct pb_stac_item *item, const struct pb_product_config *config,
                       const struct pb_stac_pixels *pixels, struct pb_err *err)
{
    uint32_t plane[PB_BANDS_MAX];
    int n = pb_product_bands(item->env, config, plane, err);
    if (n < 0)
        return n;
    pb_json_array(item->json, "bands");
    for (int i = 0; i < n; i++) {
        const char *name = item->env->band_names[plane[i]];
        const struct pb_band_statistics *statistics = find_statistics(item, name);
        pb_json_object(item->json, NULL);
        pb_json_string(item->json, "name", name);
        pb_json_string(item->json, "data_type", pb_type_name(pixels->type));
        write_nodata(item->json, pixels);
        pb_json_int(item->json, "raster:bits_per_sample", bits_of(pixels->type));
        write_facts(item->json, &pixels->facts[i]);
        if (pixels->classes != NULL && pixels->classes->names->n > 0)
            pb_stac_classes(item->json, pixels->classes);
        else if (!is_float(pixels->type) && pixels->facts[i].scale == 0)
            pb_stac_preset(item->json, item->env, name);
        /* Integers were rounded and saturated after the statistics were taken. */
        if (statistics != NULL && is_float(pixels->type))
            write_statistics(item->json, statistics);
        pb_stac_band_facts(item, name);
        pb_stac_band_expression(item->json, item->env, name);
        pb_json_end(item->json);
    }
    pb_json_end(item->json);
    return 0;
}

int pb_stac_raster(const struct pb_stac_item *item, const struct pb_product_config *config,
                   const struct pb_stac_pixels *pixels, struct pb_err *err)
{
    write_grid(item);
    return write_bands(item, config, pixels, err);
}

void pb_stac_levels(const struct pb_stac_item *item, const char *const *names, size_t n,
                    const struct pb_stac_pixels *pixels)
{
    write_grid(item);
    pb_json_array(item->json, "bands");
    for (size_t i = 0; i < n; i++) {
        pb_json_object(item->json, NULL);
        pb_json_string(item->json, "name", names[i]);
        pb_json_string(item->json, "data_type", pb_type_name(pixels->type));
        write_nodata(item->json, pixels);
        pb_json_int(item->json, "raster:bits_per_sample", bits_of(pixels->type));
        pb_json_end(item->json);
    }
    pb_json_end(item->json);
}

void pb_stac_picture(const struct pb_stac_item *item, int32_t width, int32_t height)
{
    pb_json_null(item->json, "proj:code");
    write_shape(item->json, height, width);
}

/* Writes "0%" of the range, or the value. */
static void write_stop(struct pb_json *json, const struct pb_ramp_stop *stop)
{
    char share[32], colour[10];
    (void)snprintf(share, sizeof share, "%.9g%%", 100 * stop->at);
    (void)snprintf(colour, sizeof colour, "#%02x%02x%02x%02x", stop->rgba[0], stop->rgba[1],
                   stop->rgba[2], stop->rgba[3]);
    pb_json_array(json, NULL);
    if (stop->is_share)
        pb_json_string(json, NULL, share);
    else
        pb_json_number(json, NULL, stop->at);
    pb_json_string(json, NULL, colour);
    pb_json_end(json);
}

void pb_stac_legend(const struct pb_stac_item *item, const struct pb_paint_config *paint)
{
    enum { STOPS_MAX = 256 }; /* limit of a legend that is read */
    struct pb_json *json = item->json;
    char word[32];
    size_t length;
    const char *name = pb_key_choice(pb_ramp_choices, paint->ramp, &length);
    if (paint->chosen == NULL)
        return;
    pb_json_object(json, "pushbroom:colours");
    if (paint->colours == NULL) {
        (void)snprintf(word, sizeof word, "%.*s", (int)length, name);
        pb_json_string(json, "ramp", word);
    }
    if (pb_ramp_needs_range(paint->chosen)) {
        const double *ends = paint->has_range ? paint->range : paint->stretch;
        pb_json_array(json, paint->has_range ? "range" : "percentiles");
        pb_json_number(json, NULL, ends[0]);
        pb_json_number(json, NULL, ends[1]);
        pb_json_end(json);
    }
    if (paint->colours != NULL && paint->chosen->n <= STOPS_MAX) {
        name = pb_key_choice("blend|nearest|exact", paint->between, &length);
        (void)snprintf(word, sizeof word, "%.*s", (int)length, name);
        pb_json_string(json, "between", word);
        pb_json_array(json, "stops");
        for (size_t i = 0; i < paint->chosen->n; i++)
            write_stop(json, &paint->chosen->stop[i]);
        pb_json_end(json);
    }
    pb_json_end(json);
}

/* --- assets ----------------------------------------------------------------------------------- */

static const char *plain_key(const struct pb_product_result *result)
{
    return result->name ? result->name : pb_product_type(result->kind)->asset;
}

void pb_stac_asset_key(const struct pb_stac_item *item, size_t i, char *out, size_t bytes)
{
    const char *key = plain_key(&item->results[i]);
    int earlier = 0;
    for (size_t j = 0; j < i; j++)
        earlier += strcmp(plain_key(&item->results[j]), key) == 0;
    if (earlier == 0)
        (void)snprintf(out, bytes, "%s", key);
    else
        (void)snprintf(out, bytes, "%s-%d", key, earlier + 1);
}

static void write_roles(struct pb_json *json, const struct pb_product_result *result)
{
    const struct pb_product_type *type = pb_product_type(result->kind);
    int32_t longer = result->width > result->height ? result->width : result->height;
    pb_json_array(json, "roles");
    pb_json_string(json, NULL, type->role);
    if (strcmp(type->role, "overview") == 0 && longer <= THUMBNAIL_PX)
        pb_json_string(json, NULL, "thumbnail");
    pb_json_end(json);
}

int pb_stac_asset(const struct pb_stac_item *item, size_t i, struct pb_err *err)
{
    const struct pb_product_result *result = &item->results[i];
    const struct pb_product_type *type = pb_product_type(result->kind);
    struct pb_json *json = item->json;
    char key[80], checksum[PB_CHECKSUM_MULTIHASH_BYTES];
    char href[1024] = "./"; /* a colon in the name is not read as the end of a scheme */
    int rc = 0;
    pb_stac_asset_key(item, i, key, sizeof key);
    (void)pb_href_part(result->file, href + 2, sizeof href - 2);
    pb_json_object(json, key);
    pb_json_string(json, "href", href);
    if (result->media_type != NULL)
        pb_json_string(json, "type", result->media_type);
    pb_json_string(json, "title", type->title);
    write_roles(json, result);
    pb_json_int(json, "file:size", (int64_t)result->bytes);
    if (pb_checksum_multihash(result->checksum, checksum))
        pb_json_string(json, "file:checksum", checksum);
    if (type->describe)
        rc = type->describe(item, result, err);
    pb_json_end(json);
    return rc;
}
