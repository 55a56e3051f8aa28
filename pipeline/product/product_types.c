/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The table of product kinds: the only place that knows all of them. */
#include "pipeline/product/product.h"

const struct pb_product_type *pb_product_type(enum pb_product_kind kind)
{
    static const struct pb_product_type *const types[] = {
        [PB_PRODUCT_COG] = &pb_product_cog,
        [PB_PRODUCT_QUICKLOOK] = &pb_product_quicklook,
        [PB_PRODUCT_STATISTICS] = &pb_product_statistics,
        [PB_PRODUCT_STAC] = &pb_product_stac,
    };
    return types[kind];
}
