/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PRODUCT_TEXT_H
#define PB_PRODUCT_TEXT_H
/* Writer of products that are text. */
#include "config/base/json_writer.h"
#include "pipeline/product/product.h"

/* Writes <directory>/<result->file> with the text of json and a line feed, with fsync, and fills
 * the result's bytes and checksum. json, or its text, may be NULL (out of memory). */
int pb_product_text(const struct pb_product_env *env, struct pb_json *json, struct pb_err *err,
                    struct pb_product_result *result);
/* The same for n texts in sequence with given sizes; a NULL text = out of memory. */
int pb_product_write(const struct pb_product_env *env, const char *const *text, const size_t *bytes,
                     size_t n, struct pb_err *err, struct pb_product_result *result);
#endif
