/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RASTER_GDAL_SIDECARS_H
#define PB_RASTER_GDAL_SIDECARS_H
/* Checks of sidecars: GDAL ignores a sidecar that it cannot use without a message, but a
 * configured sidecar that exists must be used. */
#include "config/base/err.h"

#include <stdbool.h>

struct pb_limits;
struct pb_raster;

/* Call before GDAL opens the raster: checks the declarations of sidecars against the limits;
 * input.limit, input.damaged. */
int pb_gdal_limit_sidecars(const struct pb_raster *raster, const struct pb_limits *limits,
                           struct pb_err *err);
/* Call after raster->info is filled: checks that GDAL used each sidecar for its purpose;
 * input.damaged names it. */
int pb_gdal_check_sidecars(const struct pb_raster *raster, struct pb_err *err);
/* Returns true if a sidecar is a mask. */
bool pb_gdal_has_mask_file(const struct pb_raster *raster);
#endif
