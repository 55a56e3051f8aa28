/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Numbers by zone, made while the tiles pass: rows of a tile are cut into runs of one zone, and
 * runs are summed up (numbers/zones_all.h). */
#include "pipeline/product/zones.h"

#include "kernels/reduce/statistics_key.h"
#include "pipeline/numbers/pixel_area.h"
#include "pipeline/product/product.h"
#include "pipeline/product/product_text.h"
#include "pipeline/product/zones_rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 4096 };

struct zones {
    const struct pb_product_env *env;
    const struct pb_zones_config *config;
    uint32_t n_bands; /* with statistics */
    uint32_t plane[PB_BANDS_MAX], by;
    const char *name[PB_BANDS_MAX];
    struct pb_zones_all *all;
    int64_t *area; /* of a pixel of each row; NULL = all are alike */
    struct pb_zones_names names;
};

static struct pb_zones_shape shape_of(const struct pb_product_env *env,
                                      const struct pb_product_config *product)
{
    const struct pb_zones_config *config = (const struct pb_zones_config *)product;
    return (struct pb_zones_shape){.zones = CLASSES_MAX,
                                   .bands = (uint32_t)pb_product_band_count(env, product) - 1,
                                   .counts_values = config->counts_values,
                                   .workers = env->workers};
}

static uint64_t zones_bytes(const struct pb_product_env *env,
                            const struct pb_product_config *config)
{
    const struct pb_zones_shape shape = shape_of(env, config);
    enum { CELL_BYTES = 64 }; /* of the table, and of its text */
    const uint64_t cells =
        (uint64_t)CLASSES_MAX *
        (5 + shape.bands * (((const struct pb_zones_config *)config)->n_stats + 1));
    return sizeof(struct zones) + pb_zones_bytes(&shape) + cells * CELL_BYTES +
           (uint64_t)env->geometry.h * sizeof(int64_t);
}

static void zones_destroy(void *product)
{
    struct zones *z = product;
    if (z == NULL)
        return;
    pb_zones_destroy(z->all);
    free(z->area);
    free(z);
}

/* Areas of rows as integers, so that sums of them are exact: the largest has 52 bits. */
static bool measure(struct zones *z)
{
    const struct pb_product_env *env = z->env;
    const int32_t h = env->geometry.h;
    double most = 0;
    z->names.pixel_m2 = pb_pixel_area(env->info, env->transform, 0);
    if (!isfinite(z->names.pixel_m2) || !pb_pixel_area_varies(env->info))
        return true;
    z->area = calloc((size_t)h, sizeof *z->area);
    for (int32_t y = 0; y < h; y++)
        most = fmax(most, pb_pixel_area(env->info, env->transform, y));
    const int bits = most > 0 ? 51 - ilogb(most) : 0;
    for (int32_t y = 0; z->area != NULL && y < h; y++)
        z->area[y] = llrint(ldexp(pb_pixel_area(env->info, env->transform, y), bits));
    z->names.pixel_m2 = 0;
    z->names.unit_m2 = ldexp(1, -bits);
    return z->area != NULL;
}

static int choose_bands(struct zones *z, struct pb_err *err)
{
    const struct pb_product_config *config = &z->config->product;
    const char *by = z->config->by.items[0].text;
    uint32_t plane[PB_BANDS_MAX];
    const int n = pb_product_bands(z->env, config, plane, err);
    for (int i = 0; i < n; i++) {
        const char *name = pb_product_band_name(z->env, config, (size_t)i);
        if (strcmp(name, by) == 0) {
            z->by = plane[i];
        } else {
            z->plane[z->n_bands] = plane[i];
            z->name[z->n_bands++] = name;
        }
    }
    z->names.bands = z->name;
    z->names.n_bands = z->n_bands;
    return n;
}

static int zones_create(const struct pb_product_env *env, const struct pb_product_config *config,
                        struct pb_err *err, void **out_product)
{
    const struct pb_zones_shape shape = shape_of(env, config);
    struct zones *z = calloc(1, sizeof *z);
    if (z == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the numbers of zones");
    z->env = env;
    z->config = (const struct pb_zones_config *)config;
    const int n = choose_bands(z, err);
    if (n < 0) {
        zones_destroy(z);
        return n;
    }
    z->all = pb_zones_create(&shape);
    if (z->all == NULL || !measure(z)) {
        zones_destroy(z);
        return pb_fail(err, PB_E_MEMORY, "no memory for the numbers of zones of %d bands", n);
    }
    *out_product = z;
    return 0;
}

static int too_many(const struct zones *z, struct pb_err *err)
{
    return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                   "zones: band '%s' has more than %d values, so it is no band of classes; name "
                   "another one in by, or make classes of it first (classify, cast, math)",
                   z->config->by.items[0].text, CLASSES_MAX);
}

