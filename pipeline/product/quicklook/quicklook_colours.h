/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_COLOURS_H
#define PB_QUICKLOOK_COLOURS_H
/* The colours of a quicklook: by a ramp, by the colour table of the scene when its one band is the
 * scene's first as stored and the configuration asks for nothing else, or grey levels. */
#include "pipeline/paint/painter.h"
#include "pipeline/product/product.h"
#include "pipeline/product/quicklook/quicklook.h"

struct pb_quicklook_colours {
    struct pb_painter painter;
    struct pb_ramp_table *ramp; /* owned; the painter's */
    char ends[512];             /* "R 0.012 .. 0.31; ...", for people */
    char colours[64];           /* "viridis", "the scene's colour table", ... */
    bool any_shown;
    struct pb_shown values;
};

/* Whether the scene's colour table is taken for this plane. */
bool pb_quicklook_takes_table(const struct pb_product_env *env,
                              const struct pb_quicklook_config *config, uint32_t n_planes,
                              uint32_t plane);
/* Channels of its pixels, as far as the configuration tells: for the plan. */
uint32_t pb_quicklook_channels(const struct pb_product_env *env,
                               const struct pb_quicklook_config *config, uint32_t n_planes);
/* Memory of the two calls below. */
uint64_t pb_quicklook_colours_bytes(const struct pb_product_env *env,
                                    const struct pb_quicklook_config *config);
/* Of pixels that are all there: plane[i] of env is shown[i], n_px each. 0, or memory. */
int pb_quicklook_colours_init(struct pb_quicklook_colours *colours,
                              const struct pb_product_env *env,
                              const struct pb_quicklook_config *config, const uint32_t *plane,
                              uint32_t n_planes, const float *const *shown, size_t n_px,
                              struct pb_err *err);
/* What the picture shows; NULL: nothing, or the scene's table of colours. Borrowed. */
const struct pb_shown *pb_quicklook_shown(const struct pb_quicklook_colours *colours);
void pb_quicklook_colours_fini(struct pb_quicklook_colours *colours);
#endif
