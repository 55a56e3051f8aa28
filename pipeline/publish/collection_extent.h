/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_COLLECTION_EXTENT_H
#define PB_COLLECTION_EXTENT_H
/* Place and time of a STAC item, and the extent of a collection that contains it. Pure except
 * for the reading of an item; any thread. */
#include <stdbool.h>

struct pb_json;
struct pb_json_value;

struct pb_collection_extent {
    bool has_bbox;
    double bbox[4];          /* west, south, east, north; west > east: across the antimeridian */
    char start[40], end[40]; /* RFC 3339 in UTC, as pb_meta_time writes it; "" = open */
};

/* Takes the extent of an item. Returns false if a place or a time is malformed, or if it has no
 * time. */
bool pb_collection_extent_take(const struct pb_json_value *item, struct pb_collection_extent *out);
/* Reads the extent of the item in a file of the open directory. Returns 0, or -EINVAL: not an
 * item of that collection. */
int pb_collection_extent_read(int directory, const char *file, const char *collection,
                              struct pb_collection_extent *out);
/* Grows `extent` so that it contains `item`; returns true if it changed. An open side stays
 * open. */
bool pb_collection_extent_grow(struct pb_collection_extent *extent,
                               const struct pb_collection_extent *item);

/* Member "extent" of a collection. pb_collection_extent_parse returns false if it is not an
 * extent that can grow. */
void pb_collection_extent_write(struct pb_json *json, const struct pb_collection_extent *extent);
bool pb_collection_extent_parse(const struct pb_json_value *extent,
                                struct pb_collection_extent *out);
#endif
