/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/run_areas.h"

#include "kernels/ops/geometry/crop.h"
#include "pipeline/gdal/vector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Pixels beyond which an edge is as good as there. */
#define FAR_PX 1e9

/* The struct of a step that has an area; NULL = another one. */
static const struct pb_crop *crop_of(const struct pb_step_config *step)
{
    const struct pb_crop *crop = step->op == pb_op_find("crop") ? step->params : NULL;
    return crop != NULL && crop->crs != NULL && crop->bounds.n == 4 ? crop : NULL;
}

/* The pixels around a rectangle of the scene's coordinate system; false: it has no transform. */
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

static int find_area(const struct pb_crop *crop, struct pb_raster *raster, struct pb_err *err,
                     struct pb_area *out, bool *out_is)
{
    const struct pb_item *const v = crop->bounds.items;
    const double bounds[4] = {v[0].num, v[1].num, v[2].num, v[3].num};
    double own[4];
    int rc = pb_vector_bounds(bounds, crop->crs, raster, err, own);
    *out_is = true;
    if (rc == -ERANGE)
        *out = (struct pb_area){.none = true};
    else if (rc == 0)
        *out_is = to_pixels(pb_raster_info(raster), own, out);
    return rc == -ERANGE ? 0 : rc;
}

int pb_run_areas_find(struct pb_run_areas *areas, const struct pb_pipeline_config *pipeline,
                      struct pb_raster *raster, struct pb_err *err)
{
    int rc = 0;
    areas->area = calloc(pipeline->n_steps + 1, sizeof *areas->area);
    if (areas->area == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while planning");
    for (size_t i = 0; rc == 0 && i < pipeline->n_steps; i++) {
        const struct pb_crop *crop = crop_of(&pipeline->steps[i]);
        bool is = false;
        areas->area[areas->n].step = i;
        if (crop != NULL)
            rc = find_area(crop, raster, err, &areas->area[areas->n].area, &is);
        areas->n += is;
    }
    return rc;
}

void pb_run_areas_fini(struct pb_run_areas *areas)
{
    free(areas->area);
    areas->area = NULL;
    areas->n = 0;
}
