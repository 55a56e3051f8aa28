/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_GEOMETRY_H
#define PB_STAC_GEOMETRY_H
/* A footprint as GeoJSON (RFC 7946): Polygon, or MultiPolygon cut at the antimeridian. */
#include "config/base/json_writer.h"
#include "pipeline/raster/raster.h"

/* Writes the members "geometry" and "bbox". footprint NULL: geometry null and no bbox, as STAC
 * then requires. */
void pb_stac_geometry(struct pb_json *json, const struct pb_footprint *footprint);
#endif
