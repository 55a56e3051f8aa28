/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_RENDERS_H
#define PB_STAC_RENDERS_H
/* Rendering of the item's data by a tile server like its pictures: "renders" (render 2.0.0), one
 * for each picture whose values another product has. The members are those of rio-tiler and
 * TiTiler: assets, bidx, rescale (of stored values), colormap_name or colormap. */
#include "pipeline/product/stac/stac_asset.h"

bool pb_stac_has_renders(const struct pb_stac_item *item);
/* Writes a member of the item's properties; nothing without renders. */
void pb_stac_renders(const struct pb_stac_item *item);
#endif
