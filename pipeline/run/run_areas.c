/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_areas.h"

#include "config/config.h"
#include "config/pipeline_config.h"
#include "kernels/ops/geometry/crop.h"
#include "pipeline/device/device.h"
#include "pipeline/gdal/vector.h"
#include "pipeline/raster/polygon_mask.h"
#include "pipeline/raster/polygon_scan.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Distance from the scene at which clamping an edge changes nothing. */
#define FAR_PX 1e9
/* Bounds within this distance of an edge of the scene mean the edge. */
#define EDGE_PX 1e-6

/* Parameters of a step that has an area; NULL for any other step. */
static const struct pb_crop *crop_of(const struct pb_step_config *step)
{
    const struct pb_crop *crop = step->op == pb_op_find("crop") ? step->params : NULL;
    bool has =
        crop != NULL && (crop->polygons != NULL || (crop->crs != NULL && crop->bounds.n == 4));
    return has ? crop : NULL;
}

bool pb_run_config_path(const struct pb_config *config, const char *text, char *out_path)
{
    const char *path = config->path != NULL ? config->path : "", *slash = strrchr(path, '/');
    int base = text[0] != '/' && slash != NULL ? (int)(slash + 1 - path) : 0;
    int n = snprintf(out_path, PATH_MAX, "%.*s%s", base, path, text);
    return n > 0 && n < PATH_MAX;
}

void pb_run_areas_hand(const struct pb_config *config, const struct pb_pipeline_config *pipeline)
{
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_crop *crop = crop_of(&pipeline->steps[i]);
        char path[PATH_MAX];
        if (crop != NULL && crop->polygons != NULL &&
            pb_run_config_path(config, crop->polygons, path))
            pb_vector_hand(path);
    }
}

static bool reads_polygons(const struct pb_pipeline_config *pipeline)
{
    bool reads = false;
    for (size_t i = 0; i < pipeline->n_steps; i++) {
        const struct pb_crop *crop = crop_of(&pipeline->steps[i]);
        reads = reads || (crop != NULL && crop->polygons != NULL);
    }
    for (size_t i = 0; i < pipeline->n_products; i++) {
        const struct pb_product_config *product = pipeline->products[i];
        reads = reads || (product->kind->vector != NULL && product->kind->vector(product) != NULL);
    }
    return reads;
}

bool pb_run_areas_read_polygons(const struct pb_config *config)
{
    bool reads = false;
    for (size_t i = 0; i < config->n_pipelines; i++)
        reads = reads || reads_polygons(&config->pipelines[i]);
    return reads;
}

/* Pixels around a rectangle in the scene's coordinate system; false: the scene has no transform. */
static bool to_pixels(const struct pb_raster_info *info, const double bounds[4],
                      struct pb_area *out)
{
    const double *t = info->transform, det = t[1] * t[5] - t[2] * t[4];
    if (!info->has_transform || det == 0)
        return false;
    *out = (struct pb_area){.left = FAR_PX, .top = FAR_PX, .right = -FAR_PX, .bottom = -FAR_PX};
    for (int i = 0; i < 4; i++) {
        const double dx = bounds[i & 1 ? 2 : 0] - t[0], dy = bounds[i & 2 ? 3 : 1] - t[3];
        const double x = (dx * t[5] - dy * t[2]) / det, y = (dy * t[1] - dx * t[4]) / det;
        out->left = fmin(out->left, fmax(x, -FAR_PX));
        out->top = fmin(out->top, fmax(y, -FAR_PX));
        out->right = fmax(out->right, fmin(x, FAR_PX));
        out->bottom = fmax(out->bottom, fmin(y, FAR_PX));
    }
    return true;
}

/* Shifts longitudes by whole circles until they meet those of the scene. -EDOM: they meet two
 * separate parts of it. bounds: in the scene's geographic system. */
static int turn(const struct pb_raster_info *info, double bounds[4])
{
    const double *t = info->transform, circle = 2 * acos(-1.0) / info->unit.radians;
    const double across = info->width * t[1], down = info->height * t[2];
    const double low = t[0] + fmin(across, 0) + fmin(down, 0);
    const double high = t[0] + fmax(across, 0) + fmax(down, 0), edge = EDGE_PX * hypot(t[1], t[2]);
    const double west = bounds[0];
    const double east = bounds[2] < west ? bounds[2] + circle : bounds[2];
    int n = 0;
    for (int i = -2; i <= 2; i++) {
        const double from = west + i * circle, to = east + i * circle;
        const bool all =
            (from <= low + edge && to >= high - edge) || (from >= low - edge && to <= high + edge);
        if (to <= low + edge || from >= high - edge)
            continue;
        bounds[0] = from;
        bounds[2] = to;
        if (all)
            return 0;
        n++;
    }
    if (n == 0) { /* outside the scene for every shift */
        bounds[0] = west;
        bounds[2] = east;
    }
    return n > 1 ? -EDOM : 0;
}

