/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * GDAL treats a complex pixel as nodata if its real part alone is. In single-look images, where
 * a real part of 0 is as frequent as any other value, that would make holes; here the imaginary
 * part has to be 0, too, which is the fill that GDAL writes. */
#include "pipeline/raster/complex.h"

#include "kernels/pixel.h"

#include <math.h>
#include <stdint.h>

size_t pb_complex_bytes(enum pb_complex_kind kind)
{
    static const size_t bytes[PB_COMPLEX_COUNT] = {0, 4, 8, 8, 16};
    return bytes[kind];
}

const char *pb_complex_name(enum pb_complex_kind kind)
{
    static const char *const names[PB_COMPLEX_COUNT] = {"", "CInt16", "CInt32", "CFloat32",
                                                        "CFloat64"};
    return names[kind];
}

#define ROW(name, part, is_nodata)                                                                 \
    static void row_##name(const struct pb_complex *how, const part *in, size_t step, size_t n,    \
                           double nodata, float *out)                                              \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            const double re = (double)in[2 * step * i], im = (double)in[2 * step * i + 1];         \
            const double power = re * re + im * im;                                                \
            out[i] = (float)(how->power ? power : sqrt(power));                                    \
        }                                                                                          \
        for (size_t i = 0; how->has_nodata && i < n; i++)                                          \
            if (is_nodata(in[2 * step * i], nodata) && in[2 * step * i + 1] == 0)                  \
                out[i] = NAN;                                                                      \
    }
#define SAME_INTEGER(v, nodata) ((double)(v) == (nodata))
#define SAME_FLOAT(v, nodata)   pb_pixel_is_nodata_f32(v, (float)(nodata))
ROW(i16, int16_t, SAME_INTEGER)
ROW(i32, int32_t, SAME_INTEGER)
ROW(f32, float, SAME_FLOAT)
ROW(f64, double, pb_pixel_is_nodata_f64)

void pb_complex_row(const struct pb_complex *how, const void *samples, size_t step, size_t n,
                    float *out)
{
    if (how->kind == PB_COMPLEX_I16)
        row_i16(how, samples, step, n, how->nodata, out);
    else if (how->kind == PB_COMPLEX_I32)
        row_i32(how, samples, step, n, how->nodata, out);
    else if (how->kind == PB_COMPLEX_F32)
        row_f32(how, samples, step, n, how->nodata, out);
    else
        row_f64(how, samples, step, n, how->nodata, out);
}