/* Runs of one class in a row of a tile. */
static bool add_row(struct zones *z, const struct pb_tile_planes *pixels, size_t first, int32_t w,
                    uint32_t worker, int64_t area)
{
    const float *class = pixels->data + z->by * pixels->plane_px + first;
    const float *planes[PB_BANDS_MAX];
    bool fits = true;
    for (int32_t x = 0, end; x < w && fits; x = end) {
        const float value = class[x];
        for (end = x + 1; end < w && class[end] == value;)
            end++;
        if (!isfinite(value))
            continue;
        for (uint32_t b = 0; b < z->n_bands; b++)
            planes[b] = pixels->data + z->plane[b] * pixels->plane_px + first + (size_t)x;
        fits = pb_zones_run(z->all, worker, pb_statistics_key(value + 0.0F), planes,
                            (size_t)(end - x), area);
    }
    return fits;
}

static int zones_tile(void *product, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    struct zones *z = product;
    const struct pb_rect *core = &tile->core;
    bool fits = true;
    assert(worker < z->env->workers);
    for (int32_t y = 0; y < core->h && pixels->plane_px > 0 && fits; y++)
        fits = add_row(z, pixels, (size_t)y * (size_t)core->w, core->w, worker,
                       z->area != NULL ? z->area[core->y + y] : 0);
    return fits ? 0 : too_many(z, err);
}

static int write_json(const struct zones *z, const struct pb_table *table, struct pb_err *err,
                      struct pb_product_result *out)
{
    const char *slash = strrchr(z->env->input, '/');
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_string(json, "scene", z->env->scene);
    pb_json_string(json, "input", slash ? slash + 1 : z->env->input);
    pb_json_array(json, "zones");
    for (size_t row = 0; row < pb_table_rows(table); row++) {
        pb_json_object(json, NULL);
        pb_table_json_row(table, json, row);
        pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    int rc = pb_product_text(z->env, json, err, out);
    pb_json_destroy(json);
    return rc;
}

static int write_csv(const struct zones *z, const struct pb_table *table, struct pb_err *err,
                     struct pb_product_result *out)
{
    size_t bytes[2] = {0, 0};
    char *const text[2] = {pb_table_csv_header(table, &bytes[0]),
                           pb_table_csv_rows(table, &bytes[1])};
    const char *const parts[2] = {text[0], text[1]};
    int rc = pb_product_write(z->env, parts, bytes, 2, err, out);
    free(text[0]);
    free(text[1]);
    return rc;
}

static const char *const media_types[] = {
    [PB_ZONES_CSV] = "text/csv", [PB_ZONES_JSON] = "application/json"};

static int zones_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                        struct pb_err *err, struct pb_product_result *out_result)
{
    struct zones *z = product;
    (void)earlier;
    (void)n_earlier;
    if (!pb_zones_end(z->all))
        return too_many(z, err);
    struct pb_product_result result = {.kind = &pb_kind_zones,
                                       .name = z->config->product.name,
                                       .media_type = media_types[z->config->format],
                                       .config = &z->config->product};
    struct pb_table *table = pb_zones_table(z->config, &z->names, z->all);
    if (table == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the table of zones");
    pb_product_file(z->env, &z->config->product, result.file, sizeof result.file);
    int rc = z->config->format == PB_ZONES_JSON ? write_json(z, table, err, &result)
                                                : write_csv(z, table, err, &result);
    pb_table_destroy(table);
    if (rc == 0)
        *out_result = result;
    return rc;
}

static const char *zones_ending(const struct pb_product_config *config)
{
    static const char *const endings[] = {
        [PB_ZONES_CSV] = ".zones.csv", [PB_ZONES_JSON] = ".zones.json"};
    return endings[((const struct pb_zones_config *)config)->format];
}

const struct pb_product_type pb_product_zones = {
    .kind = &pb_kind_zones,
    .suffix = ".zones.csv",
    .suffix_of = zones_ending,
    .asset = "zones",
    .title = "Pixels, areas and statistics by zone",
    .role = "data",
    .bytes = zones_bytes,
    .create = zones_create,
    .tile = zones_tile,
    .finish = zones_finish,
    .destroy = zones_destroy,
};
