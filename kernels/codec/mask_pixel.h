/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MASK_PIXEL_H
#define PB_MASK_PIXEL_H
/* Byte of a mask from a sample of an alpha band, in the way of GDAL: clamped, halves rounded up,
 * NaN = 0. */
#include "kernels/pixel.h"

PB_PIXEL uint8_t pb_mask_of_integer(int64_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

PB_PIXEL uint8_t pb_mask_of_float(double v)
{
    return (uint8_t)(!(v > 0) ? 0 : v >= 255 ? 255 : (uint8_t)(v + 0.5)); /* NOLINT: as GDAL */
}

/* bits: a sample of the type in the lowest bits. */
PB_PIXEL uint8_t pb_mask_of_bits(uint32_t type, uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    float single_precision;
    double double_precision;
    memcpy(&single_precision, &word, sizeof word);
    memcpy(&double_precision, &bits, sizeof bits);
    switch (type) {
    case PB_U8:
        return (uint8_t)bits;
    case PB_I16:
        return pb_mask_of_integer((int16_t)bits);
    case PB_U16:
        return pb_mask_of_integer((uint16_t)bits);
    case PB_I32:
        return pb_mask_of_integer((int32_t)word);
    case PB_U32:
        return pb_mask_of_integer(word);
    case PB_F32:
        return pb_mask_of_float((double)single_precision);
    default:
        return pb_mask_of_float(double_precision);
    }
}
#endif