static int find_area(const struct pb_crop *crop, struct pb_raster *raster, struct pb_err *err,
                     struct pb_area *out, bool *out_is)
{
    const struct pb_raster_info *info = pb_raster_info(raster);
    const struct pb_item *const v = crop->bounds.items;
    const double bounds[4] = {v[0].num, v[1].num, v[2].num, v[3].num};
    double own[4], scene[4];
    int rc = pb_vector_bounds(bounds, crop->crs, raster, err, own);
    *out_is = true;
    if (rc == -ERANGE)
        *out = (struct pb_area){.none = true};
    if (rc == 0 && info->has_transform && info->unit.law == PB_GROUND_LATITUDE &&
        turn(info, own) < 0)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "crop: the bounds hold both the western and the eastern edge of the scene, "
                       "but not the middle; crop each part in a pipeline of its own");
    if (rc == 0)
        *out_is = to_pixels(info, own, out);
    out->has_both = (rc == 0 || rc == -ERANGE) && pb_vector_scene_bounds(crop->crs, raster, scene);
    if (out->has_both) {
        memcpy(out->named, bounds, sizeof out->named);
        memcpy(out->scene, scene, sizeof out->scene);
    }
    return rc == -ERANGE ? 0 : rc;
}

/* Bounds of the scene, in its own system. */
static void scene_of(const struct pb_raster_info *info, double out[4])
{
    const double *t = info->transform;
    const double across[2] = {info->width * t[1], info->height * t[2]};
    const double down[2] = {info->width * t[4], info->height * t[5]};
    out[0] = t[0] + fmin(across[0], 0) + fmin(across[1], 0);
    out[1] = t[3] + fmin(down[0], 0) + fmin(down[1], 0);
    out[2] = t[0] + fmax(across[0], 0) + fmax(across[1], 0);
    out[3] = t[3] + fmax(down[0], 0) + fmax(down[1], 0);
}

/* Error at the step's `where`. */
static int wrong_where(const struct pb_config *config, const struct pb_crop *crop, size_t at,
                       struct pb_err *err)
{
    const struct pb_item *const item = &crop->where.items[0];
    int line = 0;
    const char *file = pb_config_place(config, item->line, &line);
    const int col = item->col + (item->col > 0 && at != SIZE_MAX ? (int)at : 0);
    char words[sizeof err->msg];
    (void)snprintf(words, sizeof words, "%s", err->msg);
    *err = (struct pb_err){0};
    return pb_fail_at(err, PB_E_VECTOR_CHOICE, file, line, col, "crop.where: %s", words);
}

/* Adds the mask of the polygons, in pixels, for a step that cuts. */
static int add_mask(struct pb_run_areas *areas, const struct pb_crop *crop,
                    const struct pb_polygons *polygons, const struct pb_raster_info *info,
                    struct pb_err *err)
{
    struct pb_polygon_scan *scan =
        pb_polygon_scan_create(polygons, info->width, info->height,
                               crop->touched == 1 ? PB_SCAN_TOUCHED : PB_SCAN_CENTRES);
    if (areas->masks == NULL)
        areas->masks = pb_polygon_masks_create();
    if (scan != NULL && areas->masks != NULL && pb_polygon_masks_add(areas->masks, scan) == 0) {
        areas->bytes += pb_polygon_scan_bytes(polygons, info->width, info->height);
        return 0;
    }
    pb_polygon_scan_destroy(scan);
    return pb_fail(err, PB_E_MEMORY, "no memory for the polygons of %s", crop->polygons);
}

/* Adds the warning about one of the files that steps name. */
static void add_warning(struct pb_run_areas *areas, const struct pb_polygons *polygons,
                        const char *path)
{
    const size_t used = strlen(areas->warning);
    char own[sizeof areas->warning];
    pb_polygons_left_out(polygons, path, own, sizeof own);
    if (own[0] != '\0' && strstr(areas->warning, own) == NULL)
        (void)snprintf(areas->warning + used, sizeof areas->warning - used, "%s%s",
                       used > 0 ? "; " : "", own);
}

/* Refuses polygons at both edges without a cutline: their rectangle would have all columns between.
 */
