/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STAC_LINKS_H
#define PB_STAC_LINKS_H
/* Links of a STAC item: to its collection, and to every file that was read, with size and
 * checksum (file 2.1.0): derived_from for pixels, via for metadata. The later place of a file is
 * unknown here (the service archives or removes it); therefore without stac.derived_from its
 * address is its content: ni:///sha-256;... (RFC 6920). A file without an address, such as a
 * file with a BLAKE3, is listed in a property instead. */
#include "pipeline/product/stac/stac_asset.h"

void pb_stac_links(const struct pb_stac_item *item);
/* Returns true if one of the links is of a file that was read. */
bool pb_stac_links_inputs(const struct pb_stac_item *item);
/* Writes the property "pushbroom:inputs": the files without a link. Writes nothing if all files
 * have one. */
void pb_stac_unlinked(const struct pb_stac_item *item);
#endif
