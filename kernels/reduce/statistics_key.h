/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATISTICS_KEY_H
#define PB_STATISTICS_KEY_H
/* Numbers that order as floats do: negative ones are inverted, the others above them. */
#include "kernels/pixel.h"

PB_PIXEL uint32_t pb_statistics_key(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits ^ ((bits >> 31) != 0 ? UINT32_C(0xffffffff) : UINT32_C(0x80000000));
}

PB_PIXEL float pb_statistics_value(uint32_t key)
{
    const uint32_t bits = (key >> 31) != 0 ? key ^ UINT32_C(0x80000000) : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#endif
