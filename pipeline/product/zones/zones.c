/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Numbers by zone, computed while tiles arrive: rows of a tile are cut into runs of one zone,
 * and runs are summed up (numbers/zones_all.h). Polygons are scanned a tile at a time, each
 * separately; they are read before the plan, which therefore knows their memory. */
#include "pipeline/product/zones/zones_inside.h"

#include "config/product_check.h"
#include "kernels/chain/chain.h"
#include "kernels/reduce/statistics_key.h"
#include "pipeline/numbers/pixel_area.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limit of zones, unless there is a polygon for each. */
enum { ZONES_MAX = 4096 };

static const struct pb_zones_config *config_of(const struct pb_product_config *product)
{
    return (const struct pb_zones_config *)product;
}

/* Power of two that is sufficient for the zones: classes, polygons, or some classes in each of
 * them. */
static uint32_t room_for(const struct pb_zones_config *config, uint64_t polygons)
{
    const uint64_t n = config->by.n > 0 ? 8 * polygons : polygons;
    uint32_t room = config->by.n > 0 ? ZONES_MAX : 64;
    while (room < n && room < UINT32_C(1) << 22)
        room *= 2;
    return room;
}

static struct pb_zones_shape shape_of(const struct pb_product_env *env,
                                      const struct pb_product_config *product, uint32_t zones)
{
    const uint32_t bands = (uint32_t)pb_product_band_count(env, product);
    return (struct pb_zones_shape){.zones = zones,
                                   .bands = bands - (config_of(product)->by.n > 0),
                                   .counts_values = config_of(product)->counts_values,
                                   .workers = env->workers};
}

static const struct pb_zones_polygons *polygons_of(const struct pb_product_env *env,
                                                   const struct pb_product_config *config,
                                                   bool *out_owns)
{
    size_t number;
    const struct pb_zones_polygons *of = pb_product_prepared(env, config, &number);
    *out_owns = of != NULL && of->owner == number;
    return of;
}

/* Bytes of the zones of a tile, for a worker. */
static size_t tile_bytes(const struct pb_product_env *env)
{
    const size_t side = (size_t)env->grid->side_px;
    const size_t w = side < (size_t)env->geometry.w ? side : (size_t)env->geometry.w;
    const size_t h = side < (size_t)env->geometry.h ? side : (size_t)env->geometry.h;
    return (w * h * sizeof(uint32_t) + 63) / 64 * 64;
}

/* Bytes of memory for a worker: zones of a tile, then the scratch of the scan. */
static size_t scratch_bytes(const struct pb_product_env *env, const struct pb_polygon_scan *scan)
{
    return (tile_bytes(env) + pb_polygon_scan_scratch_bytes(scan) + 63) / 64 * 64;
}

/* The parts of the product's memory. `peak` was needed before the plan and is free again. */
struct parts {
    uint64_t polygons, peak, threads, sums, table;
};

static struct parts parts_of(const struct pb_product_env *env,
                             const struct pb_product_config *config)
{
    const struct pb_zones_config *zones = config_of(config);
    bool owns;
    const struct pb_zones_polygons *of = polygons_of(env, config, &owns);
    const uint64_t n = of != NULL ? of->polygons->n : 0;
    const uint32_t room = room_for(zones, n);
    const struct pb_zones_shape shape = shape_of(env, config, room);
    return (struct parts){
        .polygons = owns ? of->bytes : 0,
        .peak = owns ? of->peak_bytes : 0,
        .threads = of != NULL ? env->workers * (uint64_t)scratch_bytes(env, of->scan) : 0,
        .sums = sizeof(struct zones) + pb_zones_bytes(&shape) +
                (uint64_t)env->geometry.h * sizeof(int64_t),
        .table = pb_zones_write_bytes(env, zones, of, zones->by.n > 0 ? room : n)};
}

static uint64_t zones_bytes(const struct pb_product_env *env,
                            const struct pb_product_config *config)
{
    const struct parts p = parts_of(env, config);
    const uint64_t run = p.polygons + p.threads + p.sums + p.table;
    return run > p.peak ? run : p.peak;
}

static void zones_explain(const struct pb_product_env *env, const struct pb_product_config *config,
                          struct pb_json *json)
{
    const struct parts p = parts_of(env, config);
    pb_json_object(json, "memory");
    pb_json_int(json, "polygons", (int64_t)p.polygons);
    pb_json_int(json, "threads", (int64_t)p.threads);
    pb_json_int(json, "sums", (int64_t)p.sums);
    pb_json_int(json, "table", (int64_t)p.table);
    pb_json_int(json, "reading", (int64_t)p.peak);
    pb_json_end(json);
}

