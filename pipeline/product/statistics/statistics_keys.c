/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product.h"
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/statistics/statistics.h"

#include "config/product_check.h"

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_statistics_config, "summary"),
    PB_PRODUCT_KEY_BANDS(struct pb_statistics_config, NULL, PB_PRODUCT_EVERY_BAND),
    {.name = "buckets",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_statistics_config, buckets),
     .min = 1,
     .max = 4096,
     .def = "256",
     .doc = "Classes of the histogram."},
    {.name = "percentiles",
     .type = PB_KEY_WEIGHTS,
     .offset = offsetof(struct pb_statistics_config, percentiles),
     .min = 0,
     .max = 100,
     .example = "[2, 50, 98]",
     .doc = "Percentiles of each band, linear between ranks, counted in the same pass. Exact for "
            "bands with at most 262144 different values, therefore for all bands of 16 bits; for "
            "others, error is the largest possible deviation of a value."},
};

static void check_percentiles(struct pb_product_config *product,
                              const struct pb_product_check *check)
{
    const struct pb_items *p = &((const struct pb_statistics_config *)product)->percentiles;
    if (!pb_product_key_is_sound(check, "percentiles"))
        return;
    if (p->n > PB_STATISTICS_PERCENTILES_MAX)
        pb_product_key_wrong(check, "percentiles",
                             "statistics.percentiles: there are %zu, and at most %d may be", p->n,
                             PB_STATISTICS_PERCENTILES_MAX);
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < i; k++)
            if (p->items[k].num == p->items[i].num)
                pb_product_key_wrong(check, "percentiles",
                                     "statistics.percentiles: %.40s is there twice",
                                     p->items[i].text);
}

const struct pb_product_kind pb_kind_statistics = {
    .section = {"statistics",
                "Minimum, maximum, mean, deviation, histogram and percentiles of each band, as "
                "JSON.",
                keys, sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_statistics_config),
    .check = check_percentiles,
};
