/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_H
#define PB_RUN_H
/* One scene through one pipeline, products out. Owns the stages (reader, executor and writer
 * threads), the channels between them and every buffer. Knows no jobs and no sockets.
 *
 *   create   opens, checks and plans; refuses what cannot work before a pixel is read
 *   start    starts the threads
 *   wait     until all tiles are written, or something failed; then publish() or destroy()
 *   publish  finishes the products and makes them visible by one rename
 *   abort    any time, any thread: everything parked wakes up, wait returns -ECANCELED
 */
#include "config/config.h"
#include "config/base/err.h"
#include "pipeline/product/product.h"
#include "pipeline/publish/publish.h"
#include "pipeline/run/base/run_options.h"
#include "pipeline/run/base/run_report.h"

#include <stdbool.h>
#include <stdint.h>

struct pb_run;
struct pb_run_tiles;

struct pb_run_result {
    char directory[4096];
    struct pb_product_result *products; /* owned by the run */
    size_t n_products;
    struct pb_run_report report;
    const struct pb_chain *chain; /* whose reductions have their results; owned by the run */
    const struct pb_pipeline_config *pipeline; /* whose exchanges were followed; the caller's */
    const struct pb_metadata *metadata;        /* of the scene; family NULL = none; owned by the
                                                  run, as the next */
    const struct pb_scene_files *files;        /* of a scene of many files; the caller's; or NULL */
    const struct pb_sidecars *sidecars;        /* the caller's; NULL = none */
    const struct pb_observations *observations; /* n 0: metadata do not order the files; owned by
                                                   the run */
    const struct pb_calibrated *calibrated;     /* n_calibrated, by the steps that calibrate */
    size_t n_calibrated;
    const struct pb_run_tiles *tiles; /* of a grid (run_tiles.h); NULL = there are none; owned by
                                         the run */
    const char *warning;              /* of a success, "" = none; owned by the run */
    const struct pb_notes *notes;     /* what people should know; owned by the run */
    const struct pb_product_env *env; /* of the products, or of the last tile's; owned by the run */
    bool has_bbox;
    double bbox[4];    /* bounds of the products, or of a scene of tiles; as in pb_footprint */
    char datetime[40]; /* time of acquisition, RFC 3339; "" = not known */
};

int pb_run_create(const struct pb_run_options *options, struct pb_err *err,
                  struct pb_run **out_run);
int pb_run_start(struct pb_run *run, struct pb_err *err);
/* 0 when all tiles are through; -ETIMEDOUT: still running, call again; else the first failure, with
 * *err filled. timeout_ms < 0 = no limit. */
int pb_run_wait(struct pb_run *run, int64_t timeout_ms, struct pb_err *err);
/* After a wait that returned 0, and once. With a directory of the caller's the files are complete
 * there and nothing is made visible. The result is valid until destroy. */
int pb_run_publish(struct pb_run *run, struct pb_err *err, struct pb_run_result *out_result);
/* As buffers_why of the report, known from create on. */
const char *pb_run_buffers_why(const struct pb_run *run);
void pb_run_abort(struct pb_run *run);
/* A snapshot. Thread: any, between create and destroy. */
void pb_run_progress(struct pb_run *run, struct pb_run_progress *out_progress);
/* Aborts if needed, joins, removes what was not published, frees. NULL is fine. What a GPU that
 * does not answer may still use stays: see pb_device_left_behind. */
void pb_run_destroy(struct pb_run *run);

const char *pb_phase_name(enum pb_phase stage); /* "plan", "compute", "publish", "done" */
/* The device a config would use right now ("cpu", "cuda:0"), and, when auto fell back to the CPU,
 * one line why
 * ("" otherwise). -ENODEV with *err when the config demands a device that is not there. */
int pb_run_device(const struct pb_compute_config *compute, char device[64], char why[200],
                  struct pb_err *err);
#endif
