/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product_kinds.h"

#include <string.h>

static const struct pb_product_kind *const kinds[] = {
#define PB_PRODUCT(name) &pb_kind_##name,
#include "pipeline/product/products.def"
#undef PB_PRODUCT
};

const struct pb_product_kinds pb_products = {kinds, sizeof kinds / sizeof kinds[0], NULL};

const struct pb_product_kind *pb_product_kind_find(const char *name)
{
    for (size_t i = 0; i < pb_products.n; i++)
        if (strcmp(kinds[i]->section.name, name) == 0)
            return kinds[i];
    return NULL;
}
