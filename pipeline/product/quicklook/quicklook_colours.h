/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_COLOURS_H
#define PB_QUICKLOOK_COLOURS_H
/* Colours of a quicklook: a ramp; the colour table of the scene if the one band is the scene's
 * first as stored and the configuration selects nothing else; or grey levels. */
#include "pipeline/paint/painter.h"
#include "pipeline/product/product.h"
#include "pipeline/product/quicklook/quicklook.h"

struct pb_quicklook_colours {
    struct pb_painter painter;
    struct pb_ramp_table *ramp; /* owned; the painter's */
    char ends[512];             /* "R 0.012 .. 0.31; ...", for users */
    char colours[64];           /* "viridis", "the scene's colour table", ... */
    bool any_shown;
    struct pb_shown values;
};

/* Returns true if the scene's colour table is used for this plane. */
bool pb_quicklook_takes_table(const struct pb_product_env *env,
                              const struct pb_quicklook_config *config, uint32_t n_planes,
                              uint32_t plane);
/* Count of channels of its pixels according to the configuration: for the plan. */
uint32_t pb_quicklook_channels(const struct pb_product_env *env,
                               const struct pb_quicklook_config *config, uint32_t n_planes);
/* Bytes of memory of the two calls below. */
uint64_t pb_quicklook_colours_bytes(const struct pb_product_env *env,
                                    const struct pb_quicklook_config *config);
/* Initialises the colours from complete pixels: plane[i] of env is shown[i], n_px each. Returns
 * 0, or memory. */
int pb_quicklook_colours_init(struct pb_quicklook_colours *colours,
                              const struct pb_product_env *env,
                              const struct pb_quicklook_config *config, const uint32_t *plane,
                              uint32_t n_planes, const float *const *shown, size_t n_px,
                              struct pb_err *err);
/* Returns the display of values in the picture; NULL: no values, or the scene's colour table.
 * Borrowed. */
const struct pb_shown *pb_quicklook_shown(const struct pb_quicklook_colours *colours);
void pb_quicklook_colours_fini(struct pb_quicklook_colours *colours);
#endif
