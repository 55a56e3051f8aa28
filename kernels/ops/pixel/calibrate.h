/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_OP_CALIBRATE_H
#define PB_OP_CALIBRATE_H
/* The parameters of calibrate, for who finds its rules in a scene's metadata. */
#include "kernels/key.h"

struct pb_calibrate {
    int32_t sensor; /* 0 = any, else index in the choices of the key */
    int32_t to;     /* toa, surface, radiance, temperature */
    struct pb_items bands, as;
    struct pb_items irradiance; /* {BAND: number}, of bands */
};

#define PB_CALIBRATE_SENSORS    "auto|landsat-c2|sentinel2|planetscope|worldview|pleiades|sentinel1"
#define PB_CALIBRATE_QUANTITIES "toa|surface|radiance|temperature"
#endif
