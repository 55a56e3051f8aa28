/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COMPLEX_H
#define PB_COMPLEX_H
/* Conversion of complex samples (pairs of a real and an imaginary part, as in single-look SAR
 * images) to real ones: amplitude or power, computed in double and rounded to float32. Pure; any
 * thread. */
#include <stdbool.h>
#include <stddef.h>

/* Type of the parts of a complex sample; NONE: samples are real. GDAL's CInt16, CInt32,
 * CFloat32, CFloat64. */
enum pb_complex_kind {
    PB_COMPLEX_NONE,
    PB_COMPLEX_I16,
    PB_COMPLEX_I32,
    PB_COMPLEX_F32,
    PB_COMPLEX_F64,
    PB_COMPLEX_COUNT
};

struct pb_complex {
    enum pb_complex_kind kind;
    bool is_chosen;  /* false: no conversion is configured and no sample may be read */
    bool power;      /* true: re^2 + im^2; false: its square root */
    bool has_nodata; /* the sample nodata + 0i is no measurement and becomes NaN */
    double nodata;
};

/* Bytes of a sample with both parts; 0 for NONE. */
size_t pb_complex_bytes(enum pb_complex_kind kind);
/* GDAL's name, such as "CInt16"; "" for NONE. Static. */
const char *pb_complex_name(enum pb_complex_kind kind);
/* Converts n samples: out[i] from sample i * step. samples: in host byte order, aligned to their
 * parts. */
void pb_complex_row(const struct pb_complex *how, const void *samples, size_t step, size_t n,
                    float *out);
#endif
