/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/product_kinds.h"
#include "pipeline/product/stac.h"

static const struct pb_key keys[] = {
    PB_PRODUCT_KEY_NAME(struct pb_stac_config, "item"),
    {.name = "datetime",
     .type = PB_KEY_TIME,
     .offset = offsetof(struct pb_stac_config, datetime),
     .example = "2026-05-04T10:30:00Z",
     .doc = "When the scene was taken (RFC 3339); without this key: from the file's tags, else its "
            "mtime."},
    {.name = "platform",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, platform),
     .example = "sentinel-2a",
     .doc = "Satellite."},
    {.name = "constellation",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, constellation),
     .example = "sentinel-2",
     .doc = "Group of satellites."},
    {.name = "collection",
     .type = PB_KEY_TEXT,
     .offset = offsetof(struct pb_stac_config, collection),
     .example = "sentinel-2-indices",
     .doc = "STAC collection the item belongs to."},
};

const struct pb_product_kind pb_kind_stac = {
    .section = {"stac", "A STAC item that describes the other products.", keys,
                sizeof keys / sizeof keys[0]},
    .bytes = sizeof(struct pb_stac_config),
    .describes_others = true,
};
