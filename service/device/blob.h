/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_BLOB_H
#define PB_BLOB_H
/* A plain struct as a member of a JSON line, in hexadecimal digits: between processes of one
 * version. Thread: any. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>

void pb_blob_print(struct pb_json *json, const char *key, const void *from, size_t bytes);
/* Bytes of the member's struct; 0: it is not there. */
size_t pb_blob_bytes(const struct pb_json_value *object, const char *key);
/* False, and nothing is written: the member is not there or not of that size. */
bool pb_blob_take(const struct pb_json_value *object, const char *key, void *to, size_t bytes);
#endif
