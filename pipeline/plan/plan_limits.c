/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan/plan_limits.h"
#include "config/config.h"
#include "config/input_config.h"

static uint64_t pixels_of(const struct pb_raster_info *info)
{
    return (uint64_t)info->width * (uint64_t)info->height;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Files of input.sources are the user's own, therefore a grid of the size of such a file is always
 * allowed; but their pixels do not count as the scene's. */
struct pb_grid_limits pb_plan_grid_limits(const struct pb_plan_request *request)
{
    const struct pb_limits *limits = &request->config->limits;
    uint64_t scene = pixels_of(request->info), largest = scene;
    for (size_t i = 0; i < request->n_others; i++) {
        const struct pb_plan_other *other = &request->others[i];
        if (other->made_of != PB_MADE_OF_FILE || other->is_absent)
            continue;
        largest = most(largest, pixels_of(other->info));
        scene += other->config->of_scene ? pixels_of(other->info) : 0;
    }
    const double grown = (double)scene * (double)limits->max_growth;
    return (struct pb_grid_limits){
        .side_px = limits->max_side_px,
        .pixels = limits->max_pixels,
        .growth_pixels = most(grown < (double)INT64_MAX ? (uint64_t)grown : UINT64_MAX,
                              most(largest, PB_GROWTH_FREE_PX)),
        .growth = limits->max_growth};
}

int pb_plan_tiles_fit(const struct pb_plan_request *request, size_t n, uint64_t pixels,
                      struct pb_err *err)
{
    const struct pb_grid_limits limits = pb_plan_grid_limits(request);
    if (pixels <= limits.growth_pixels)
        return 0;
    return pb_fail(err, PB_E_OUTPUT_LIMIT,
                   "%zu tiles would have %llu pixels together, more than %llu times as many as the "
                   "scene (limits.max_growth); check the scene's georeferencing and the size of "
                   "its pixels, or name the tiles that are wanted",
                   n, (unsigned long long)pixels, (unsigned long long)limits.growth);
}
