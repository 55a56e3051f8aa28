/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_QUICKLOOK_H
#define PB_PRODUCT_QUICKLOOK_H
/* The configuration of a quicklook; quicklook_keys.c has the keys. */
#include "config/product_config.h"
#include "pipeline/paint/paint_config.h"

/* SHEET: a picture of each band, side by side (quicklook_sheet.h). */
enum pb_quicklook_layout { PB_QUICKLOOK_PICTURE, PB_QUICKLOOK_SHEET };

struct pb_quicklook_config {
    struct pb_product_config product;
    int32_t size_px; /* longest side at most */
    int32_t layout;  /* enum pb_quicklook_layout */
    int32_t valid;   /* enum pb_joint */
    struct pb_paint_config paint;
};
#endif
