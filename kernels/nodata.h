/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_NODATA_H
#define PB_NODATA_H
/* The nodata value of a band against the band's type. Pure; any thread. */
#include "kernels/pixel.h"

/* Whether a sample of the type can be the value. A declared value that none can be marks no pixel:
 * -9999 or NaN of unsigned integers, a fraction of integers, 1e40 of float32. NaN and the
 * infinities of floats count as held. */
static inline bool pb_nodata_fits(enum pb_type type, double nodata)
{
    static const double low[PB_TYPE_COUNT] = {[PB_I16] = -32768.0, [PB_I32] = -2147483648.0};
    static const double high[PB_TYPE_COUNT] = {[PB_U8] = 255.0,
                                               [PB_I16] = 32767.0,
                                               [PB_U16] = 65535.0,
                                               [PB_I32] = 2147483647.0,
                                               [PB_U32] = 4294967295.0};

    if (type == PB_F64 || (type == PB_F32 && !isfinite(nodata)))
        return true;
    if (type == PB_F32)
        return isfinite((float)nodata);
    return nodata == rint(nodata) && nodata >= low[type] && nodata <= high[type];
}

/* Whether a sample, as double, is the nodata value of a band of the type. */
static inline bool pb_nodata_is(enum pb_type type, double v, double nodata)
{
    return type == PB_F32   ? pb_pixel_is_nodata_f32((float)v, (float)nodata)
           : type == PB_F64 ? pb_pixel_is_nodata_f64(v, nodata)
                            : v == nodata;
}
#endif
