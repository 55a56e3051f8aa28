/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_ORDER_PARTS_H
#define PB_RUN_ORDER_PARTS_H
/* Files of a scene while they are renumbered (run_order.c). */
#include "pipeline/metadata/observation.h"
#include "pipeline/run/run.h"
#include "pipeline/scene/scene_files.h"

struct pb_order_candidate {
    struct pb_observation said;
    const struct pb_raster_file *file; /* open; one of the files in name order */
    double key;                        /* the least is first; NaN: after all others */
};

struct pb_ordering {
    const struct pb_run_options *options;
    const struct pb_input_config *input;
    const struct pb_scene_files *files; /* in name order */
    struct pb_err *err;
    struct pb_order_candidate *one; /* an element for each pattern that a file matches */
    size_t n;
};
#endif
