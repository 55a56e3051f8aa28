/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_TILES_H
#define PB_RUN_TILES_H
/* The tiles of a grid that a run makes products of, one after the other; and what became of each.
 * n 0: the pipeline has no such grid. One thread an object, but for the sink. */
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
    uint64_t passes; /* tiles of its plan, over all passes */
};

struct pb_run_tiles {
    struct pb_run_tile *tile;
    size_t n, at;                      /* at: that under way */
    char name[PB_TILE_ID_BYTES + 256]; /* of the products of that */
    size_t n_bands;                    /* of the pixels */
    atomic_bool valid;                 /* a pixel of the tile under way is */
    struct pb_run_report report;       /* of the tiles before it */
    struct pb_err outside;             /* why the first that the scene does not reach is left out */
};

/* Of a zeroed object: the tiles of the pipeline's step, as far as the outline of the image tells.
 * input.outside: there are none; pipeline.tiles. Needs fini in any case. */
int pb_run_tiles_find(struct pb_run_tiles *tiles, const struct pb_pipeline_config *pipeline,
                      struct pb_raster *raster, struct pb_err *err);
/* The tile at `at` was planned: rc and *err are what came of it. Returns 0 where the run goes on;
 * clears *err when the scene does not reach the tile. */
int pb_run_tiles_planned(struct pb_run_tiles *tiles, int rc, const struct pb_plan *plan,
                         struct pb_err *err);
/* All were planned: leaves out those that nobody named and the scene does not touch, and goes to
 * the first. Errors: input.outside, none is left: which there were; pipeline.tiles, too many or too
 * many products. */
int pb_run_tiles_settle(struct pb_run_tiles *tiles, const struct pb_pipeline_config *pipeline,
                        struct pb_err *err);
/* Pixels of the tiles that are to be made, once they are planned; *out_n: how many these are. */
uint64_t pb_run_tiles_pixels(const struct pb_run_tiles *tiles, size_t *out_n);
/* Goes to the next tile to be made; false: there is none. */
bool pb_run_tiles_next(struct pb_run_tiles *tiles);
/* Whether another one is to be made after that under way. */
bool pb_run_tiles_more(const struct pb_run_tiles *tiles);
/* NULL: the pipeline has no tiles. */
const struct pb_ground_tile *pb_run_tiles_place(const struct pb_run_tiles *tiles);
/* Gets every tile of pixels and sees whether one is valid. */
struct pb_sink pb_run_tiles_sink(struct pb_run_tiles *tiles, const struct pb_product_env *env);
/* Adds what a finished tile of the grid has taken; threads and names are those of the last. */
void pb_run_tiles_report(struct pb_run_tiles *tiles, const struct pb_run_report *of);
/* Tiles of pixels of the other tiles of the grid: those done, and all. */
void pb_run_tiles_progress(const struct pb_run_tiles *tiles, uint64_t *out_done,
                           uint64_t *out_total);
void pb_run_tiles_fini(struct pb_run_tiles *tiles);
/* "made", "empty", "outside"; "planned" before. */
const char *pb_run_tile_state(enum pb_tile_state state);
#endif
