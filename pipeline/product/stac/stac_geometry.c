/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Coordinates have a resolution of 1e-7 degrees, a centimetre. */
#include "pipeline/product/stac/stac_geometry.h"

#include <math.h>

static double rounded(double degrees)
{
    return round(degrees * 1e7) / 1e7 + 0.0;
}

static void write_ring(struct pb_json *json, const struct pb_footprint *f, size_t ring)
{
    pb_json_array(json, NULL);
    for (size_t i = f->first[ring]; i < f->first[ring + 1]; i++) {
        pb_json_array(json, NULL);
        pb_json_number(json, NULL, rounded(f->lonlat[i][0]));
        pb_json_number(json, NULL, rounded(f->lonlat[i][1]));
        pb_json_end(json);
    }
    pb_json_end(json);
}

void pb_stac_geometry(struct pb_json *json, const struct pb_footprint *footprint)
{
    if (footprint == NULL) {
        pb_json_null(json, "geometry");
        return;
    }
    const bool is_one = footprint->n_rings == 1 || footprint->has_hole;
    pb_json_object(json, "geometry");
    pb_json_string(json, "type", is_one ? "Polygon" : "MultiPolygon");
    pb_json_array(json, "coordinates");
    for (size_t i = 0; i < footprint->n_rings; i++) {
        if (!is_one)
            pb_json_array(json, NULL);
        write_ring(json, footprint, i);
        if (!is_one)
            pb_json_end(json);
    }
    pb_json_end(json);
    pb_json_end(json);
    pb_json_array(json, "bbox");
    for (int i = 0; i < 4; i++)
        pb_json_number(json, NULL, rounded(footprint->bbox[i]));
    pb_json_end(json);
}
