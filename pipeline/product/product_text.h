/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_TEXT_H
#define PB_PRODUCT_TEXT_H
/* Writes a product that is text. */
#include "config/base/json_writer.h"
#include "pipeline/product/product.h"

/* Writes <directory>/<result->file> with the text of json and a line feed, onto the disk, and fills
 * the result's bytes and checksum. json may be NULL (out of memory, as may be its text). */
int pb_product_text(const struct pb_product_env *env, struct pb_json *json, struct pb_err *err,
                    struct pb_product_result *result);
/* The same of n texts, one behind the other, each of its bytes; NULL = no memory was left for it.
 */
int pb_product_write(const struct pb_product_env *env, const char *const *text, const size_t *bytes,
                     size_t n, struct pb_err *err, struct pb_product_result *result);
#endif
