/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Units, scales, colours and palettes of a COG's bands. Properties of files apply to a band
 * whose values are numbers of the file: masked, cropped or resampled, or the mean of several, if
 * all files have the same properties (kernels/band_tags.h). Colour tables apply only to selected
 * numbers. */
#include "pipeline/product/cog/cog.h"
#include "pipeline/product/product.h"

#include <stdio.h>

enum { PALETTE = 2, ALPHA = 6, COLOURS_U8 = 256 }; /* the first two are GDAL's numbers */

static bool holds_table(const struct pb_cog_config *cog, const struct pb_band_tags *q)
{
    return cog->type == PB_U16 || (cog->type == PB_U8 && q->n_colours <= COLOURS_U8);
}

static void take_over(const struct pb_band_tags *q, uint32_t n_bands,
                      const struct pb_cog_config *cog, struct pb_band_facts *out)
{
    bool as_stored = out->scale == 0;
    if (out->unit[0] == '\0')
        (void)snprintf(out->unit, sizeof out->unit, "%s", q->unit != NULL ? q->unit : "");
    if (as_stored && q->scale != 0 && (q->scale != 1 || q->offset != 0)) {
        out->scale = q->scale;
        out->offset = q->offset;
    }
    if (q->color > PALETTE && q->color != ALPHA)
        out->color = q->color;
    if (as_stored && n_bands == 1 && q->n_colours > 0 && holds_table(cog, q)) {
        out->colours = q->colours;
        out->n_colours = q->n_colours;
    }
}

void pb_cog_facts(const struct pb_product_env *env, const struct pb_cog_config *cog, uint32_t plane,
                  uint32_t n_bands, struct pb_band_facts *out)
{
    const struct pb_band_tags *q = env->tags != NULL ? env->tags[plane] : NULL;
    *out = (struct pb_band_facts){.scale = 0};
    if (cog->has_scale || cog->offset != 0) {
        out->scale = cog->has_scale ? cog->scale : 1;
        out->offset = cog->offset;
    }
    if (cog->unit != NULL)
        (void)snprintf(out->unit, sizeof out->unit, "%s", cog->unit);
    if (q != NULL)
        take_over(q, n_bands, cog, out);
}