static void zones_destroy(void *product)
{
    struct zones *z = product;
    if (z == NULL)
        return;
    pb_zones_destroy(z->all);
    free(z->scratch);
    free(z->area);
    free(z);
}

/* Measures areas of rows as integers, so that sums of them are exact: the largest has 52 bits. */
static bool measure(struct zones *z)
{
    const struct pb_product_env *env = z->env;
    const int32_t h = env->geometry.h;
    double most = 0;
    z->names.pixel_m2 = pb_pixel_area(env->place_info, env->transform, 0);
    if (!isfinite(z->names.pixel_m2) || !pb_pixel_area_varies(env->place_info))
        return true;
    z->area = calloc((size_t)h, sizeof *z->area);
    for (int32_t y = 0; y < h; y++)
        most = fmax(most, pb_pixel_area(env->place_info, env->transform, y));
    const int bits = most > 0 ? 51 - ilogb(most) : 0;
    for (int32_t y = 0; z->area != NULL && y < h; y++)
        z->area[y] = llrint(ldexp(pb_pixel_area(env->place_info, env->transform, y), bits));
    z->names.pixel_m2 = 0;
    z->names.unit_m2 = ldexp(1, -bits);
    return z->area != NULL;
}

/* Returns true if the band of `by` has neither values of the scene's files nor a few values or
 * whole numbers made by steps. */
static bool is_continuous(const struct zones *z)
{
    const struct pb_product_env *env = z->env;
    return z->config->by.n > 0 && env->classes != NULL && env->chain != NULL &&
           !env->classes[z->by] && pb_chain_origins(env->chain)[z->by] < 0;
}

static int choose_bands(struct zones *z, struct pb_err *err)
{
    const struct pb_product_config *config = &z->config->product;
    const char *by = z->config->by.n > 0 ? z->config->by.items[0].text : "";
    char column[PB_ZONES_COLUMN_BYTES];
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
    if (n >= 0 && is_continuous(z))
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, PB_NO_CLASSES, "zones", by, "by");
    if (n >= 0 && !pb_zones_columns_differ(z->config, z->name, z->n_bands, column))
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: two columns of the table would be called %s, case aside; name the "
                       "bands otherwise, or leave out a field or a statistic",
                       column);
    return n;
}

/* Uses the prepared polygons. */
static int use_polygons(struct zones *z, struct pb_err *err)
{
    bool owns;
    z->of = polygons_of(z->env, &z->config->product, &owns);
    assert((z->of != NULL) == (z->config->path != NULL)); /* prepared before */
    if (z->of == NULL)
        return 0;
    z->names.polygons = z->of->polygons;
    z->tile_bytes = tile_bytes(z->env);
    z->scratch_bytes = scratch_bytes(z->env, z->of->scan);
    z->scratch = calloc(z->env->workers, z->scratch_bytes);
    return z->scratch != NULL ? 0 : pb_fail(err, PB_E_MEMORY, "no memory for the zones of a tile");
}

static int zones_create(const struct pb_product_env *env, const struct pb_product_config *config,
                        struct pb_err *err, void **out_product)
{
    struct zones *z = calloc(1, sizeof *z);
    if (z == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the numbers of zones");
    z->env = env;
    z->config = config_of(config);
    int rc = choose_bands(z, err);
    if (rc >= 0)
        rc = use_polygons(z, err);
    if (rc >= 0) {
        z->most = room_for(z->config, z->of != NULL ? z->of->polygons->n : 0);
        const struct pb_zones_shape shape = shape_of(env, config, z->most);
        z->all = pb_zones_create(&shape);
        if (z->all == NULL || !measure(z))
            rc = pb_fail(err, PB_E_MEMORY, "no memory for the numbers of zones of %u bands",
                         z->n_bands);
    }
    if (rc < 0) {
        zones_destroy(z);
        return rc;
    }
    *out_product = z;
    return 0;
}

static int zones_ready(const struct pb_product_env *env, const struct pb_product_config *config,
                       struct pb_err *err)
{
    struct zones z = {.env = env, .config = config_of(config)};
    const int n = choose_bands(&z, err);
    return n < 0 ? n : 0;
}

static int too_many(const struct zones *z, struct pb_err *err)
{
    if (z->config->by.n == 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "zones: there are more than %u zones", z->most);
    return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                   "zones: band '%s' has more than %u values%s, so it is no band of classes; name "
                   "another one in by, or make classes of it first (classify, cast, math)",
                   z->config->by.items[0].text, z->most,
                   z->of != NULL ? " in all polygons together" : "");
}

