/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_ALERT_H
#define PB_PRODUCT_ALERT_H
/* Configuration of alerts; alert_keys.c has the keys. */
#include "config/product_config.h"

struct pb_alert_config {
    struct pb_product_config product;
    struct pb_items band; /* one item */
    double above, below;
    bool has_above, has_below;
    int32_t pixels; /* count in a line, at least 1 */
};
#endif
