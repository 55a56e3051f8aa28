/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/quicklook/quicklook_colours.h"
#include "pipeline/paint/stretch.h"
#include "pipeline/product/joint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pb_quicklook_takes_table(const struct pb_product_env *env,
                              const struct pb_quicklook_config *config, uint32_t n_planes,
                              uint32_t plane)
{
    const struct pb_raster_info *info = env->info;
    const struct pb_band_tags *q = env->tags != NULL ? env->tags[plane] : NULL;
    return n_planes == 1 && !config->paint.is_asked && info->n_palette > 0 && q != NULL &&
           q->n_colours == info->n_palette &&
           memcmp(q->colours, info->palette, q->n_colours * sizeof *q->colours) == 0;
}

uint32_t pb_quicklook_channels(const struct pb_product_env *env,
                               const struct pb_quicklook_config *config, uint32_t n_planes)
{
    bool grey = n_planes == 1 && config->paint.chosen == NULL && env->info->n_palette == 0;
    return grey ? 2 : 4;
}

uint64_t pb_quicklook_colours_bytes(const struct pb_product_env *env,
                                    const struct pb_quicklook_config *config)
{
    uint64_t table = env->info->n_palette * sizeof(struct pb_ramp_stop);
    const struct pb_ramp palette = {.n = env->info->n_palette};
    uint64_t own = pb_ramp_table_bytes(&palette) + table;
    uint64_t ramp = config->paint.chosen != NULL ? pb_ramp_table_bytes(config->paint.chosen) : 0;
    return (ramp > own ? ramp : own) + pb_stretch_bytes();
}

/* Assigns each index its colour; other values do not occur. */
static int take_table(struct pb_quicklook_colours *colours, const struct pb_raster_info *info,
                      struct pb_err *err)
{
    struct pb_ramp ramp = {.n = info->n_palette, .between = PB_RAMP_EXACT};
    struct pb_ramp_stop *stops = calloc(info->n_palette, sizeof *stops);
    for (size_t i = 0; stops != NULL && i < info->n_palette; i++) {
        stops[i].at = (double)i;
        memcpy(stops[i].rgba, info->palette[i], sizeof stops[i].rgba);
    }
    ramp.stop = stops;
    if (stops != NULL)
        colours->ramp = pb_ramp_table_create(&ramp, 0, 0);
    free(stops);
    (void)snprintf(colours->colours, sizeof colours->colours, "the scene's colour table");
    (void)snprintf(colours->ends, sizeof colours->ends, "none: every value has its colour");
    return colours->ramp != NULL ? 0
                                 : pb_fail(err, PB_E_MEMORY, "no memory for a quicklook's colours");
}

/* Writes "R 0.012 .. 0.31; G ...; " and the origin of the ends. */
static void describe_ends(struct pb_quicklook_colours *colours, const struct pb_product_env *env,
                          const struct pb_paint_config *paint, const uint32_t *plane)
{
    const struct pb_painter *painter = &colours->painter;
    char how[100];
    size_t used = 0, room = sizeof colours->ends;
    char *text = colours->ends;
    for (uint32_t p = 0; p < painter->n_planes && used < room; p++)
        used += (size_t)snprintf(text + used, room - used, "%s %.9g .. %.9g; ",
                                 env->band_names[plane[p]], painter->low[p], painter->high[p]);
    if (paint->has_range)
        (void)snprintf(how, sizeof how, "as configured");
    else if (paint->method == PB_STRETCH_MINMAX)
        (void)snprintf(how, sizeof how, "the extremes of the pixels shown");
    else if (paint->method == PB_STRETCH_STDDEV)
        (void)snprintf(how, sizeof how,
                       "%g standard deviations around the mean of the pixels shown",
                       paint->deviations);
    else if (paint->method == PB_STRETCH_EQUALIZE)
        (void)snprintf(how, sizeof how, "equalized over the pixels shown");
    else
        (void)snprintf(how, sizeof how, "percentiles %g .. %g of the pixels shown",
                       paint->stretch[0], paint->stretch[1]);
    if (used < room)
        used += (size_t)snprintf(text + used, room - used, "%s", how);
    if (used < room && pb_paint_has_gamma(paint))
        (void)snprintf(text + used, room - used, "; gamma %g", paint->gamma);
}

