/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_TILES_H
#define PB_RUN_TILES_H
/* Tiles of a grid for which a run makes products, one after the other, and the result of each.
 * n 0: the pipeline has no such grid. One thread an object, except for the sink. */
#include "kernels/tiling.h"
#include "pipeline/plan/plan.h"
#include "pipeline/run/run.h"
#include "pipeline/run/base/sink.h"

#include <stdatomic.h>

enum pb_tile_state {
    PB_TILE_TO_DO,
    PB_TILE_MADE,
    PB_TILE_EMPTY,  /* no band has a valid pixel in it: it has no products */
    PB_TILE_OUTSIDE /* the scene does not reach it, although the step names it */
};

struct pb_run_tile {
    struct pb_ground_tile place;
    enum pb_tile_state state;
    int32_t w, h;
    uint64_t passes; /* count of the tiles of its plan, over all passes */
};

struct pb_run_tiles {
    struct pb_run_tile *tile;
    size_t n, at;                      /* at: index of the current tile */
    char name[PB_TILE_ID_BYTES + 256]; /* name of the current tile's products */
    size_t n_bands;                    /* bands of its pixels */
    atomic_bool valid;                 /* a pixel of the current tile is valid */
    struct pb_run_report report;       /* sum over the tiles before it */
    struct pb_err outside;             /* why the first tile outside the scene is left out */
};

/* Fills a zeroed object: the tiles of the pipeline's step that touch the outline of the image.
 * input.outside: no tile does; pipeline.tiles. Needs fini in any case. */
int pb_run_tiles_find(struct pb_run_tiles *tiles, const struct pb_pipeline_config *pipeline,
                      struct pb_raster *raster, struct pb_err *err);
/* Records the planning of the tile `at`: rc and *err are its result. Returns 0 if the run
 * continues; clears *err when the scene does not reach the tile. */
int pb_run_tiles_planned(struct pb_run_tiles *tiles, int rc, const struct pb_plan *plan,
                         struct pb_err *err);
/* Call it after all tiles are planned: drops the unnamed tiles that the scene does not touch, and
 * selects the first. Errors: input.outside, no tile is left, with a list of them; pipeline.tiles,
 * too many tiles or products. */
int pb_run_tiles_settle(struct pb_run_tiles *tiles, const struct pb_pipeline_config *pipeline,
                        struct pb_err *err);
/* Pixels of the tiles that are to be made, once they are planned; *out_n: count of these tiles. */
uint64_t pb_run_tiles_pixels(const struct pb_run_tiles *tiles, size_t *out_n);
/* Selects the next tile to be made; false at the end. */
bool pb_run_tiles_next(struct pb_run_tiles *tiles);
/* Returns true if a tile is to be made after the current one. */
bool pb_run_tiles_more(const struct pb_run_tiles *tiles);
/* NULL: the pipeline has no tiles. */
const struct pb_ground_tile *pb_run_tiles_place(const struct pb_run_tiles *tiles);
/* Receives every tile of pixels and checks for valid ones. */
struct pb_sink pb_run_tiles_sink(struct pb_run_tiles *tiles, const struct pb_product_env *env);
/* Adds the times of a finished tile of the grid; threads and names are those of the last. */
void pb_run_tiles_report(struct pb_run_tiles *tiles, const struct pb_run_report *of);
/* Counts the pixel tiles in the other tiles of the grid: done, and in all. */
void pb_run_tiles_progress(const struct pb_run_tiles *tiles, uint64_t *out_done,
                           uint64_t *out_total);
void pb_run_tiles_fini(struct pb_run_tiles *tiles);
/* "made", "empty", "outside"; "planned" before. Static. */
const char *pb_run_tile_state(enum pb_tile_state state);
#endif
