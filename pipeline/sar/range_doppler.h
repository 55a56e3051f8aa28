/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANGE_DOPPLER_H
#define PB_RANGE_DOPPLER_H
/* Between places on the ground and pixels of a radar image in ground range: the range-Doppler
 * equations. A place is seen when it is square to the satellite's path (zero Doppler): this time is
 * the line, the distance at that time, by the polynomials with which the processor made ground
 * range of it, the pixel. Positions are those of GDAL: the first pixel is from 0 to 1. float64;
 * read-only once it is filled, any thread.
 *
 * Sources: ESA, Sentinel-1 Product Specification (S1-RS-MDA-52-7441); Small and Schubert, Guide to
 * Sentinel-1 Geocoding (UZH-S1-GC-AD). As in SNAP and ISCE the polynomial of a line is interpolated
 * between the two updates around it, linearly. ESA's own grid of tie points takes the nearest one,
 * which differs by up to 1.6 pixels where the mean height of the terrain changes along the path. */
#include "pipeline/sar/orbit.h"

#include <stdint.h>

#define PB_RANGE_TERMS_MAX 12

/* Slant range in metres by ground range in metres, at one time. */
struct pb_range_update {
    double time; /* seconds */
    double term[PB_RANGE_TERMS_MAX];
};

struct pb_range_doppler {
    struct pb_orbit orbit;
    const struct pb_range_update *update; /* their times ascend */
    size_t n_updates;                     /* at least 1 */
    double line_seconds;                  /* from line to line; the first one is at time 0 */
    double pixel_metres;                  /* in ground range, which is 0 at the first pixel */
    int32_t width, height;                /* of the image, in pixels */
    double mean_height;                   /* of the ground, metres above the ellipsoid; NaN = not
                                             known */
    /* Slant range in metres for which the times of lines are corrected for the way that the
     * satellite flies between sending and receiving; pb_range_doppler_finish. */
    double middle_metres;
};

/* When all but middle_metres is filled: finds it. False: a polynomial does not ascend over the
 * image, so it has no inverse. */
bool pb_range_doppler_finish(struct pb_range_doppler *model);

/* The pixel that shows a place: longitude and latitude in degrees, height in metres above the
 * ellipsoid (WGS 84). It may lie outside of the image. False: the satellite has not seen it: it
 * was beyond the ends of the orbit's vectors, or on the left of the path. */
bool pb_range_doppler_pixel(const struct pb_range_doppler *model, double lon, double lat,
                            double height, double *out_x, double *out_y);
/* The place at that height that a pixel shows; false: there is none. */
bool pb_range_doppler_ground(const struct pb_range_doppler *model, double x, double y,
                             double height, double *out_lon, double *out_lat);
#endif
