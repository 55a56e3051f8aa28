/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_SIDECARS_H
#define PB_RASTER_GDAL_SIDECARS_H
/* GDAL leaves out a sidecar that it cannot use and says nothing. One that the configuration lists
 * and that is there has to be used. */
#include "config/base/err.h"
#include "config/config.h"

struct pb_raster;

/* Before GDAL opens the raster: what a sidecar declares keeps the limits; input.limit,
 * input.damaged. */
int pb_gdal_limit_sidecars(const struct pb_raster *raster, const struct pb_limits *limits,
                           struct pb_err *err);
/* When raster->info is there: GDAL took from each what it is for; input.damaged names it. */
int pb_gdal_check_sidecars(const struct pb_raster *raster, struct pb_err *err);
#endif
