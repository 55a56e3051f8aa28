/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_STATISTICS_H
#define PB_PRODUCT_STATISTICS_H
/* Configuration of statistics; statistics_keys.c has the keys. */
#include "config/product_config.h"

struct pb_statistics_config {
    struct pb_product_config product;
    int32_t buckets;             /* buckets of the histogram, 1 .. 4096 */
    struct pb_items percentiles; /* 0 .. 100, each once */
};
#endif
