/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/sar/sar_sensor.h"

#include "pipeline/sar/range_doppler.h"
#include "pipeline/sar/sar_tables.h"

#include <math.h>

static bool pixel(const void *of, double lon, double lat, double height, double *out_x,
                  double *out_y)
{
    return pb_range_doppler_pixel(of, lon, lat, height, out_x, out_y);
}

static bool ground(const void *of, double x, double y, double height, double *out_lon,
                   double *out_lat)
{
    return pb_range_doppler_ground(of, x, y, height, out_lon, out_lat);
}

struct pb_ground_sensor pb_sar_sensor(const struct pb_sar *sar)
{
    const struct pb_range_doppler *model = sar != NULL ? sar->geometry : NULL;
    struct pb_ground_sensor out = {.of = model,
                                   .name = "range-Doppler of its annotation",
                                   .mean_height = NAN,
                                   .pixel = pixel,
                                   .ground = ground};
    if (model != NULL) {
        out.width = model->width;
        out.height = model->height;
        out.mean_height = model->mean_height;
    } else if (sar != NULL && sar->why_no_geometry[0] != '\0') {
        out.why_none = sar->why_no_geometry;
    } else {
        out.why_none = "range-doppler is made of the annotation of Sentinel-1 GRD "
                       "(annotation/s1*.xml), which input.metadata does not bring";
    }
    return out;
}
