/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_JSON_WRITER_H
#define PB_JSON_WRITER_H
/* Writes JSON (RFC 8259) into a growing buffer: commas, indentation and escaping are its business.
 * Strings may be any bytes: control characters are escaped, invalid UTF-8 becomes U+FFFD. Numbers
 * print in the shortest form that reads back the same; NaN and infinities become null. Errors (out
 * of memory, nesting over 64, an end without a start) stick; pb_json_text reports them. One thread.
 * Parsing is not here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pb_json;

struct pb_json *
pb_json_create(bool pretty); /* NULL = out of memory, and every call below accepts it */
void pb_json_destroy(struct pb_json *json);

void pb_json_object(struct pb_json *json,
                    const char *key); /* key NULL inside arrays and at the top */
void pb_json_array(struct pb_json *json, const char *key);
void pb_json_end(struct pb_json *json);
void pb_json_string(struct pb_json *json, const char *key,
                    const char *value); /* NULL value = null */
void pb_json_number(struct pb_json *json, const char *key, double value);
void pb_json_float(struct pb_json *json, const char *key, float value); /* shortest for a float32 */
void pb_json_int(struct pb_json *json, const char *key, int64_t value);
void pb_json_bool(struct pb_json *json, const char *key, bool value);
void pb_json_null(struct pb_json *json, const char *key);
/* Inserts text that is already JSON (borrowed). */
void pb_json_raw(struct pb_json *json, const char *key, const char *text);

/* The text so far, NUL-terminated, owned by json, or NULL after an error. *out_bytes may be NULL.
 */
const char *pb_json_text(struct pb_json *json, size_t *out_bytes);
/* The same with a newline at its end, for a file; nothing can be added afterwards. */
const char *pb_json_document(struct pb_json *json, size_t *out_bytes);
#endif
