/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RANGE_DOPPLER_H
#define PB_RANGE_DOPPLER_H
/* Mapping between places on the ground and pixels of a radar image in ground range: the
 * range-Doppler equations. A place is imaged when it is perpendicular to the satellite's path
 * (zero Doppler): this time gives the line; the distance at that time, by the polynomials with
 * which the processor converted it to ground range, gives the pixel. Positions are those of
 * GDAL: the first pixel is from 0 to 1. float64; read-only after it is filled, any thread.
 *
 * Sources: ESA, Sentinel-1 Product Specification (S1-RS-MDA-52-7441); Small and Schubert, Guide
 * to Sentinel-1 Geocoding (UZH-S1-GC-AD). As in SNAP and ISCE the polynomial of a line is
 * interpolated linearly between the two updates around it. ESA's own grid of tie points uses the
 * nearest one, which differs by up to 1.6 pixels where the mean height of the terrain changes
 * along the path. */
#include "pipeline/sar/orbit.h"

#include <stdint.h>

#define PB_RANGE_TERMS_MAX 12

/* Polynomial from ground range in metres to slant range in metres, at one time. */
struct pb_range_update {
    double time; /* seconds */
    double term[PB_RANGE_TERMS_MAX];
};

struct pb_range_doppler {
    struct pb_orbit orbit;
    const struct pb_range_update *update; /* ascending times */
    size_t n_updates;                     /* at least 1 */
    double line_seconds;                  /* time between lines; the first one is at time 0 */
    double pixel_metres;                  /* in ground range, which is 0 at the first pixel */
    int32_t width, height;                /* size of the image in pixels */
    double mean_height; /* mean height of the ground, metres above the ellipsoid; NaN = unknown */
    /* Slant range in metres for which the times of lines are corrected for the satellite's
     * motion between sending and receiving; set by pb_range_doppler_finish. */
    double middle_metres;
};

/* Call when all members but middle_metres are filled: computes it. Returns false if a polynomial
 * is not ascending over the image, and therefore not invertible. */
bool pb_range_doppler_finish(struct pb_range_doppler *model);

/* Finds the pixel of a place: longitude and latitude in degrees, height in metres above the
 * ellipsoid (WGS 84). It may be outside of the image. Returns false if the place was not imaged:
 * it was beyond the ends of the orbit's vectors, or on the left of the path. */
bool pb_range_doppler_pixel(const struct pb_range_doppler *model, double lon, double lat,
                            double height, double *out_x, double *out_y);
/* Finds the place of a pixel at that height; returns false if not found. */
bool pb_range_doppler_ground(const struct pb_range_doppler *model, double x, double y,
                             double height, double *out_lon, double *out_lat);
#endif
