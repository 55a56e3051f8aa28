/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Numbers by zone, made while the tiles pass: rows of a tile are cut into runs of one zone, and
 * runs are summed up (numbers/zones_all.h). Polygons are scanned a tile at a time, each for itself.
 */
#include "pipeline/product/zones.h"

#include "kernels/chain/chain.h"
#include "kernels/reduce/statistics_key.h"
#include "pipeline/gdal/vector_table.h"
#include "pipeline/numbers/pixel_area.h"
#include "pipeline/product/product.h"
#include "pipeline/product/product_text.h"
#include "pipeline/product/zones_rows.h"
#include "pipeline/raster/polygon_scan.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Zones that may be, unless there is a polygon for each; and bytes that a polygon takes in a file.
 */
enum { ZONES_MAX = 4096, LEAST_FEATURE_BYTES = 100 };

struct zones {
    const struct pb_product_env *env;
    const struct pb_zones_config *config;
    uint32_t n_bands; /* with statistics */
    uint32_t plane[PB_BANDS_MAX], by;
    const char *name[PB_BANDS_MAX];
    uint32_t most; /* zones */
    struct pb_zones_all *all;
    int64_t *area; /* of a pixel of each row; NULL = all are alike */
    struct pb_zones_names names;
    char datetime[40];
    int32_t size[2];
    struct pb_polygons *polygons; /* in pixels; NULL = zones are classes alone */
    struct pb_polygon_scan *scan;
    char *scratch; /* of each worker: zones of a tile, then what the scan needs */
    size_t scratch_bytes, tile_bytes;
};

static const struct pb_zones_config *config_of(const struct pb_product_config *product)
{
    return (const struct pb_zones_config *)product;
}

/* A power of two that holds the zones: classes, polygons, or some classes in each of them. */
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

/* 0: there is none, or it cannot be read, which is said later. */
static uint64_t file_bytes(const struct pb_zones_config *config)
{
    struct stat status;
    const bool is = config->path != NULL && stat(config->path, &status) == 0;
    return is ? (uint64_t)status.st_size : 0;
}

/* What polygons and their scan may take: by the size of the file, which is not read for the plan.
 */
static uint64_t polygon_bytes(const struct pb_zones_config *config)
{
    enum { FACTOR = 8, LEAST = 4 << 20 };
    return config->path != NULL ? LEAST + FACTOR * file_bytes(config) : 0;
}

static uint64_t zones_bytes(const struct pb_product_env *env,
                            const struct pb_product_config *config)
{
    enum { CELL_BYTES = 64 };
    const struct pb_zones_config *zones = config_of(config);
    const uint32_t room = room_for(zones, file_bytes(zones) / LEAST_FEATURE_BYTES);
    const struct pb_zones_shape shape = shape_of(env, config, room);
    const uint64_t cells =
        (uint64_t)room * (6 + zones->n_fields + shape.bands * (zones->n_stats + 1));
    const uint64_t tile = zones->path != NULL && env->grid != NULL
                              ? (uint64_t)env->grid->side_px * (uint64_t)env->grid->side_px * 4
                              : 0;
    return sizeof(struct zones) + pb_zones_bytes(&shape) + cells * CELL_BYTES +
           (uint64_t)env->geometry.h * sizeof(int64_t) + polygon_bytes(zones) + env->workers * tile;
}

static void zones_destroy(void *product)
{
    struct zones *z = product;
    if (z == NULL)
        return;
    pb_zones_destroy(z->all);
    pb_polygon_scan_destroy(z->scan);
    pb_polygons_free(z->polygons);
    free(z->scratch);
    free(z->area);
    free(z);
}

/* Where the zones lie: the scene, or the grid that steps have moved it to. */
static struct pb_raster *ground_of(const struct pb_product_env *env)
{
    return env->placed != NULL ? env->placed : env->raster;
}

/* Areas of rows as integers, so that sums of them are exact: the largest has 52 bits. */
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

/* Whether the band of `by` has neither values of the scene's files nor a few values or whole
 * numbers that steps made. */
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
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: band '%s' of by is computed, and nothing makes its values classes; "
                       "round them first (cast: {type: uint8}, math with round), or use classify "
                       "or conditions",
                       by);
    if (n >= 0 && !pb_zones_columns_differ(z->config, z->name, z->n_bands, column))
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: two columns of the table would be called %s, case aside; name the "
                       "bands otherwise, or leave out a field or a statistic",
                       column);
    return n;
}

static struct pb_vector_request request_of(const struct pb_zones_config *config)
{
    return (struct pb_vector_request){.path = config->path,
                                      .layer = config->layer,
                                      .fields = config->field,
                                      .n_fields = config->n_fields};
}

