/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_INSIDE_H
#define PB_QUICKLOOK_INSIDE_H
/* A quicklook in the making: what quicklook.c gathers and quicklook_image.c writes. Internal to
 * both. */
#include "pipeline/cog/pyramid.h"
#include "pipeline/product/product.h"
#include "pipeline/product/quicklook.h"
#include "pipeline/product/quicklook_colours.h"
#include "pipeline/product/quicklook_turn.h"
#include "pipeline/product/shrink.h"

enum { PB_QUICKLOOK_PLANES_MAX = PB_BANDS_MAX };

struct quicklook {
    const struct pb_product_env *env;
    const struct pb_quicklook_config *config;
    uint32_t n_bands;
    uint32_t plane[PB_BANDS_MAX];
    struct pb_shrink how;
    struct pb_grid grid;        /* for the pyramid */
    struct pb_pyramid *pyramid; /* NULL when level 0 itself is kept */
    int32_t block_px;
    float *level[PB_QUICKLOOK_PLANES_MAX];  /* source_w x source_h each; tiles write disjoint parts
                                               of it */
    float *target[PB_QUICKLOOK_PLANES_MAX]; /* target_w x target_h; made by finish */
    const float *shown[PB_QUICKLOOK_PLANES_MAX]; /* the same */
    struct pb_quicklook_colours *colours;        /* n_pictures */
    uint32_t n_pictures;                         /* 1, or one a band */
    const char *name[PB_QUICKLOOK_PLANES_MAX];   /* of the bands; borrowed */
    struct pb_turn turn;
};

bool pb_quicklook_is_sheet(const struct pb_product_config *config);
/* Of the whole image, in pixels. */
void pb_quicklook_image_size(const struct quicklook *q, int32_t *out_w, int32_t *out_h);
/* Paints what is shown and writes out->file, by the colours; fills bytes and checksum. */
int pb_quicklook_write_png(const struct quicklook *q, struct pb_err *err,
                           struct pb_product_result *out);
#endif
