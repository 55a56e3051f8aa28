/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_IMAGES_H
#define PB_RUN_IMAGES_H
/* The whole images of a run (pb_chain_images): a pass hands its tiles over, each image is sieved
 * when all are there, and the passes after that read it as a source. Tiles of the pass that makes
 * an image are cells of it, or several. */
#include "pipeline/plan/plan.h"
#include "pipeline/raster/raster.h"
#include "pipeline/run/base/sink.h"

#include <stdatomic.h>

struct pb_run_images;

/* raster: of the other sources of the plan. directory: of temporary files. All are borrowed until
 * destroy. */
int pb_run_images_create(const struct pb_plan *plan, const struct pb_raster *const *raster,
                         const char *directory, struct pb_err *err,
                         struct pb_run_images **out_images);
void pb_run_images_destroy(struct pb_run_images *images); /* NULL is fine */
/* Those of all sources of the plan. */
const struct pb_raster *const *pb_run_images_rasters(const struct pb_run_images *images);
/* Before pass `pass`, which makes images or none. */
int pb_run_images_begin(struct pb_run_images *images, const struct pb_plan *pass,
                        struct pb_err *err);
/* Whether the pass that has begun makes images; then its sink takes every tile once. */
bool pb_run_images_sink(struct pb_run_images *images, struct pb_sink *out_sink);
/* All tiles of the pass, or of its first round, have come: sieves, by as many threads as the sink
 * has workers. *stop: it is to end early. */
int pb_run_images_end(struct pb_run_images *images, const atomic_bool *stop, struct pb_err *err);
/* Cells that are sieved, and that will be in all, each counted in every round. Thread: any. */
void pb_run_images_progress(const struct pb_run_images *images, uint64_t *out_done,
                            uint64_t *out_total);
#endif
