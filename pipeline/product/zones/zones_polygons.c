/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Polygons of a product of zones. Once the scan is made, of the vertices only one fact is needed:
 * whether a polygon reaches beyond the image. */
#include "pipeline/product/zones/zones_inside.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/device/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tolerance: an outline along the edge of the image is not beyond it. */
#define EDGE_PX 1e-6

struct pb_vector_request pb_zones_request(const struct pb_zones_config *config)
{
    return (struct pb_vector_request){.path = config->path,
                                      .layer = config->layer,
                                      .fields = config->field,
                                      .n_fields = config->n_fields};
}

/* Returns true if a ring reaches beyond the image, which has no left and right edge if it extends
 * around the Earth. */
static bool is_cut(const struct pb_polygons *all, const struct pb_ring *ring, const int32_t size[2])
{
    for (size_t i = ring->first; i < ring->first + ring->n; i++)
        for (int k = all->is_round; k < 2; k++)
            if (all->xy[i][k] < -EDGE_PX || all->xy[i][k] > size[k] + EDGE_PX)
                return true;
    return false;
}

static void find_cut(struct pb_polygons *all, const int32_t size[2])
{
    for (size_t p = 0; p < all->n; p++) {
        struct pb_polygon *polygon = &all->polygon[p];
        for (size_t r = 0; r < polygon->n_rings && !polygon->is_beyond; r++)
            polygon->is_beyond = is_cut(all, &all->ring[polygon->first_ring + r], size);
    }
}

static int make_scan(struct pb_zones_polygons *of, const struct pb_product_env *env,
                     const struct pb_zones_config *config, struct pb_err *err)
{
    const int32_t size[2] = {env->geometry.w, env->geometry.h};
    const uint64_t scan = pb_polygon_scan_bytes(of->polygons, size[0], size[1]);
    const uint64_t both = pb_polygons_bytes(of->polygons) + scan;
    of->scan = pb_polygon_scan_create(of->polygons, size[0], size[1],
                                      config->touched ? PB_SCAN_TOUCHED : PB_SCAN_CENTRES);
    if (of->scan == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the polygons of %s", config->path);
    find_cut(of->polygons, size);
    of->peak_bytes = both > of->polygons->read_bytes ? both : of->polygons->read_bytes;
    pb_polygons_drop_vertices(of->polygons);
    of->bytes = pb_polygons_bytes(of->polygons) + scan;
    return 0;
}

static int read_polygons(struct pb_zones_polygons *of, const struct pb_product_env *env,
                         const struct pb_zones_config *config, struct pb_err *err)
{
    struct pb_vector_request request = pb_zones_request(config);
    const double *t = env->transform;
    if (!env->place_info->has_transform)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: the image has no geotransform, so polygons have no place in it");
    request.threads = pb_device_threads(env->config->compute.threads);
    request.tolerance = 0.001 * fmin(hypot(t[1], t[4]), hypot(t[2], t[5]));
    /* Polygons are placed in the system of the products' grid: that of the scene, or the one that
     * steps transformed it to. */
    int rc = pb_vector_read(&request, env->placed != NULL ? env->placed : env->raster, err,
                            &of->polygons);
    if (rc == 0 && pb_polygons_to_pixels(of->polygons, t) != 0)
        return pb_fail(err, PB_E_PIPELINE_PRODUCT,
                       "zones: the image's geotransform has no inverse");
    return rc ? rc : make_scan(of, env, config, err);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool uses_same(const struct pb_zones_config *a, const struct pb_zones_config *b)
{
    bool same = is_same_text(a->path, b->path) && is_same_text(a->layer, b->layer) &&
                a->touched == b->touched && a->n_fields == b->n_fields;
    for (size_t i = 0; same && i < a->n_fields; i++)
        same = strcmp(a->field[i], b->field[i]) == 0;
    return same;
}

int pb_zones_prepare(const struct pb_product_env *env, const struct pb_product_config *config,
                     struct pb_err *err, void **out_prepared)
{
    const struct pb_zones_config *zones = (const struct pb_zones_config *)config;
    size_t number;
    (void)pb_product_prepared(env, config, &number);
    if (zones->path == NULL)
        return 0;
    for (size_t i = 0; i < number; i++) {
        const struct pb_product_config *earlier = env->pipeline->products[i];
        struct pb_zones_polygons *of = env->prepared[i];
        if (earlier->kind != config->kind || of == NULL ||
            !uses_same(zones, (const struct pb_zones_config *)earlier))
            continue;
        of->users++;
        *out_prepared = of;
        return 0;
    }
    struct pb_zones_polygons *of = calloc(1, sizeof *of);
    if (of == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for the polygons of %s", zones->path);
    of->users = 1;
    of->owner = number;
    *out_prepared = of;
    return read_polygons(of, env, zones, err);
}

void pb_zones_discard(void *prepared)
{
    struct pb_zones_polygons *of = prepared;
    if (of == NULL || --of->users > 0)
        return;
    pb_polygon_scan_destroy(of->scan);
    pb_polygons_free(of->polygons);
    free(of);
}
