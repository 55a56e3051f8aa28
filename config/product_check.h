/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_CHECK_H
#define PB_PRODUCT_CHECK_H
/* The interface for the check of a kind of product (pb_product_kind.check). Valid during that call
 * only. */
#include <stdbool.h>

struct pb_product_check;

/* False when the key has no reliable value, so that a check against it would repeat a mistake: its
 * value is invalid, or its name misspelt. */
bool pb_product_key_is_sound(const struct pb_product_check *check, const char *key);
/* The key's value as written; NULL = not in the file, or no scalar. Borrowed. */
const char *pb_product_key_text(const struct pb_product_check *check, const char *key);
/* Reports a mistake at the key's value, or at the product when the key is not in the file. */
void pb_product_key_wrong(const struct pb_product_check *check, const char *key, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));
#endif
