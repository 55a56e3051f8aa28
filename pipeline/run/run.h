/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_H
#define PB_RUN_H
/* One scene through one pipeline, products out. Owns the stages (reader, executor and writer
 * threads), the channels between them and every buffer. Knows no jobs and no sockets.
 *
 *   create   opens, checks and plans; refuses what cannot work before a pixel is read
 *   start    starts the threads
 *   wait     returns when all tiles are written or a step failed; then publish() or destroy()
 *   publish  finishes the products and makes them visible by one rename
 *   abort    any time, any thread: wakes all parked threads, wait returns -ECANCELED
 */
#include "config/base/err.h"
#include "pipeline/product/product.h"
#include "pipeline/publish/publish.h"
#include "pipeline/run/base/run_options.h"
#include "pipeline/run/base/run_report.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_compute_config;
struct pb_pipeline_config;
struct pb_run;
struct pb_run_tiles;

struct pb_run_result {
    char directory[4096];
    struct pb_product_result *products; /* owned by the run */
    size_t n_products;
    struct pb_run_report report;
    /* Has the results of its reductions; owned by the run. */
    const struct pb_chain *chain;
    /* Has the exchanges that were used; the caller's. */
    const struct pb_pipeline_config *pipeline;
    const struct pb_metadata *metadata; /* family NULL if absent; owned by the run */
    const struct pb_scene_files *files; /* NULL if the scene is one file; the caller's */
    const struct pb_sidecars *sidecars; /* NULL if absent; the caller's */
    /* Owned by the run; n 0: metadata do not order the files. */
    const struct pb_observations *observations;
    const struct pb_calibrated *calibrated; /* n_calibrated rules of the steps that calibrate */
    size_t n_calibrated;
    /* Tiles of a grid; NULL without a grid; owned by the run. */
    const struct pb_run_tiles *tiles;
    const char *warning;          /* warning of a successful run, "" if absent; owned by the run */
    const struct pb_notes *notes; /* notes for the user; owned by the run */
    /* Environment of the products, or of the last tile's products; owned by the run. */
    const struct pb_product_env *env;
    bool has_bbox;
    double bbox[4];      /* bounds of the products, or of a scene of tiles; as in pb_footprint */
    bool has_corners;    /* false for tiles, whose pictures have grids of their own */
    double corner[4][2]; /* corners of the products' grid, as in pb_footprint */
    char datetime[40];   /* time of acquisition, RFC 3339; "" if unknown */
};

int pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                  struct pb_run **out_run);
int pb_run_start(struct pb_run *run, struct pb_err *err);
/* Returns 0 when all tiles are done; -ETIMEDOUT: still running, call again; else the first failure,
 * with *err filled. timeout_ms < 0 = no limit. */
int pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);
/* Call once, after a wait that returned 0. In a directory of the caller the files are complete
 * afterwards, and nothing is made visible. The result is valid until destroy. */
int pb_run_publish(struct pb_run *run, struct pb_err *err, struct pb_run_result *out_result);
/* Same values as buffers and buffers_why of the report, known from create on. Static. */
const char *pb_run_buffers(const struct pb_run *run);
const char *pb_run_buffers_why(const struct pb_run *run);
void pb_run_abort(struct pb_run *run);
/* Fills a snapshot. Thread: any, between create and destroy. */
void pb_run_progress(struct pb_run *run, struct pb_run_progress *out_progress);
/* Aborts if needed, joins, removes unpublished files, frees. NULL is fine. Memory that a hung GPU
 * may still use is not freed: see pb_device_left_behind. */
void pb_run_destroy(struct pb_run *run);

const char *pb_phase_name(enum pb_phase stage); /* "plan", "compute", "publish", "done" */
/* The device that a config would use right now ("cpu", "cuda:0"). why: the reason, in one line, if
 * auto fell back to the CPU, else "". -ENODEV with *err if the config requires an absent device. */
int pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                  struct pb_err *err);
#endif
