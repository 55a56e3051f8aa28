/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_CHECK_H
#define PB_PRODUCT_CHECK_H
/* The interface for the check of a kind of product (pb_product_kind.check). Valid during that call
 * only. */
#include <stdbool.h>
#include <stddef.h>

/* Of a band whose values are no classes: the kind of product, the band, the key. */
#define PB_NO_CLASSES                                                                              \
    "%s: band '%s' of %s is computed, and nothing makes its values classes; round them first "     \
    "(cast: {type: uint8}, math with floor), or use classify or conditions"

struct pb_product_check;
struct pb_product_config;

/* False when the key has no reliable value, so that a check against it would repeat a mistake: its
 * value is invalid, or its name misspelt. */
bool pb_product_key_is_sound(const struct pb_product_check *check, const char *key);
/* The key's value as written; NULL = not in the file, or no scalar. Borrowed. */
const char *pb_product_key_text(const struct pb_product_check *check, const char *key);
/* Whether the key is in the file, whatever its value. */
bool pb_product_key_is_given(const struct pb_product_check *check, const char *key);
/* The path in a key's value, which begins at the configuration's directory when it is relative; and
 * memory, zeroed. Both live as long as the configuration; NULL: none is left, which fails the
 * load. */
const char *pb_product_key_path(const struct pb_product_check *check, const char *path);
void *pb_product_key_alloc(const struct pb_product_check *check, size_t count, size_t size);
/* Adds a step to the pipeline, after those of the file: each of the product's bands stretched to 0
 * ..
 * 1. params: of the operator `stretch`, "percentiles: [2, 98]"; label: what the bands it makes are
 * called, behind the name: "[2, 98]". The product gets what it makes. To be called once, with
 * bands.
 */
void pb_product_stretch(const struct pb_product_check *check, struct pb_product_config *product,
                        const char *params, const char *label);
/* Reports a mistake at the key's value, or at the product when the key is not in the file. */
void pb_product_key_wrong(const struct pb_product_check *check, const char *key, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));
#endif
