/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOB_H
#define PB_BLOB_H
/* Plain struct as a member of a JSON line, in hexadecimal digits: for processes of the same
 * version. Thread: any. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>

void pb_blob_print(struct pb_json *json, const char *key, const void *from, size_t bytes);
/* Returns false, and writes nothing, if the member is absent or has another size. */
bool pb_blob_take(const struct pb_json_value *object, const char *key, void *to, size_t bytes);
#endif
