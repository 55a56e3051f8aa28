/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product.h"

const struct pb_product_type *pb_product_type(const struct pb_product_kind *kind)
{
    static const struct pb_product_type *const types[] = {
#define PB_PRODUCT(name) &pb_product_##name,
#include "pipeline/product/products.def"
#undef PB_PRODUCT
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i]->kind == kind)
            return types[i];
    return NULL;
}
