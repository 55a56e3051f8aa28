/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_QUANTIZER_H
#define PB_QUANTIZER_H
/* How float32 pixels become samples of the type that a product stores, as the CPU
 * (pipeline/codec/quantize.h) and devices (encode_device.h) do it. Plain data, C11 and C++17. */
#include "kernels/view.h"

struct pb_quantizer {
    enum pb_type type;
    double nodata;       /* as stored */
    double below, above; /* what valid values that hit nodata become; both nodata: none moves */
};
#endif
