/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOCK_CACHE_H
#define PB_BLOCK_CACHE_H
/* Decoded parts of the scene, shared by all readers of a run, so that parts which several tiles
 * need (the halo around a tile, a strip that covers a row of tiles) are decoded once. Cells are
 * the parts of a regular grid over the image; a fixed number of them is in memory, allocated by
 * pb_block_cache_create. */
#include "config/base/err.h"
#include "kernels/view.h"
#include "pipeline/grid/cell_shape.h"
#include "pipeline/raster/raster.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_block_cache;

struct pb_block_cache_options {
    struct pb_cell_shape shape;
    uint32_t count; /* cells in memory, at least 1 */
    const int32_t *bands;
    size_t n_bands;
    enum pb_type type;
    bool has_mask;
    /* How one or two cells are decoded; NULL = pb_raster_read_two. */
    void (*decode)(struct pb_raster *raster, const int32_t *bands, size_t n_bands,
                   const struct pb_window *to, unsigned n, struct pb_read_result *out_result);
};

/* A user of the cache, with its own raster. */
struct pb_cache_reader {
    struct pb_raster *raster;
    uint64_t *parked_ns; /* the time spent waiting for other readers is added */
    /* NULL, or its raster decodes two cells at a time faster than one after the other: sets the
     * rectangle that is read as the i-th after the current one, and returns false after the last
     * known one. It is called with the cache's lock held. */
    bool (*later)(void *user, uint32_t i, struct pb_rect *out_rect);
    void *user;
    /* NULL, or two rectangles, empty if w is 0, with all pixels that later reads need of the cells
     * of this one: cells outside of both are free after this read. Later cells are decoded into
     * free cells only. NULL: not known; the least recently used cells make room for later ones. */
    const struct pb_rect *rest;
};

/* Bytes of one cell, and of a whole cache without GDAL's memory. */
uint64_t pb_block_cache_cell_bytes(const struct pb_block_cache_options *options);
uint64_t pb_block_cache_bytes(const struct pb_block_cache_options *options);

/* bands is borrowed. Thread: init. */
int pb_block_cache_create(const struct pb_block_cache_options *options, struct pb_err *err,
                          struct pb_block_cache **out_cells);
void pb_block_cache_destroy(struct pb_block_cache *cache); /* after the last reader is gone */

/* Copies the pixels of target->rect; decodes missing cells with the reader's own raster, and with
 * each of them a second one: of this rectangle, or else of a later one. A later cell that does not
 * decode is no failure until its own read. Returns 0; after the first failed decode of any thread
 * always the error of that decode; -ECANCELED without an error after pb_block_cache_abort.
 * Thread: reader. */
int pb_block_cache_read(struct pb_block_cache *cache, const struct pb_cache_reader *reader,
                        const struct pb_window *target, struct pb_err *err);
void pb_block_cache_abort(struct pb_block_cache *cache); /* NULL is fine. Thread: any */
/* Count of pixels (of one band) decoded so far: larger than the image if cells were decoded
 * again. Thread: any */
uint64_t pb_block_cache_decoded_px(struct pb_block_cache *cache);
#endif
