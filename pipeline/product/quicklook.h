/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_QUICKLOOK_H
#define PB_PRODUCT_QUICKLOOK_H
/* The configuration of a quicklook; quicklook_keys.c has the keys. */
#include "config/config.h"

struct pb_quicklook_config {
    struct pb_product_config product;
    int32_t size_px;   /* longest side at most */
    double stretch[2]; /* percentiles, 0 <= a < b <= 100 */
};
#endif
