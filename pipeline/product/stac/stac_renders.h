/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_RENDERS_H
#define PB_STAC_RENDERS_H
/* How a tile server draws the item's data as its pictures show them: "renders" (render 2.0.0), one
 * for each picture whose values another product has. The members are those that rio-tiler and
 * TiTiler take: assets, bidx, rescale (of stored values), colormap_name or colormap. */
#include "pipeline/product/stac/stac_asset.h"

bool pb_stac_has_renders(const struct pb_stac_item *item);
/* A member of the item's properties; nothing when there are none. */
void pb_stac_renders(const struct pb_stac_item *item);
#endif
