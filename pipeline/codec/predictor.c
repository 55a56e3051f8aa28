/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Predictor 2 stores differences to the pixel on the left, modulo the sample's width; floats are
 * treated as their bits. Predictor 3 splits a row of floats into planes of bytes, most significant
 * first (TIFF Technical Note 3), and differences the bytes.
 *
 * Both write from one row to another instead of in place: without a dependence on the output
 * the loops are plain subtractions of two streams, which compilers vectorise. */
#include "pipeline/codec/predictor.h"

#include "kernels/pixel.h"

#include <stdint.h>
#include <string.h>

bool pb_type_is_float(enum pb_type type)
{
    return type == PB_F32 || type == PB_F64;
}

int pb_predictor_auto(enum pb_type type)
{
    return pb_type_is_float(type) ? PB_PREDICTOR_FLOAT : PB_PREDICTOR_HORIZONTAL;
}

bool pb_predictor_fits(int predictor, enum pb_type type)
{
    if (predictor == PB_PREDICTOR_FLOAT)
        return pb_type_is_float(type);
    return predictor == PB_PREDICTOR_NONE || predictor == PB_PREDICTOR_HORIZONTAL;
}

#define DIFFERENCE(bits)                                                                           \
    PB_CLONES static void difference##bits(const void *in, size_t n, size_t step, void *out)       \
    {                                                                                              \
        const uint##bits##_t *restrict a = in;                                                     \
        uint##bits##_t *restrict d = out;                                                          \
        for (size_t i = 0; i < step && i < n; i++)                                                 \
            d[i] = a[i];                                                                           \
        for (size_t i = step; i < n; i++)                                                          \
            d[i] = (uint##bits##_t)(a[i] - a[i - step]);                                           \
    }
DIFFERENCE(8)
DIFFERENCE(16)
DIFFERENCE(32)
DIFFERENCE(64)

/* The position of sample i in the row of byte planes is known without the planes: byte k of sample
 * i is plane[n * (bytes - 1 - k) + i]. For the first `step` samples, the byte `step` positions
 * before is in the end of the plane above. */
PB_CLONES static void float_planes32(const uint32_t *restrict in, size_t n, size_t step,
                                     uint8_t *restrict out)
{
    for (unsigned k = 0; k < 4; k++) {
        unsigned shift = 24 - 8 * k;
        uint8_t *restrict plane = out + n * k;
        for (size_t i = 0; i < step && i < n; i++) {
            uint32_t left = k == 0 ? 0 : in[n - step + i] >> (shift + 8);
            plane[i] = (uint8_t)((in[i] >> shift) - left);
        }
        for (size_t i = step; i < n; i++)
            plane[i] = (uint8_t)((in[i] >> shift) - (in[i - step] >> shift));
    }
}

PB_CLONES static void float_planes64(const uint64_t *restrict in, size_t n, size_t step,
                                     uint8_t *restrict out)
{
    for (unsigned k = 0; k < 8; k++) {
        unsigned shift = 56 - 8 * k;
        uint8_t *restrict plane = out + n * k;
        for (size_t i = 0; i < step && i < n; i++) {
            uint64_t left = k == 0 ? 0 : in[n - step + i] >> (shift + 8);
            plane[i] = (uint8_t)((in[i] >> shift) - left);
        }
        for (size_t i = step; i < n; i++)
            plane[i] = (uint8_t)((in[i] >> shift) - (in[i - step] >> shift));
    }
}

void pb_predict_row(int predictor, enum pb_type type, const void *in, size_t n_px, size_t n_bands,
                    void *out)
{
    size_t n = n_px * n_bands, bytes = pb_type_bytes(type);
    if (predictor == PB_PREDICTOR_FLOAT && bytes == 4)
        float_planes32(in, n, n_bands, out);
    else if (predictor == PB_PREDICTOR_FLOAT)
        float_planes64(in, n, n_bands, out);
    else if (predictor != PB_PREDICTOR_HORIZONTAL)
        memcpy(out, in, n * bytes);
    else if (bytes == 1)
        difference8(in, n, n_bands, out);
    else if (bytes == 2)
        difference16(in, n, n_bands, out);
    else if (bytes == 4)
        difference32(in, n, n_bands, out);
    else
        difference64(in, n, n_bands, out);
}
