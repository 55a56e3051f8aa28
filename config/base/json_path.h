/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JSON_PATH_H
#define PB_JSON_PATH_H
/* Paths in JSON, which is UTF-8, while a path may be any bytes. A path that is UTF-8 is written as
 * it is; any other, and one that begins with "bytes:", as "bytes:" and the path with %XX for each
 * byte that is no printable ASCII, for spaces and for %. Pure; any thread. */
#include "config/base/json_reader.h"
#include "config/base/json_writer.h"

#define PB_JSON_PATH_BYTES 4096 /* size of a path with its NUL */

/* Writes a path as the member `key`; NULL is null. */
void pb_json_path(struct pb_json *json, const char *key, const char *path);
/* Returns the path that the text means: the text itself, or room; NULL if the text is NULL or no
 * path written so. */
const char *pb_json_path_of(const char *text, char room[PB_JSON_PATH_BYTES]);
/* The same of a member of an object. */
const char *pb_json_get_path(const struct pb_json_value *value, const char *key,
                             char room[PB_JSON_PATH_BYTES]);
#endif
