/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ORDER_PARTS_H
#define PB_RUN_ORDER_PARTS_H
/* The files of a scene while they are counted anew (run_order.c). */
#include "pipeline/metadata/observation.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene_files.h"

struct pb_order_candidate {
    struct pb_observation said;
    const struct pb_raster_file *file; /* open; of the files as they came */
    double key;                        /* the least comes first; NaN: behind all others */
};

struct pb_ordering {
    const struct pb_run_options *options;
    const struct pb_input_config *input;
    const struct pb_scene_files *files; /* as they came */
    struct pb_err *err;
    struct pb_order_candidate *one; /* a file for each pattern that it fits */
    size_t n;
};
#endif
