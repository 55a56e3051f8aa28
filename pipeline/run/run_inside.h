/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_INSIDE_H
#define PB_RUN_INSIDE_H
/* A run, for run.c (its calls), run_make.c (plan, products and passes) and run_publish.c (results).
 * One thread, except where a comment names others. */
#include "pipeline/plan/plan.h"
#include "pipeline/run/base/remote.h"
#include "pipeline/run/run.h"
#include "pipeline/run/run_areas.h"
#include "pipeline/run/run_metadata.h"
#include "pipeline/run/run_order.h"
#include "pipeline/run/passes/run_passes.h"
#include "pipeline/run/run_products.h"
#include "pipeline/run/run_sources.h"
#include "pipeline/run/run_tiles.h"
#include "pipeline/run/base/run_work.h"
#include "pipeline/scene/scene_files.h"

#include <limits.h>
#include <pthread.h>

/* Last call that has succeeded. */
enum run_state { MADE, STARTED, COMPUTED, PUBLISHED };

struct pb_run {
    struct pb_run_options options;
    const struct pb_remote *remote; /* computes by the plan; NULL: this process computes */
    char scene[NAME_MAX + 1];
    char device[64];
    const char *file_names[PB_INPUT_NAMES_MAX]; /* names for a scene of many files */
    struct pb_run_order order;
    struct pb_run_sources sources;
    struct pb_run_metadata metadata;
    struct pb_run_areas areas;
    struct pb_plan_heights heights; /* facts for the plans of all tiles */
    struct pb_run_tiles tiles;
    /* Plan, products and passes are those of the current tile if the run has tiles. */
    struct pb_plan_request facts; /* request that the plan was made from */
    struct pb_device_traits traits;
    struct pb_plan *plan;
    void **prepared; /* env.prepared, for the plan */
    struct pb_publish *publish;
    const char *place; /* scene directory below products; the publisher's, or the caller's */
    struct pb_product_env env;
    struct pb_digits_report digits[PB_BANDS_MAX]; /* env.digits */
    struct pb_notes notes;                        /* env.notes; notes of all tiles */
    bool has_nothing; /* the device looked for a valid pixel, and found none */
    struct pb_product_result *results;
    size_t n_results;
    char warning[1200]; /* warning of a successful run */

    struct pb_run_products products;
    pthread_mutex_t lock;         /* protects `passes` and `bytes_before` for progress and abort */
    struct pb_run_passes *passes; /* NULL: not made, or between two tiles */
    uint64_t bytes_before;        /* bytes read for earlier tiles; under the lock */
    struct pb_run_work work;

    enum run_state state;          /* order of the calls; the caller's thread only */
    struct pb_file_progress files; /* progress of the products being written */
    _Atomic int stage;
    _Atomic uint64_t started_ns, ended_ns;
};

/* Makes everything that is known once the scene is open: the tiles of a grid, a plan, and unless it
 * is a dry run the place, the products and the passes. */
int pb_run_make_first(struct pb_run *run, struct pb_err *err);
/* Makes the plan of the current tile, or of the scene; and the environment of its products. */
int pb_run_make_plan(struct pb_run *run, struct pb_err *err);
void pb_run_forget_plan(struct pb_run *run);
/* Makes the products and passes of the plan. */
int pb_run_make_tile(struct pb_run *run, struct pb_err *err);
/* Finishes the products of the computed pixels, unless the tile has no valid pixel. */
int pb_run_finish_products(struct pb_run *run, struct pb_err *err);
/* Returns true if the run checks the pixels of its tiles for a valid one: with a grid of tiles or a
 * step that warps, unless a device makes the products' blocks. */
bool pb_run_looks_for_valid(const struct pb_run *run);
/* Error of a call that is made too early: before a call that it requires. */
int pb_run_out_of_order(struct pb_err *err, const char *call);
#endif
