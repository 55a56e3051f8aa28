/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_STAC_H
#define PB_PRODUCT_STAC_H
/* The configuration of a STAC item; stac_keys.c has the keys. */
#include "config/product_config.h"
#include "pipeline/io/checksum.h"

/* Files in the directory of products (pipeline/publish/collection.h): the root of the tree, and the
 * page of a month of acquisition, whose argument is a time that begins with "2020-02". */
#define PB_STAC_CATALOG "catalog.json"
#define PB_STAC_PAGE    "collection-%.7s.json"

/* Source of the time of acquisition. */
enum pb_stac_time {
    PB_STAC_TIME_AUTO, /* not configured: the metadata's */
    PB_STAC_TIME_METADATA,
    PB_STAC_TIME_NAME,
    PB_STAC_TIME_TAG,
    PB_STAC_TIME_FILE,
    PB_STAC_TIME_GIVEN
};

struct pb_stac_config {
    struct pb_product_config product;
    char *datetime; /* as written; NULL = not given */
    enum pb_stac_time time;
    const char *pattern; /* pattern for NAME */
    char *platform, *constellation, *collection;
    int32_t checksum;   /* products' files: 0 = output.checksum, else 1 + the kind */
    char *derived_from; /* address of an input, with {file}; NULL = the address is its content */
};
#endif