static int find_ends(struct pb_quicklook_colours *colours, const struct pb_paint_config *paint,
                     const float *const *shown, size_t n_px, struct pb_err *err)
{
    struct pb_painter *painter = &colours->painter;
    const struct pb_stretch_how how = {.any = painter->any,
                                       .method = (enum pb_stretch_method)paint->method,
                                       .percentiles = {paint->stretch[0], paint->stretch[1]},
                                       .deviations = paint->deviations};
    int rc = 0;
    colours->any_shown = true;
    for (uint32_t p = 0; p < painter->n_planes; p++)
        painter->curve[p] =
            (struct pb_stretch_curve){2, {paint->range[0], paint->range[1]}, paint->gamma};
    if (!paint->has_range)
        rc = pb_stretch_find(shown, painter->n_planes, n_px, &how, err, painter->curve,
                             &colours->any_shown);
    for (uint32_t p = 0; p < painter->n_planes; p++) {
        painter->low[p] = painter->curve[p].at[0];
        painter->high[p] = painter->curve[p].at[painter->curve[p].n - 1];
    }
    painter->is_curved =
        pb_paint_has_gamma(paint) || (!paint->has_range && how.method == PB_STRETCH_EQUALIZE);
    return rc;
}

static int take_ramp(struct pb_quicklook_colours *colours, const struct pb_paint_config *paint,
                     struct pb_err *err)
{
    size_t length;
    const char *name = pb_key_choice(pb_ramp_choices, paint->ramp, &length);
    const char *slash = paint->colours != NULL ? strrchr(paint->colours, '/') : NULL;
    const struct pb_painter *painter = &colours->painter;
    colours->ramp = painter->is_curved
                        ? pb_ramp_table_create(paint->chosen, 0, 1)
                        : pb_ramp_table_create(paint->chosen, painter->low[0], painter->high[0]);
    if (colours->ramp == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a quicklook's colours");
    if (paint->colours == NULL)
        (void)snprintf(colours->colours, sizeof colours->colours, "%.*s", (int)length, name);
    else
        (void)snprintf(colours->colours, sizeof colours->colours, "%s",
                       slash != NULL ? slash + 1 : paint->colours);
    return 0;
}

static void take_values(struct pb_quicklook_colours *colours, const struct pb_paint_config *paint,
                        const uint32_t *plane)
{
    const struct pb_painter *painter = &colours->painter;
    struct pb_shown *values = &colours->values;
    values->n = painter->n_planes;
    values->has_ends = paint->chosen == NULL || pb_ramp_needs_range(paint->chosen);
    values->paint = paint;
    for (uint32_t p = 0; p < values->n; p++) {
        values->plane[p] = plane[p];
        values->low[p] = painter->low[p];
        values->high[p] = painter->high[p];
    }
    /* A range describes neither a curve nor a shade. */
    if ((values->has_ends && !colours->any_shown) || painter->is_curved || painter->has_shade)
        values->n = 0;
}

const struct pb_shown *pb_quicklook_shown(const struct pb_quicklook_colours *colours)
{
    return colours->values.n > 0 ? &colours->values : NULL;
}

int pb_quicklook_colours_init(struct pb_quicklook_colours *colours,
                              const struct pb_product_env *env,
                              const struct pb_quicklook_config *config, const uint32_t *plane,
                              uint32_t n_planes, const float *const *shown, size_t n_px,
                              struct pb_err *err)
{
    const struct pb_paint_config *paint = &config->paint;
    int rc = 0;
    *colours =
        (struct pb_quicklook_colours){.painter = {.n_planes = n_planes - (paint->shade != NULL),
                                                  .has_shade = paint->shade != NULL,
                                                  .blend = (enum pb_paint_blend)paint->blend,
                                                  .alpha = true}};
    n_planes = colours->painter.n_planes;
    colours->painter.any = pb_joint_any(config->valid, n_planes, true);
    colours->painter.fill = pb_joint_nodata(env, plane, n_planes);
    (void)snprintf(colours->colours, sizeof colours->colours, "%s",
                   n_planes == 1 ? "grey" : "red, green, blue");
    if (pb_quicklook_takes_table(env, config, n_planes, plane[0])) {
        rc = take_table(colours, env->info, err);
    } else if (paint->chosen != NULL && !pb_ramp_needs_range(paint->chosen)) {
        (void)snprintf(colours->ends, sizeof colours->ends, "none: the file has values");
        rc = take_ramp(colours, paint, err);
    } else {
        rc = find_ends(colours, paint, shown, n_px, err);
        if (colours->any_shown)
            describe_ends(colours, env, paint, plane);
        else
            (void)snprintf(colours->ends, sizeof colours->ends, "no valid pixel");
        if (rc == 0 && paint->chosen != NULL)
            rc = take_ramp(colours, paint, err);
    }
    colours->painter.has_ramp = colours->ramp != NULL;
    colours->painter.ramp = colours->ramp;
    if (!pb_quicklook_takes_table(env, config, n_planes, plane[0]))
        take_values(colours, paint, plane);
    return rc;
}

void pb_quicklook_colours_fini(struct pb_quicklook_colours *colours)
{
    pb_ramp_table_destroy(colours->ramp);
    colours->ramp = NULL;
}
