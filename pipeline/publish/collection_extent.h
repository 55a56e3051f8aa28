/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_EXTENT_H
#define PB_COLLECTION_EXTENT_H
/* Where and when a STAC item lies, and the extent of a collection that holds it. Pure but for the
 * reading of an item; any thread. */
#include <stdbool.h>

struct pb_collection_extent {
    bool has_bbox;
    double bbox[4];          /* west, south, east, north; west > east: across the antimeridian */
    char start[40], end[40]; /* RFC 3339 in UTC, as pb_meta_time writes it; "" = open */
};

/* Of the item in a file of the open directory: 0, or -EINVAL: it is no item of that collection. */
int pb_collection_extent_read(int directory, const char *file, const char *collection,
                              struct pb_collection_extent *out);
/* Grows `extent` so that it holds `item`; whether it did. A side that is open stays so. */
bool pb_collection_extent_grow(struct pb_collection_extent *extent,
                               const struct pb_collection_extent *item);

struct pb_json;
struct pb_json_value;
/* The member "extent" of a collection. Read: false: it is none that can grow. */
void pb_collection_extent_write(struct pb_json *json, const struct pb_collection_extent *extent);
bool pb_collection_extent_parse(const struct pb_json_value *extent,
                                struct pb_collection_extent *out);
#endif
