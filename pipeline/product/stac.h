/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_STAC_H
#define PB_PRODUCT_STAC_H
/* The configuration of a STAC item; stac_keys.c has the keys. */
#include "config/config.h"

struct pb_stac_config {
    struct pb_product_config product;
    char *datetime; /* RFC 3339; NULL = from the file's tags, else its mtime */
    char *platform, *constellation, *collection;
};
#endif
