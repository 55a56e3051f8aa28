/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_CLASSES_H
#define PB_STAC_CLASSES_H
/* Values of a band of classes in a STAC item, by its extension classification. A GeoTIFF has no
 * tag for their names: GDAL stores them in a separate file. */
#include "config/base/json_writer.h"
#include "kernels/key.h"

#include <stdbool.h>
#include <stdint.h>

#define PB_STAC_CLASSES "classification/v2.0.0"

struct pb_stac_classes {
    const struct pb_items *names; /* {NAME: value, ...}; n 0 = none */
    const uint8_t (*palette)[4];  /* colours by value; NULL = none */
    size_t n_palette;
    bool has_nodata;
    double nodata;
};

/* Writes "classification:classes", or nothing without classes. */
void pb_stac_classes(struct pb_json *json, const struct pb_stac_classes *classes);
#endif
