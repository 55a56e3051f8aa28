/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_VIEW_H
#define PB_RUN_VIEW_H
/* Parts of a run, for pipeline/explain. Everything is the run's and is valid until it is
 * destroyed. One thread. */
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
    const struct pb_observations *observations; /* n 0: metadata do not order the files */
    const struct pb_plan *plan;                 /* plan of the first tile if the run has tiles */
    const struct pb_run_tiles *tiles;           /* n 0: no tiles */
    const struct pb_product_env *env;
};

void pb_run_view(const struct pb_run *run, struct pb_run_view *out);
#endif