/* Current position of a worker. */
struct at {
    struct zones *z;
    const struct pb_rect *core;
    const struct pb_tile_planes *pixels;
    uint32_t worker;
};

/* Adds n pixels of the tile from `first`, all of one zone. */
static bool add_run(const struct at *at, uint64_t key, size_t first, int32_t n, int64_t area)
{
    const struct zones *z = at->z;
    const float *planes[PB_BANDS_MAX];
    const bool has_values = at->pixels->plane_px > 0;
    for (uint32_t b = 0; has_values && b < z->n_bands; b++)
        planes[b] = at->pixels->data + z->plane[b] * at->pixels->plane_px + first;
    return pb_zones_run(z->all, at->worker, key, has_values ? planes : NULL, (size_t)n, area);
}

/* The same for row y of the image, cut into runs of one class if there are classes. */
static bool add_runs(const struct at *at, uint32_t polygon, int32_t x, int32_t y, int32_t n)
{
    const struct zones *z = at->z;
    const size_t first =
        (size_t)(y - at->core->y) * (size_t)at->core->w + (size_t)(x - at->core->x);
    const int64_t area = z->area != NULL ? z->area[y] : 0;
    const float *class;
    bool fits = true;
    if (z->config->by.n == 0)
        return add_run(at, pb_zones_key(polygon, 0), first, n, area);
    if (at->pixels->plane_px == 0)
        return true;
    class = at->pixels->data + z->by * at->pixels->plane_px + first;
    for (int32_t i = 0, end; i < n && fits; i = end) {
        const float value = class[i];
        for (end = i + 1; end < n && class[end] == value;)
            end++;
        if (isfinite(value))
            fits = add_run(at, pb_zones_key(polygon, pb_statistics_key(value + 0.0F)),
                           first + (size_t)i, end - i, area);
    }
    return fits;
}

static bool add_polygon(void *user, uint32_t polygon, int32_t x, int32_t y, int32_t n)
{
    return add_runs(user, polygon + 1, x, y, n);
}

static int zones_tile(void *product, const struct pb_tile *tile,
                      const struct pb_tile_planes *pixels, uint32_t worker, struct pb_err *err)
{
    struct zones *z = product;
    struct at at = {z, &tile->core, pixels, worker};
    bool fits = true;
    assert(worker < z->env->workers);
    if (z->of != NULL) {
        char *scratch = z->scratch + worker * z->scratch_bytes;
        fits = !pb_polygon_scan_meets(z->of->scan, &tile->core) ||
               pb_polygon_scan_each(z->of->scan, &tile->core, scratch + z->tile_bytes,
                                    (uint32_t *)(void *)scratch, add_polygon, &at);
    } else {
        for (int32_t y = 0; y < tile->core.h && fits; y++)
            fits = add_runs(&at, 0, tile->core.x, tile->core.y + y, tile->core.w);
    }
    return fits ? 0 : too_many(z, err);
}

static int zones_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                        struct pb_err *err, struct pb_product_result *out_result)
{
    struct zones *z = product;
    (void)earlier;
    (void)n_earlier;
    if (!pb_zones_end(z->all))
        return too_many(z, err);
    struct pb_product_result result = {
        .kind = &pb_kind_zones, .name = z->config->product.name, .config = &z->config->product};
    if (z->of != NULL)
        pb_polygons_left_out(z->of->polygons, z->config->path, result.warning,
                             sizeof result.warning);
    pb_product_file(z->env, &z->config->product, result.file, sizeof result.file);
    int rc = pb_zones_write(z, err, &result);
    if (rc == 0)
        *out_result = result;
    return rc;
}

static const char *zones_ending(const struct pb_product_config *config)
{
    static const char *const endings[] = {[PB_ZONES_CSV] = ".zones.csv",
                                          [PB_ZONES_JSON] = ".zones.json",
                                          [PB_ZONES_GEOJSON] = ".zones.geojson",
                                          [PB_ZONES_GPKG] = ".zones.gpkg"};
    return endings[((const struct pb_zones_config *)config)->format];
}

const struct pb_product_type pb_product_zones = {
    .kind = &pb_kind_zones,
    .suffix = ".zones.csv",
    .suffix_of = zones_ending,
    .asset = "zones",
    .title = "Pixels, areas and statistics by zone",
    .role = "data",
    .prepare = pb_zones_prepare,
    .discard = pb_zones_discard,
    .bytes = zones_bytes,
    .explain = zones_explain,
    .ready = zones_ready,
    .create = zones_create,
    .tile = zones_tile,
    .finish = zones_finish,
    .destroy = zones_destroy,
};
