/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUICKLOOK_INSIDE_H
#define PB_QUICKLOOK_INSIDE_H
/* State of a quicklook: quicklook.c and quicklook_blocks.c collect the pixels, quicklook_image.c
 * writes them. Internal to these files and quicklook_sizes.c. */
#include "pipeline/cog/pyramid.h"
#include "pipeline/product/product.h"
#include "pipeline/product/quicklook/quicklook.h"
#include "pipeline/product/quicklook/quicklook_colours.h"
#include "pipeline/product/quicklook/quicklook_turn.h"
#include "pipeline/product/quicklook/shrink.h"

enum { PB_QUICKLOOK_PLANES_MAX = PB_BANDS_MAX, PB_QUICKLOOK_SHOWN_MAX = 3 };

struct quicklook {
    const struct pb_product_env *env;
    const struct pb_quicklook_config *config;
    uint32_t n_bands;
    uint32_t plane[PB_BANDS_MAX];
    struct pb_shrink how;
    struct pb_grid grid;        /* for the pyramid */
    struct pb_pyramid *pyramid; /* NULL if level 0 itself is used */
    int32_t block_px;
    /* source_w x source_h each; tiles write disjoint parts */
    float *level[PB_QUICKLOOK_PLANES_MAX];
    float *target[PB_QUICKLOOK_PLANES_MAX];      /* target_w x target_h; made by finish */
    const float *shown[PB_QUICKLOOK_PLANES_MAX]; /* planes to show, of the same size */
    struct pb_quicklook_colours *colours;        /* n_pictures */
    uint32_t n_pictures;                         /* 1, or one for each band */
    const char *name[PB_QUICKLOOK_PLANES_MAX];   /* names of the bands; borrowed */
    struct pb_turn turn;
    struct pb_pixel_join join; /* join of the planes */
};

bool pb_quicklook_is_sheet(const struct pb_product_config *config);
/* Longest side of one picture. */
int32_t pb_quicklook_side(const struct pb_product_env *env, const struct pb_product_config *config);
struct pb_shrink pb_quicklook_sizes(const struct pb_product_env *env,
                                    const struct pb_product_config *config);
/* Grid for the pyramid. A single tile may have any side; rounded up it still contains all. */
struct pb_grid pb_quicklook_grid(const struct pb_grid *grid, int32_t *out_block_px);
/* Returns true for classes, which have no average: an index into a palette, or values that a
 * colour file names one by one. */
bool pb_quicklook_shows_classes(const struct pb_product_env *env,
                                const struct pb_quicklook_config *config);
/* Join of n shown planes. */
struct pb_pixel_join pb_quicklook_join(const struct pb_product_env *env,
                                       const struct pb_product_config *config,
                                       const uint32_t *plane, uint32_t n);
/* Count of shown bands, of n default ones, for a configuration without names. */
uint32_t pb_quicklook_shown_of(size_t n_bands, bool all);
/* Finds the planes of tiles that are shown; returns their count, or the error of
 * pb_product_bands(). */
int pb_quicklook_planes(const struct pb_product_env *env, const struct pb_product_config *config,
                        uint32_t *out_plane, struct pb_err *err);
/* Copies a row of w values, `step` floats apart, into the level. Values that are not finite
 * become invalid, as in products of floats. */
void pb_quicklook_take(const float *from, size_t step, int32_t w, float *to);
/* quicklook_blocks.c: functions of struct pb_product_type. */
const char *pb_quicklook_on_device(const struct pb_product_env *env,
                                   const struct pb_product_config *config,
                                   struct pb_device_blocks *out);
int pb_quicklook_block(void *product, const struct pb_cog_block *block, uint32_t worker,
                       struct pb_err *err);
/* Size of the whole image in pixels. */
void pb_quicklook_image_size(const struct quicklook *q, int32_t *out_w, int32_t *out_h);
/* Paints the pixels with the colours and writes out->file; fills bytes and checksum. */
int pb_quicklook_write_png(const struct quicklook *q, struct pb_err *err,
                           struct pb_product_result *out);
#endif
