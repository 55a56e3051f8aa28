/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ORDER_H
#define PB_RUN_ORDER_H
/* What is read of counted files before they are computed: their metadata, of each its own
 * (metadata_each), and their order, where that follows. input.order: cloud, list: which of the
 * scene's files each nth is follows from metadata of the files, or from a list, which only a
 * process that may decode them reads: so they come counted by their names, with those that no nth
 * reaches, and are counted anew here. One thread an object. */
#include "pipeline/metadata/observation.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene_files.h"

struct pb_run_order {
    const struct pb_scene_files *given; /* as they came; borrowed; NULL: their order stays */
    struct pb_scene_files files; /* counted anew; own are file[] alone, the rest is given's */
    struct pb_observations observations;
};

/* Reads the metadata of all counted files, or the list. When their order follows from these (else
 * the observations alone are set), *options gets files in that order, which are handed as well
 * (pb_scene_files_hand) until fini. Fails with input.metadata_missing   none of several files says
 * how cloudy it is input.metadata_conflict  files of one nth are of different observations
 *   input.incomplete         the list is shorter than what input.files counts
 * or what the reading of metadata, the opening of rasters and pb_run_order_list fail with. fini is
 * needed in any case. */
int pb_run_order_make(struct pb_run_order *order, struct pb_run_options *options,
                      struct pb_err *err);
void pb_run_order_fini(struct pb_run_order *order);
#endif
