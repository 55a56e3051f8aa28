/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PYRAMID_H
#define PB_PYRAMID_H
/* A pyramid made in the same pass: every tile that arrives is halved into its parent block, and a
 * parent whose last child has arrived is passed to the sink and halved as well. Level 0 is the
 * image; level k is ceil(size / 2^k). Average takes the mean of the valid pixels of each 2x2 group
 * (fixed order of additions, so the result does not depend on the order of tiles); nearest takes
 * the upper left. All blocks are allocated by create; add() may be called by several threads. */
#include "config/base/err.h"
#include "kernels/codec/pixel_join.h"
#include "pipeline/grid/tile.h"

enum { PB_PYRAMID_JOINED_MAX = 192 }; /* planes of a pyramid with `join` */

struct pb_pyramid;

/* Receives a complete block of level `level` >= 1: n_bands planes of w x h pixels. half[0] has the
 * rows below block_px / 2, half[1] the others, if there are any: rows block_px apart, planes
 * block_px * block_px / 2. half NULL: each of its tiles was added without planes. Called on the
 * thread that added the last child. */
typedef int (*pb_pyramid_sink)(void *user, uint32_t level, uint32_t col, uint32_t row, int32_t w,
                               int32_t h, const float *const *half, uint32_t worker,
                               struct pb_err *err);

struct pb_pyramid_options {
    /* Grid of the arriving tiles of level 0; side_px is a multiple of block_px. */
    const struct pb_grid *grid;
    enum pb_order order;
    uint32_t tiles_in_flight; /* see struct pb_product_env */
    uint32_t workers;         /* threads that call add(); 0 = unknown, tiles_in_flight is used */
    int32_t block_px;         /* power of two, 4 at least */
    uint32_t levels;          /* count of levels above 0; 0 = no overviews */
    uint32_t n_bands;
    bool nearest;
    /* Rule for the valid pixels of the image in averages: an overview pixel is valid if one of them
     * is. */
    struct pb_pixel_join join;
    pb_pyramid_sink sink;
    void *user;
};

/* Count of levels until both sides are at most block_px. */
uint32_t pb_pyramid_levels(int32_t image_w, int32_t image_h, int32_t block_px);
int32_t pb_pyramid_size(int32_t size_px, uint32_t level);
/* Bytes that create() will allocate; UINT64_MAX if memory for the count itself is missing. */
uint64_t pb_pyramid_bytes(const struct pb_pyramid_options *options);
int pb_pyramid_create(const struct pb_pyramid_options *options, struct pb_err *err,
                      struct pb_pyramid **out_pyramid);
/* Adds the level 0 pixels of `core` (aligned to block_px, clipped to the image): band b at
 * planes[b], rows row_px apart; planes NULL: no pixel is valid. */
int pb_pyramid_add(struct pb_pyramid *pyramid, const struct pb_rect *core,
                   const float *const *planes, size_t row_px, uint32_t worker, struct pb_err *err);
void pb_pyramid_destroy(struct pb_pyramid *pyramid);
#endif
