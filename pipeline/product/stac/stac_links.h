/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_LINKS_H
#define PB_STAC_LINKS_H
/* The links of a STAC item: to its collection, and to every file that was read, with size and
 * checksum (file 2.1.0): derived_from for pixels, via for metadata. Where a file will be found
 * later is not known here (the service archives or removes it), so without stac.derived_from its
 * address is its content: ni:///sha-256;... (RFC 6920). A file without an address, as there is none
 * for a BLAKE3, is listed in a property instead. */
#include "pipeline/product/stac/stac_asset.h"

void pb_stac_links(const struct pb_stac_item *item);
/* Writes the property "pushbroom:inputs": the files that have no link. Nothing where all have. */
void pb_stac_unlinked(const struct pb_stac_item *item);
#endif
