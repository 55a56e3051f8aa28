/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ERR_JSON_H
#define PB_ERR_JSON_H
/* An error as a member of a JSON object. Thread: any. */
#include "config/base/err.h"
#include "config/base/json_writer.h"

/* Makes "file:line:col: message"; parts of the place that the error lacks are left out. */
void pb_err_words(const struct pb_err *err, char *out, size_t bytes);
/* Prints {"code", "message", "hint"} as a member `key`. */
void pb_err_json(struct pb_json *json, const char *key, const struct pb_err *err);
#endif
