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
};

/* Whether `to` is a backscatter coefficient, which tables of the scene make. */
static inline bool pb_calibrate_is_radar(const struct pb_calibrate *step)
{
    return step->to >= 4;
}

#define PB_CALIBRATE_SENSORS    "auto|landsat-c2|sentinel2|planetscope|worldview|pleiades|sentinel1"
#define PB_CALIBRATE_QUANTITIES "toa|surface|radiance|temperature|sigma0|beta0|gamma0"
#endif
