/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/cog/cog_paint.h"

#include "config/product_check.h"
#include "pipeline/product/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool pb_cog_any(const struct pb_cog_config *config, uint32_t n_bands)
{
    const bool picture = config->is_painted ? config->paint.chosen == NULL
                                            : config->mask != 0 && config->type == PB_U8;
    return pb_joint_any(config->valid, n_bands - (config->paint.shade != NULL), picture);
}

struct pb_ramp_table *pb_cog_ramp(const struct pb_cog_config *config)
{
    const struct pb_paint_config *paint = &config->paint;
    if (paint->chosen == NULL)
        return NULL;
    return pb_paint_has_gamma(paint)
               ? pb_ramp_table_create(paint->chosen, 0, 1)
               : pb_ramp_table_create(paint->chosen, paint->range[0], paint->range[1]);
}

struct pb_painter pb_cog_painter(const struct pb_cog_config *config, uint32_t n_bands,
                                 const struct pb_ramp_table *ramp)
{
    const struct pb_paint_config *paint = &config->paint;
    const double *range = paint->range;
    const struct pb_stretch_curve curve = {2, {range[0], range[1]}, paint->gamma};
    return (struct pb_painter){
        .n_planes = n_bands - (paint->shade != NULL),
        .has_ramp = paint->chosen != NULL,
        .ramp = ramp,
        .low = {range[0], range[0], range[0]},
        .high = {range[1], range[1], range[1]},
        .is_curved = pb_paint_has_gamma(paint),
        .curve = {curve, curve, curve},
        .has_shade = paint->shade != NULL,
        .blend = (enum pb_paint_blend)paint->blend,
        .any = pb_cog_any(config, n_bands),
        .fill = (double)NAN,
        .alpha = config->has_alpha,
        .has_nodata = config->has_nodata,
        .nodata = config->is_painted && config->has_nodata ? (uint8_t)config->nodata : 0,
    };
}

void pb_cog_find_steps(struct pb_cog_config *cog, const struct pb_product_check *check)
{
    const size_t n = cog->product.n_bands;
    struct pb_ramp_table *ramp = pb_cog_ramp(cog);
    struct pb_paint_step *room = malloc(PB_PAINT_STEPS_MAX * sizeof *room), *kept = NULL;
    const struct pb_painter painter =
        pb_cog_painter(cog, (uint32_t)n + (cog->paint.shade != NULL), ramp);
    uint32_t steps = 0;
    if (room != NULL && (cog->paint.chosen == NULL || ramp != NULL))
        steps = pb_paint_steps_find(&painter, room);
    if (steps > 0)
        kept = pb_product_key_alloc(check, steps, sizeof *kept);
    if (kept != NULL) {
        memcpy(kept, room, steps * sizeof *kept);
        cog->steps = (struct pb_paint_steps){.n = steps, .step = kept};
        if (cog->paint.chosen != NULL)
            memcpy(cog->steps.invalid, cog->paint.chosen->invalid, sizeof cog->steps.invalid);
    }
    free(room);
    pb_ramp_table_destroy(ramp);
}
