/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLUSTER_SUMS_H
#define PB_CLUSTER_SUMS_H
/* Sums of the pixels of a part of a tile, by class and band, as a device makes them for
 * pb_clusters_add_sums: the pixels of each class, then limbs. Limb l weighs 2^(16 l - 149), so a
 * float32 of 24 bits touches three neighbouring ones, and adding is exact. C11 and C++17. Any
 * thread. */
#include "kernels/pixel.h"

#include <string.h>

#define PB_CLUSTER_LIMBS   18
#define PB_CLUSTER_PART_PX 32768 /* pixels of a part, at most: more could overflow a limb */

/* Words of a part's sums. Word c: pixels of class c; of limb l of centre i (band * classes + class)
 * as below. */
PB_PIXEL uint32_t pb_cluster_sums_words(uint32_t classes, uint32_t bands)
{
    return classes * (1 + PB_CLUSTER_LIMBS * bands);
}

PB_PIXEL uint32_t pb_cluster_sums_at(uint32_t classes, uint32_t bands, uint32_t limb,
                                     uint32_t centre)
{
    return classes + limb * classes * bands + centre;
}

/* A value as digits of three limbs. */
struct pb_cluster_digits {
    uint32_t limb; /* the first */
    int32_t digit[3];
};

/* value is finite. */
PB_PIXEL struct pb_cluster_digits pb_cluster_digits_of(float value)
{
    struct pb_cluster_digits out;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint32_t place = exponent ? exponent - 1 : 0; /* of the lowest bit, above 2^-149 */
    const uint64_t mantissa = (bits & 0x7fffff) | (exponent ? 0x800000u : 0u);
    const uint64_t shifted = mantissa << place % 16;
    out.limb = place / 16;
    for (int i = 0; i < 3; i++) {
        const int32_t digit = (int32_t)(shifted >> 16 * i & 0xffff);
        out.digit[i] = bits >> 31 ? -digit : digit;
    }
    return out;
}
#endif
