/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_IMAGES_H
#define PB_RUN_IMAGES_H
/* Whole images of a run (pb_chain_images): a pass delivers its tiles, each image is sieved when all
 * tiles are there, and later passes read it as a source. A tile of the pass that makes an image
 * covers one or several cells of it. */
#include "pipeline/plan/plan.h"
#include "pipeline/raster/raster.h"
#include "pipeline/run/base/sink.h"

#include <stdatomic.h>

struct pb_run_images;

/* raster: rasters of the other sources of the plan. directory: for temporary files. All are
 * borrowed until destroy. */
int pb_run_images_create(const struct pb_plan *plan, const struct pb_raster *const *raster,
                         const char *directory, struct pb_err *err,
                         struct pb_run_images **out_images);
void pb_run_images_destroy(struct pb_run_images *images); /* NULL is fine */
/* Rasters of all sources of the plan. */
const struct pb_raster *const *pb_run_images_rasters(const struct pb_run_images *images);
/* Call it before pass `pass`, whether or not it makes images. */
int pb_run_images_begin(struct pb_run_images *images, const struct pb_plan *pass,
                        struct pb_err *err);
/* Returns true if the pass that has begun makes images; then its sink takes every tile once. */
bool pb_run_images_sink(struct pb_run_images *images, struct pb_sink *out_sink);
/* Call it after all tiles of the pass, or of its first round, have arrived: sieves, with as many
 * threads as the sink has workers. *stop: set to end it early. */
int pb_run_images_end(struct pb_run_images *images, const atomic_bool *stop, struct pb_err *err);
/* Cells that are sieved so far, and in all, each counted once a round. Thread: any. */
void pb_run_images_progress(const struct pb_run_images *images, uint64_t *out_done,
                            uint64_t *out_total);
#endif
