/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JSON_READ_H
#define PB_JSON_READ_H
/* Reads JSON of other programs: strict syntax, valid UTF-8, a limit on bytes and depth, typed
 * getters that never convert. Writing is config/base/json_writer.h. One thread a value. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_JSON_LINE_MAX  (64 * 1024) /* of a request */
#define PB_JSON_DEPTH_MAX 32

struct pb_json_value;

/* Parses one JSON text (need not be NUL-terminated; white space around it is fine). 0 and
 * *out_value, the caller's (pb_json_release); -EINVAL not JSON, -EFBIG over max_bytes or too deep,
 * -ENOMEM. */
int pb_json_parse(const char *text, size_t bytes, size_t max_bytes,
                  struct pb_json_value **out_value);
void pb_json_release(struct pb_json_value *value); /* NULL is fine */

/* Everything below is borrowed from the root and accepts a NULL value (nothing is found in it). */
bool pb_json_is_object(const struct pb_json_value *value);
bool pb_json_is_array(const struct pb_json_value *value);
bool pb_json_is_null(const struct pb_json_value *value);
/* A number or a boolean. */
bool pb_json_is_plain(const struct pb_json_value *value);
/* A number or a string: what JSON-RPC allows as an id, besides null. */
bool pb_json_is_id(const struct pb_json_value *value);
/* Member of an object, or NULL. *out_found says whether the key is there (a null value is NULL). */
const struct pb_json_value *pb_json_get(const struct pb_json_value *value, const char *key,
                                        bool *out_found);
size_t pb_json_count(const struct pb_json_value *value); /* of an array, else 0 */
const struct pb_json_value *pb_json_at(const struct pb_json_value *value, size_t i);
/* The string, or NULL when value is none or holds a NUL byte. */
const char *pb_json_text_of(const struct pb_json_value *value);
/* Members by key. Strings: NULL when missing or of another type. Integers and booleans: 0,
 * -ENOENT (missing or null), -EINVAL (another type); *out untouched on failure. */
const char *pb_json_get_text(const struct pb_json_value *value, const char *key);
int pb_json_get_int(const struct pb_json_value *value, const char *key, int64_t *out);
int pb_json_get_bool(const struct pb_json_value *value, const char *key, bool *out);
/* The number, or otherwise when value is none. */
double pb_json_number_of(const struct pb_json_value *value, double otherwise);
/* The value as compact JSON; borrowed, valid until the next call for the same value. NULL: out of
 * memory. */
const char *pb_json_source(const struct pb_json_value *value);
/* Names of the keys of an object, in order: NULL past the last. */
const char *pb_json_key(const struct pb_json_value *value, size_t i);
#endif