/* Fails where the polygons, their scan and the scratch of all workers are more than was planned. */
static int check_room(const struct zones *z, uint64_t scan, uint64_t scratch, struct pb_err *err)
{
    const struct pb_polygons *polygons = z->polygons;
    const uint64_t most = polygon_bytes(z->config), mib = 1 << 20;
    const uint64_t values = polygons->n * z->config->n_fields * sizeof(struct pb_polygon_value);
    const uint64_t bytes =
        polygons->n_vertices * sizeof *polygons->xy + polygons->n_rings * sizeof *polygons->ring +
        polygons->n * sizeof *polygons->polygon + values + scan + z->env->workers * scratch;
    if (bytes <= most)
        return 0;
    return pb_fail_at(err, PB_E_VECTOR_LIMIT, z->config->path, 0, 0,
                      "its polygons take %llu MiB on this grid, and %llu are planned for a file of "
                      "its size",
                      (unsigned long long)((bytes + mib - 1) / mib),
                      (unsigned long long)(most / mib));
}

static int make_scan(struct zones *z, struct pb_err *err)
{
    const struct pb_product_env *env = z->env;
    const uint64_t bytes = pb_polygon_scan_bytes(z->polygons, env->geometry.w, env->geometry.h);
    int rc = check_room(z, bytes, 0, err);
    if (rc < 0)
        return rc;
    z->scan = pb_polygon_scan_create(z->polygons, env->geometry.w, env->geometry.h,
                                     z->config->touched ? PB_SCAN_TOUCHED : PB_SCAN_CENTRES);
    if (z->scan == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the polygons of %s", z->config->path);
    rc = check_room(z, bytes, pb_polygon_scan_scratch_bytes(z->scan), err);
    if (rc < 0)
        return rc;
    const size_t side = (size_t)env->grid->side_px;
    const size_t w = side < (size_t)env->geometry.w ? side : (size_t)env->geometry.w;
    const size_t h = side < (size_t)env->geometry.h ? side : (size_t)env->geometry.h;
    z->tile_bytes = (w * h * sizeof(uint32_t) + 63) / 64 * 64;
    z->scratch_bytes = (z->tile_bytes + pb_polygon_scan_scratch_bytes(z->scan) + 63) / 64 * 64;
    z->scratch = calloc(env->workers, z->scratch_bytes);
    if (z->scratch == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the zones of a tile");
    return 0;
}

/* The polygons, in pixels, and the scan of them. */
static int read_polygons(struct zones *z, struct pb_err *err)
{
    const struct pb_product_env *env = z->env;
    struct pb_vector_request request = request_of(z->config);
    const double *t = env->transform;
    if (!env->place_info->has_transform)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: the image has no geotransform, so polygons have no place in it");
    request.tolerance = 0.1 * fmin(hypot(t[1], t[4]), hypot(t[2], t[5]));
    int rc = pb_vector_read(&request, ground_of(env), err, &z->polygons);
    if (rc < 0)
        return rc;
    z->names.polygons = z->polygons;
    z->size[0] = env->geometry.w;
    z->size[1] = env->geometry.h;
    z->names.size = z->size;
    if (pb_polygons_to_pixels(z->polygons, t) != 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: the image's geotransform has no inverse");
    return make_scan(z, err);
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
        rc = z->config->path != NULL ? read_polygons(z, err) : 0;
    if (rc >= 0) {
        z->most = room_for(z->config, z->polygons != NULL ? z->polygons->n : 0);
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

/* What another product of the pipeline says of the time; "" = none does. */
static void time_of_products(const struct pb_product_env *env, char *out)
{
    const struct pb_pipeline_config *pipeline = env->pipeline;
    for (size_t i = 0; i < pipeline->n_products && out[0] == '\0'; i++) {
        const struct pb_product_type *type = pb_product_type(pipeline->products[i]->kind);
        if (type != NULL && type->time != NULL && !type->time(env, pipeline->products[i], out))
            out[0] = '\0';
    }
}

/* Columns of a series: which scene, and when it was taken, as far as that is known. */
static void name_scene(struct zones *z)
{
    const struct pb_product_env *env = z->env;
    struct tm tm;
    const time_t time = (time_t)env->facts.time_s;
    if (z->config->append == NULL)
        return;
    time_of_products(env, z->datetime);
    const bool told = z->datetime[0] != '\0';
    if (!told && env->facts.has_time && gmtime_r(&time, &tm) != NULL)
        (void)strftime(z->datetime, sizeof z->datetime, "%Y-%m-%dT%H:%M:%SZ", &tm);
    else if (!told)
        (void)snprintf(z->datetime, sizeof z->datetime, "%s", env->info->datetime);
    z->names.scene = pb_product_base(env);
    z->names.datetime = z->datetime[0] != '\0' ? z->datetime : NULL;
}

/* Whether the polygons can be read, and have what is asked of them. */
static int zones_ready(const struct pb_product_env *env, const struct pb_product_config *config,
                       struct pb_err *err)
{
    const struct pb_vector_request request = request_of(config_of(config));
    struct zones z = {.env = env, .config = config_of(config)};
    struct pb_polygons *polygons = NULL;
    const int n = choose_bands(&z, err);
    if (n < 0 || request.path == NULL || env->raster == NULL)
        return n < 0 ? n : 0;
    int rc = pb_vector_read(&request, ground_of(env), err, &polygons);
    pb_polygons_free(polygons);
    return rc;
}

static int too_many(const struct zones *z, struct pb_err *err)
{
    if (z->config->by.n == 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT, "zones: there are more than %u zones", z->most);
    return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                   "zones: band '%s' has more than %u values%s, so it is no band of classes; name "
                   "another one in by, or make classes of it first (classify, cast, math)",
                   z->config->by.items[0].text, z->most,
                   z->polygons != NULL ? " in all polygons together" : "");
}

/* Where a worker is. */
struct at {
    struct zones *z;
    const struct pb_rect *core;
    const struct pb_tile_planes *pixels;
    uint32_t worker;
};

/* n pixels of the tile from `first`, all of one zone. */
static bool add_run(const struct at *at, uint64_t key, size_t first, int32_t n, int64_t area)
{
    const struct zones *z = at->z;
    const float *planes[PB_BANDS_MAX];
    const bool has_values = at->pixels->plane_px > 0;
    for (uint32_t b = 0; has_values && b < z->n_bands; b++)
        planes[b] = at->pixels->data + z->plane[b] * at->pixels->plane_px + first;
    return pb_zones_run(z->all, at->worker, key, has_values ? planes : NULL, (size_t)n, area);
}

/* The same, cut into runs of one class where there are classes. Of row y of the image. */
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
    if (z->scan != NULL) {
        char *scratch = z->scratch + worker * z->scratch_bytes;
        fits = !pb_polygon_scan_meets(z->scan, &tile->core) ||
               pb_polygon_scan_each(z->scan, &tile->core, scratch + z->tile_bytes,
                                    (uint32_t *)(void *)scratch, add_polygon, &at);
    } else {
        for (int32_t y = 0; y < tile->core.h && fits; y++)
            fits = add_runs(&at, 0, tile->core.x, tile->core.y + y, tile->core.w);
    }
    return fits ? 0 : too_many(z, err);
}

static int write_json(const struct zones *z, const struct pb_table *table, struct pb_err *err,
                      struct pb_product_result *out)
{
    const char *slash = strrchr(z->env->input, '/');
    struct pb_json *json = pb_json_create(true);
    pb_json_object(json, NULL);
    pb_json_string(json, "scene", pb_product_base(z->env));
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

static int write_vector(const struct zones *z, const struct pb_table *table,
                        const uint32_t *polygon, struct pb_err *err, struct pb_product_result *out)
{
    struct pb_vector_request request = request_of(z->config);
    const struct pb_vector_rows rows = {
        .table = table,
        .feature = polygon,
        .name = "zones",
        .format = z->config->format == PB_ZONES_GEOJSON ? PB_VECTOR_GEOJSON : PB_VECTOR_GPKG};
    char *file = NULL;
    size_t bytes = 0;
    request.stamp = z->polygons->stamp;
    int rc = pb_vector_table(&request, &rows, err, &file, &bytes);
    const char *const parts[1] = {file};
    if (rc == 0)
        rc = pb_product_write(z->env, parts, &bytes, 1, err, out);
    free(file);
    return rc;
}

static const char *const media_types[] = {[PB_ZONES_CSV] = "text/csv",
                                          [PB_ZONES_JSON] = "application/json",
                                          [PB_ZONES_GEOJSON] = "application/geo+json",
                                          [PB_ZONES_GPKG] = "application/geopackage+sqlite3"};

static int zones_finish(void *product, const struct pb_product_result *earlier, size_t n_earlier,
                        struct pb_err *err, struct pb_product_result *out_result)
{
    struct zones *z = product;
    uint32_t *polygon = NULL;
    (void)earlier;
    (void)n_earlier;
    if (!pb_zones_end(z->all))
        return too_many(z, err);
    struct pb_product_result result = {.kind = &pb_kind_zones,
                                       .name = z->config->product.name,
                                       .media_type = media_types[z->config->format],
                                       .config = &z->config->product};
    if (z->polygons != NULL)
        pb_polygons_left_out(z->polygons, z->config->path, result.warning, sizeof result.warning);
    name_scene(z);
    struct pb_table *table = pb_zones_table(z->config, &z->names, z->all, &polygon);
    if (table == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the table of zones");
    pb_product_file(z->env, &z->config->product, result.file, sizeof result.file);
    int rc = z->config->format == PB_ZONES_CSV    ? write_csv(z, table, err, &result)
             : z->config->format == PB_ZONES_JSON ? write_json(z, table, err, &result)
                                                  : write_vector(z, table, polygon, err, &result);
    free(polygon);
    pb_table_destroy(table);
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
    .bytes = zones_bytes,
    .ready = zones_ready,
    .create = zones_create,
    .tile = zones_tile,
    .finish = zones_finish,
    .destroy = zones_destroy,
};
