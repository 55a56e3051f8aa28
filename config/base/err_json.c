/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/err_json.h"

#include <stdio.h>

void pb_err_words(const struct pb_err *err, char *out, size_t bytes)
{
    if (err->file[0] && err->line > 0)
        (void)snprintf(out, bytes, "%s:%d:%d: %s", err->file, err->line, err->col, err->msg);
    else if (err->file[0])
        (void)snprintf(out, bytes, "%s: %s", err->file, err->msg);
    else
        (void)snprintf(out, bytes, "%s", err->msg);
}

void pb_err_json(struct pb_json *json, const char *key, const struct pb_err *err)
{
    char message[sizeof err->file + sizeof err->msg + 40];
    pb_err_words(err, message, sizeof message);
    pb_json_object(json, key);
    pb_json_string(json, "code", pb_code_id(err->code));
    pb_json_string(json, "message", message);
    pb_json_string(json, "hint", pb_code_hint(err->code));
    pb_json_end(json);
}
