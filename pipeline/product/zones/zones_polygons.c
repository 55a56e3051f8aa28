/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Polygons of a product of zones. The plan only knows the size of their file; their memory is
 * checked against the plan when they are read. */
#include "pipeline/product/zones/zones_inside.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

uint64_t pb_zones_file_bytes(const struct pb_zones_config *config)
{
    struct stat status;
    const bool is = config->path != NULL && stat(config->path, &status) == 0;
    return is ? (uint64_t)status.st_size : 0;
}

uint64_t pb_zones_polygon_bytes(const struct pb_zones_config *config)
{
    enum { FACTOR = 8, LEAST = 4 << 20 };
    return config->path != NULL ? LEAST + FACTOR * pb_zones_file_bytes(config) : 0;
}

/* Returns the raster with the zones' grid: the scene, or the grid to which steps have
 * transformed it. */
static struct pb_raster *ground_of(const struct pb_product_env *env)
{
    return env->placed != NULL ? env->placed : env->raster;
}

struct pb_vector_request pb_zones_request(const struct pb_zones_config *config)
{
    return (struct pb_vector_request){.path = config->path,
                                      .layer = config->layer,
                                      .fields = config->field,
                                      .n_fields = config->n_fields};
}

/* Fails if the polygons, their scan and the scratch of all workers exceed the plan. */
static int check_room(const struct zones *z, uint64_t scan, uint64_t scratch, struct pb_err *err)
{
    const struct pb_polygons *polygons = z->polygons;
    const uint64_t most = pb_zones_polygon_bytes(z->config), mib = 1 << 20;
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

int pb_zones_read_polygons(struct zones *z, struct pb_err *err)
{
    const struct pb_product_env *env = z->env;
    struct pb_vector_request request = pb_zones_request(z->config);
    const double *t = env->transform;
    if (!env->place_info->has_transform)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: the image has no geotransform, so polygons have no place in it");
    request.tolerance = 0.001 * fmin(hypot(t[1], t[4]), hypot(t[2], t[5]));
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

int pb_zones_try_polygons(const struct pb_product_env *env, const struct pb_zones_config *config,
                          struct pb_err *err)
{
    const struct pb_vector_request request = pb_zones_request(config);
    struct pb_polygons *polygons = NULL;
    int rc = pb_vector_read(&request, ground_of(env), err, &polygons);
    pb_polygons_free(polygons);
    return rc;
}
