/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks the facts that another process sends about its scene: numbers in their ranges, as many
 * sources as the pipeline has, and no coordinate that overflows. */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/plan_calibrate.h"
#include "pipeline/plan/plan_served_parts.h"

#include <math.h>

/* Limit of coordinates and scales on a raster. */
#define FAR 1e15

static bool is_near(double x)
{
    return isfinite(x) && fabs(x) <= FAR;
}

static bool is_scale(double x)
{
    return is_near(x) && x >= 1 / FAR;
}

static bool is_source(const struct pb_served_source *s, const struct pb_limits *limits)
{
    bool sized = s->w > 0 && s->h > 0 && s->w <= limits->max_side_px &&
                 s->h <= limits->max_side_px &&
                 (uint64_t)s->w * (uint64_t)s->h <= limits->max_pixels;
    bool banded = s->n_bands > 0 && s->n_bands <= PB_BANDS_MAX && s->n_bands <= limits->max_bands;
    bool mapped = !s->placed || (is_scale(s->map.scale_x) && is_scale(s->map.scale_y) &&
                                 is_near(s->map.offset_x) && is_near(s->map.offset_y));
    return sized && banded && mapped && s->type >= 0 && s->type < PB_TYPE_COUNT;
}

static bool is_layout(const struct pb_served_source *s, const struct pb_limits *limits)
{
    const struct pb_served_layout *l = &s->layout;
    bool sized = l->block_w > 0 && l->block_h > 0 && l->block_w <= limits->max_side_px &&
                 l->block_h <= limits->max_side_px && l->stored_max <= limits->max_block_bytes * 2;
    uint64_t bytes = sized ? (uint64_t)l->block_w * (uint64_t)l->block_h *
                                 pb_type_bytes((enum pb_type)s->type) *
                                 (l->planar ? 1 : (uint64_t)s->n_bands)
                           : UINT64_MAX;
    bool masked = l->alpha_band >= 0 && l->alpha_band <= s->n_bands;
    bool known = masked && l->predictor >= 1 && l->predictor <= 3 && l->compression <= UINT16_MAX;
    bool floats = l->predictor != 3 || s->type == PB_F32 || s->type == PB_F64;
    return sized && known && floats &&
           (l->compression == 1 || (bytes <= limits->max_block_bytes && bytes <= UINT32_MAX)) &&
           bytes <= INT64_MAX / 2;
}

/* Count of sources: the scene, other files, tables of the metadata, and polygons. */
static size_t sources_of(const struct pb_pipeline_config *pipeline)
{
    return 1 + pipeline->input.n_sources + (pb_plan_tables(pipeline) > 0) +
           (pb_plan_cutlines(pipeline) > 0);
}

/* True if the area's cutline is a plane of the last source. */
static bool is_cutline(const struct pb_served_request *said, const struct pb_served_area *area,
                       const struct pb_pipeline_config *pipeline)
{
    return area->has_cutline == 0 || (pb_plan_cutlines(pipeline) > 0 && area->cutline >= 0 &&
                                      area->cutline < said->source[said->n_sources - 1].n_bands);
}

static bool is_unit(const struct pb_ground_unit *unit)
{
    const bool even = unit->law == PB_GROUND_EVEN;
    const bool known = even || unit->law == PB_GROUND_LATITUDE || unit->law == PB_GROUND_MERCATOR;
    bool fine = known && unit->square >= 0 && unit->square < 1 && unit->map_square >= 0 &&
                unit->map_square < 1 && is_near(unit->origin);
    for (int i = 0; i < 2; i++)
        fine = fine && is_near(unit->metres[i]) && unit->metres[i] >= 0;
    return fine && (even || (is_scale(unit->axis) && is_scale(unit->radians)));
}

bool pb_served_is_sound(const struct pb_served_request *said, const struct pb_plan_request *base)
{
    bool counted = said->in_slots > 0 && said->in_slots <= PB_SERVED_SLOTS_MAX &&
                   said->out_slots > 0 && said->out_slots <= PB_SERVED_SLOTS_MAX &&
                   said->workers > 0 && said->workers <= PB_SERVED_WORKERS_MAX;
    bool ordered = said->order <= PB_ORDER_Z && said->window_units > 0 &&
                   said->window_units <= PB_SERVED_WINDOW_MAX && said->stripe_cols >= 0 &&
                   said->unit_cols >= 0;
    bool sided = said->side_px >= 64 && said->side_px <= 8192;
    bool placed = true;
    for (int i = 0; i < 6; i++)
        placed = placed && (!said->has_transform || is_near(said->transform[i]));
    placed = placed && is_unit(&said->unit);
    if (!counted || !ordered || !sided || !placed || said->n_numbers > PB_SERVED_NUMBERS_MAX ||
        said->n_sources != sources_of(base->pipeline) || said->n_sources > PB_FILES_MAX)
        return false;
    if (said->n_rules > PB_SERVED_RULES_MAX || said->whole > 2 ||
        said->n_areas > PB_SERVED_AREAS_MAX)
        return false;
    for (uint32_t i = 0; i < said->n_areas; i++)
        if (!is_near(said->area[i].left) || !is_near(said->area[i].top) ||
            !is_near(said->area[i].right) || !is_near(said->area[i].bottom) ||
            !is_cutline(said, &said->area[i], base->pipeline))
            return false;
    for (uint32_t i = 0; i < said->n_rules; i++)
        if (!is_near(said->rule[i].gain) || !is_near(said->rule[i].offset) ||
            !is_near(said->rule[i].k1) || !is_near(said->rule[i].k2))
            return false;
    for (uint32_t i = 0; i < said->n_sources; i++)
        if (!is_source(&said->source[i], &base->config->limits) ||
            (said->whole != 0 && !is_layout(&said->source[i], &base->config->limits)))
            return false;
    return true;
}
