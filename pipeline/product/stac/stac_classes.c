/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/stac/stac_classes.h"

#include <stdio.h>

static void write_class(struct pb_json *json, const struct pb_stac_classes *classes,
                        const struct pb_item *item)
{
    int64_t value = (int64_t)item->num;
    char colour[8];
    pb_json_object(json, NULL);
    pb_json_int(json, "value", value);
    pb_json_string(json, "name", item->key);
    if (value >= 0 && (uint64_t)value < classes->n_palette) {
        const uint8_t *rgb = classes->palette[value];
        (void)snprintf(colour, sizeof colour, "%02X%02X%02X", rgb[0], rgb[1], rgb[2]);
        pb_json_string(json, "color_hint", colour);
    }
    if (classes->has_nodata && item->num == classes->nodata)
        pb_json_bool(json, "nodata", true);
    pb_json_end(json);
}

void pb_stac_classes(struct pb_json *json, const struct pb_stac_classes *classes)
{
    if (classes->names == NULL || classes->names->n == 0)
        return;
    pb_json_array(json, "classification:classes");
    for (size_t i = 0; i < classes->names->n; i++)
        write_class(json, classes, &classes->names->items[i]);
    pb_json_end(json);
}
