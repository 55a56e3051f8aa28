/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PLAN_BANDS_H
#define PB_PLAN_BANDS_H
/* The part of the plan that deals in names: the file's bands, the bands that steps make, the bands
 * products want; compiles the chain. Fills plan->chain, bands, n_bands, output_names, n_outputs. */
struct pb_plan;
struct pb_pipeline_config;
struct pb_raster_info;
struct pb_err;

int pb_plan_bands(struct pb_plan *plan, const struct pb_pipeline_config *pipeline,
                  const struct pb_raster_info *info, struct pb_err *err);
#endif
