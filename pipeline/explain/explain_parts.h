/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EXPLAIN_PARTS_H
#define PB_EXPLAIN_PARTS_H
/* The parts of pb_explain. Each writes members into the open object. */
#include "config/base/json_writer.h"
#include "pipeline/explain/explain.h"
#include "pipeline/run/run_view.h"

/* "files", "not_opened", "absent", "not_used", "metadata" */
void pb_explain_files(const struct pb_run_view *view, const struct pb_explain_options *options,
                      struct pb_json *json);
/* Writes members of a grid of w x h pixels in the CRS of info: "pixel" in its units,
 * "pixel_metres" in the middle of the grid, "pixel_varies", if known. */
void pb_explain_pixel(const struct pb_raster_info *info, const double transform[6], int32_t w,
                      int32_t h, struct pb_json *json);
/* "calibration", "valid", "steps" */
void pb_explain_steps(const struct pb_run_view *view, struct pb_json *json);
/* "directory", "exists", "there", "products". Errors of pb_explain. */
int pb_explain_products(const struct pb_run_view *view, const struct pb_explain_options *options,
                        struct pb_json *json, struct pb_err *err);
#endif
