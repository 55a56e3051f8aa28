/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_ZONES_ROWS_H
#define PB_PRODUCT_ZONES_ROWS_H
/* The table of zones: a row each, in the order of their classes. */
#include "pipeline/numbers/table.h"
#include "pipeline/numbers/zones_all.h"
#include "pipeline/product/zones.h"

struct pb_zones_names {
    const char *const *bands; /* n_bands, those with statistics */
    size_t n_bands;
    double pixel_m2; /* of every pixel; 0 = the sums have areas, of unit_m2 each; NaN = not known */
    double unit_m2;
};

/* After pb_zones_end. NULL = no memory. */
struct pb_table *pb_zones_table(const struct pb_zones_config *config,
                                const struct pb_zones_names *names, const struct pb_zones_all *all);
#endif
