/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_CHECK_H
#define PB_PRODUCT_CHECK_H
/* What the check of a kind of product (pb_product_kind.check) may ask and say. During that call
 * only. */
#include <stdbool.h>

struct pb_product_check;

/* False when the key is not what the user meant, so that a check against it would tell the same
 * mistake again: its value has a mistake, or its name a slip. */
bool pb_product_key_is_sound(const struct pb_product_check *check, const char *key);
/* The key's value as written; NULL = not in the file, or no scalar. Borrowed. */
const char *pb_product_key_text(const struct pb_product_check *check, const char *key);
/* Reports a mistake at the key's value, or at the product when the key is not in the file. */
void pb_product_key_wrong(const struct pb_product_check *check, const char *key, const char *format,
                          ...) __attribute__((format(printf, 3, 4)));
#endif
