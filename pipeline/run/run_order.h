/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ORDER_H
#define PB_RUN_ORDER_H
/* Resolves `nth` of input.files for input.order: cloud and list. Runs in the decoding process,
 * which alone may read the files' metadata or the list. In: the scene's files numbered by name,
 * including files beyond the count of nth. Out: files numbered by the configured order, and the
 * metadata of each file (metadata_each). One thread an object. */
#include "pipeline/metadata/observation.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene.h"

struct pb_run_order {
    /* Scene with its files in name order, borrowed; NULL if the order does not change. */
    const struct pb_scene *given;
    /* The same in the configured order; owns files.file[] only, the rest is borrowed from `given`.
     */
    struct pb_scene scene;
    struct pb_observations observations;
};

/* Reads the metadata of all counted files, or the list. If the order of the files follows from
 * them, *options gets the scene in that order, also registered (pb_scene_hand) until fini;
 * else only the observations are set. fini is needed in any case. Fails with
 *
 *  - input.metadata_missing: the cloud cover of all of several files is unknown
 *  - input.metadata_conflict: files of one nth are of different observations
 *  - input.incomplete: the list is shorter than the count of input.files
 *
 * or an error of reading metadata, of opening rasters or of reading the list. */
int pb_run_order_make(struct pb_run_order *order, struct pb_run_options *options,
                      struct pb_err *err);
void pb_run_order_fini(struct pb_run_order *order);
#endif