static int check_gap(const struct pb_crop *crop, const struct pb_polygons *polygons,
                     const struct pb_raster_info *info, struct pb_err *err)
{
    const int rc =
        polygons->is_split && !pb_crop_cuts(crop) ? pb_polygons_gap(polygons, info->width) : 0;
    if (rc == 1)
        return pb_fail(err, PB_E_CONFIG_VALUE,
                       "crop: the polygons of %.100s hold both the western and the eastern edge of "
                       "the scene, but not the middle, because they cross the antimeridian "
                       "(or the meridian at which the scene ends); write cutline: true, or crop "
                       "each part in a pipeline of its own",
                       crop->polygons);
    return rc < 0 ? pb_fail(err, PB_E_MEMORY, "no memory for the polygons of %s", crop->polygons)
                  : 0;
}

static int around_polygons(struct pb_run_areas *areas, const struct pb_config *config,
                           const struct pb_crop *crop, struct pb_raster *raster, struct pb_err *err,
                           bool *out_is)
{
    struct pb_area *const out = &areas->area[areas->n].area;
    const struct pb_raster_info *info = pb_raster_info(raster);
    struct pb_polygons *polygons = NULL;
    char path[PATH_MAX];
    struct pb_vector_wrong wrong = {.is = false};
    double b[4];
    if (!pb_run_config_path(config, crop->polygons, path))
        return pb_fail(err, PB_E_CONFIG_VALUE, "crop.polygons: the path is longer than %d bytes",
                       PATH_MAX - 1);
    const struct pb_vector_request request = {
        .path = path,
        .layer = crop->layer,
        .filter = crop->where.n > 0 ? crop->where.items[0].text : NULL,
        .out_wrong = &wrong,
        .threads = pb_device_threads(config->compute.threads),
        .tolerance = 0.001 * fmin(hypot(info->transform[1], info->transform[4]),
                                  hypot(info->transform[2], info->transform[5]))};
    int rc = pb_vector_read(&request, raster, err, &polygons);
    if (rc < 0 && wrong.is)
        return wrong_where(config, crop, wrong.at, err);
    if (rc < 0)
        return rc;
    add_warning(areas, polygons, crop->polygons);
    out->has_both = info->has_transform && pb_polygons_bounds(polygons, out->named);
    if (out->has_both)
        scene_of(info, out->scene);
    *out_is = info->has_transform && pb_polygons_to_pixels(polygons, info->transform) == 0;
    out->none = !pb_polygons_bounds(polygons, b);
    out->left = fmax(fmin(b[0], FAR_PX), -FAR_PX);
    out->top = fmax(fmin(b[1], FAR_PX), -FAR_PX);
    out->right = fmax(fmin(b[2], FAR_PX), -FAR_PX);
    out->bottom = fmax(fmin(b[3], FAR_PX), -FAR_PX);
    if (*out_is)
        rc = check_gap(crop, polygons, info, err);
    if (rc == 0 && *out_is && pb_crop_cuts(crop)) {
        out->has_cutline = true;
        out->cutline = areas->masks != NULL ? (int32_t)pb_polygon_masks_count(areas->masks) : 0;
        rc = add_mask(areas, crop, polygons, info, err);
    }
    pb_polygons_free(polygons);
    return rc;
}

int pb_run_areas_find(struct pb_run_areas *areas, const struct pb_config *config,
                      const struct pb_pipeline_config *pipeline, struct pb_raster *raster,
                      struct pb_err *err)
{
    int rc = 0;
    areas->area = calloc(pipeline->n_steps + 1, sizeof *areas->area);
    if (areas->area == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    for (size_t i = 0; rc == 0 && i < pipeline->n_steps; i++) {
        const struct pb_crop *crop = crop_of(&pipeline->steps[i]);
        bool is = false;
        areas->area[areas->n].step = i;
        if (crop != NULL && crop->polygons != NULL)
            rc = around_polygons(areas, config, crop, raster, err, &is);
        else if (crop != NULL)
            rc = find_area(crop, raster, err, &areas->area[areas->n].area, &is);
        areas->n += is;
    }
    return rc;
}

int pb_run_areas_ready(struct pb_run_areas *areas, const struct pb_plan *plan, struct pb_err *err)
{
    uint32_t most = plan->layout.readers;
    if (areas->masks == NULL)
        return 0;
    for (size_t i = 0; i < plan->n_earlier; i++)
        most = plan->earlier[i]->layout.readers > most ? plan->earlier[i]->layout.readers : most;
    if (pb_polygon_masks_ready(areas->masks, most) == 0)
        return 0;
    return pb_fail(err, PB_E_MEMORY, "no memory for the cutline of a tile");
}

void pb_run_areas_fini(struct pb_run_areas *areas)
{
    pb_polygon_masks_destroy(areas->masks);
    areas->masks = NULL;
    free(areas->area);
    areas->area = NULL;
    areas->n = 0;
}
