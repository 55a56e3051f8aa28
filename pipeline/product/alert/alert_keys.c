/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/alert/alert.h"
#include "pipeline/product/product_kinds.h"

#include "config/product_check.h"

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_alert_config, "fire"),
    {.name = "band",
     .type = PB_KEY_BAND,
     .offset = offsetof(struct pb_alert_config, band),
     .sample = "NDVI",
     .required = true,
     .doc = "Band whose values are compared."},
    {.name = "above",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct pb_alert_config, above),
     .more = offsetof(struct pb_alert_config, has_above),
     .sample = "0.5",
     .doc = "Pixels with a greater value count. One of above and below is needed."},
    {.name = "below",
     .type = PB_KEY_NUMBER,
     .offset = offsetof(struct pb_alert_config, below),
     .more = offsetof(struct pb_alert_config, has_below),
     .example = "-0.2",
     .doc = "Pixels with a smaller value count."},
    {.name = "pixels",
     .type = PB_KEY_INT,
     .offset = offsetof(struct pb_alert_config, pixels),
     .min = 1,
     .max = 1000000,
     .def = "1",
     .doc = "Count of such pixels in a line from which the line is an alert. Consecutive lines "
            "with as many are one alert, reported at the first of them."},
};

static void check_alert(struct pb_product_config *product, const struct pb_product_check *check)
{
    const struct pb_alert_config *const alert = (const struct pb_alert_config *)product;
    if (alert->band.n == 1 && (product->bands = pb_product_key_alloc(check, 1, sizeof(char *)))) {
        product->bands[0] = (char *)alert->band.items[0].text;
        product->n_bands = 1;
    }
    if (!alert->has_above && !alert->has_below && pb_product_key_is_sound(check, "above") &&
        pb_product_key_is_sound(check, "below"))
        pb_product_key_wrong(check, "above",
                             "alert needs a limit: above: 0.5 (greater values count) or below");
    if (alert->has_above && alert->has_below && alert->below > alert->above)
        pb_product_key_wrong(check, "below",
                             "alert.below is greater than alert.above: every value would count");
}

const struct pb_product_kind pb_kind_alert = {
    .section = {"alert",
                "Lines in which values pass a limit: an event while the scene is computed, and "
                "all of them as GeoJSON.",
                keys, sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_alert_config),
    .is_optional = true,
    .check = check_alert,
};
