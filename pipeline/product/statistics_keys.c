/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/statistics.h"

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
};

const struct pb_product_kind pb_kind_statistics = {
    .section = {"statistics",
                "Minimum, maximum, mean, deviation and histogram of each band, as JSON.", keys,
                sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_statistics_config),
};
