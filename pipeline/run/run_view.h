/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_VIEW_H
#define PB_RUN_VIEW_H
/* What a run was made of, for who explains it (pipeline/explain). Everything is the run's and stays
 * until it is destroyed. One thread. */
#include "pipeline/plan/plan.h"
#include "pipeline/run/run.h"
#include "pipeline/run/run_metadata.h"
#include "pipeline/run/run_sources.h"
#include "pipeline/run/run_tiles.h"

struct pb_run_view {
    const struct pb_run_options *options;
    const char *scene, *device;
    const struct pb_run_sources *sources;
    const struct pb_run_metadata *metadata;
    const struct pb_observations *observations; /* n 0: their order does not follow from metadata */
    const struct pb_plan *plan;                 /* of the first tile, where there are some */
    const struct pb_run_tiles *tiles;           /* n 0: there are none */
    const struct pb_product_env *env;
};

void pb_run_view(const struct pb_run *run, struct pb_run_view *out);
#endif
