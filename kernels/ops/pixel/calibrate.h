/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_CALIBRATE_H
#define PB_OP_CALIBRATE_H
/* The parameters of calibrate, for who finds its rules in a scene's metadata. */
#include "kernels/key.h"

struct pb_calibrate {
    int32_t sensor; /* 0 = any, else index in the choices of the key */
    int32_t to;     /* of PB_CALIBRATE_QUANTITIES */
    struct pb_items bands, as;
    struct pb_items irradiance; /* {BAND: number}, of bands */
    int32_t noise, db;          /* of radar; 0 or 1 */
    char *columns; /* table of dark and gain of each column, in place of metadata; NULL = none */
};

/* Whether `to` is a backscatter coefficient, which tables of the scene make. */
static inline bool pb_calibrate_is_radar(const struct pb_calibrate *step)
{
    return step->to >= 4;
}

#define PB_CALIBRATE_SENSORS "auto|landsat-c2|sentinel2|planetscope|worldview|pleiades|sentinel1"
/* By what people call the satellites and instruments of a family. */
#define PB_CALIBRATE_CALLED                                                                        \
    "landsat landsat4 landsat5 landsat7 landsat8 landsat9 l4 l5 l7 l8 l9 tm etm oli=landsat-c2"    \
    "|sentinel-2a sentinel-2b sentinel-2c s2 s2a s2b s2c msi=sentinel2"                            \
    "|planet dove superdove ps2 psb.sd=planetscope"                                                \
    "|worldview1 worldview2 worldview3 worldview4 wv1 wv2 wv3 wv4 geoeye1 ge1 "                    \
    "maxar digitalglobe=worldview"                                                                 \
    "|pleiades1a pleiades1b phr phr1a phr1b pleiades-neo pneo=pleiades"                            \
    "|sentinel-1a sentinel-1b sentinel-1c s1 s1a s1b s1c sar=sentinel1"
#define PB_CALIBRATE_QUANTITIES "toa|surface|radiance|temperature|sigma0|beta0|gamma0"
#endif
