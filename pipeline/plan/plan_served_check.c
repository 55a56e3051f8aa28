/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Checks the facts that another process sends about its scene: numbers in their ranges, as many
 * sources as the pipeline has, and no coordinate that overflows. */
#include "config/config.h"
#include "config/pipeline_config.h"
#include "pipeline/plan/values.h"
#include "pipeline/plan/plan_served_parts.h"

#include <math.h>
#include <string.h>

/* Limit of coordinates and scales on a raster. */
#define FAR 1e15

bool pb_served_is_near(double x)
{
    return isfinite(x) && fabs(x) <= FAR;
}

static bool is_scale(double x)
{
    return pb_served_is_near(x) && x >= 1 / FAR;
}

static bool is_source(const struct pb_served_source *s, const struct pb_limits *limits)
{
    bool sized = s->w > 0 && s->h > 0 && s->w <= limits->max_side_px &&
                 s->h <= limits->max_side_px &&
                 (uint64_t)s->w * (uint64_t)s->h <= limits->max_pixels;
    bool banded = s->n_bands > 0 && s->n_bands <= PB_BANDS_MAX && s->n_bands <= limits->max_bands;
    bool mapped =
        !s->placed || (is_scale(s->map.scale_x) && is_scale(s->map.scale_y) &&
                       pb_served_is_near(s->map.offset_x) && pb_served_is_near(s->map.offset_y));
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

static bool is_text(const char *text, size_t room)
{
    return memchr(text, '\0', room) != NULL;
}

bool pb_served_is_rule(const struct pb_calibrated *rule)
{
    return pb_served_is_bool(&rule->rule.has_planck) && pb_served_is_bool(&rule->rule.has_tables) &&
           pb_served_is_near(rule->rule.gain) && pb_served_is_near(rule->rule.offset) &&
           pb_served_is_near(rule->rule.k1) && pb_served_is_near(rule->rule.k2) &&
           is_text(rule->band, sizeof rule->band) && is_text(rule->of, sizeof rule->of);
}

/* True if the area's cutline is a plane of the last source. */
static bool is_cutline(const struct pb_served_request *said, const struct pb_area *area,
                       const struct pb_pipeline_config *pipeline)
{
    return !area->has_cutline || (pb_plan_cutlines(pipeline) > 0 && area->cutline >= 0 &&
                                  area->cutline < said->source[said->n_sources - 1].n_bands);
}

bool pb_served_is_area(const struct pb_served_request *said, const struct pb_plan_area *area,
                       const struct pb_pipeline_config *pipeline)
{
    const struct pb_area *a = &area->area;
    const bool near = pb_served_is_near(a->left) && pb_served_is_near(a->top) &&
                      pb_served_is_near(a->right) && pb_served_is_near(a->bottom);
    return near && pb_served_is_bool(&a->none) && pb_served_is_bool(&a->has_both) &&
           pb_served_is_bool(&a->has_cutline) && is_cutline(said, a, pipeline);
}

static bool is_tile(const struct pb_ground_tile *tile)
{
    bool near = pb_served_is_near(tile->pixel) && tile->pixel >= 0;
    for (int i = 0; i < 4; i++)
        near = near && pb_served_is_near(tile->bounds[i]);
    return near && is_text(tile->id, sizeof tile->id) && is_text(tile->code, sizeof tile->code) &&
           is_text(tile->crs, sizeof tile->crs);
}

bool pb_served_is_unit(const struct pb_ground_unit *unit)
{
    const bool even = unit->law == PB_GROUND_EVEN;
    const bool known = even || unit->law == PB_GROUND_LATITUDE || unit->law == PB_GROUND_MERCATOR;
    bool fine = known && unit->square >= 0 && unit->square < 1 && unit->map_square >= 0 &&
                unit->map_square < 1 && pb_served_is_near(unit->origin);
    for (int i = 0; i < 2; i++)
        fine = fine && pb_served_is_near(unit->metres[i]) && unit->metres[i] >= 0;
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
        placed = placed && (!said->has_transform || pb_served_is_near(said->transform[i]));
    placed = placed && pb_served_is_unit(&said->unit);
    if (!counted || !ordered || !sided || !placed || said->whole > 2 ||
        said->n_sources != sources_of(base->pipeline) || said->n_sources > PB_FILES_MAX)
        return false;
    if (said->has_tile && !is_tile(&said->tile))
        return false;
    for (uint32_t i = 0; i < said->n_sources; i++)
        if (!is_source(&said->source[i], &base->config->limits) ||
            (said->whole != 0 && !is_layout(&said->source[i], &base->config->limits)))
            return false;
    return true;
}
