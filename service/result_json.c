/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/result_json.h"

#include "service/report.h"

#include <stdio.h>

void pb_result_print(struct pb_json *json, const struct pb_run_result *result)
{
    pb_json_string(json, "directory", result->directory);
    pb_report_products(json, result);
    pb_report_stages(json, &result->report);
}

void pb_result_print_err(struct pb_json *json, const char *key, const struct pb_err *err)
{
    char message[sizeof err->file + sizeof err->msg + 40];
    if (err->file[0] && err->line > 0)
        (void)snprintf(message, sizeof message, "%s:%d:%d: %s", err->file, err->line, err->col,
                       err->msg);
    else if (err->file[0])
        (void)snprintf(message, sizeof message, "%s: %s", err->file, err->msg);
    else
        (void)snprintf(message, sizeof message, "%s", err->msg);
    pb_json_object(json, key);
    pb_json_string(json, "code", pb_code_id(err->code));
    pb_json_string(json, "message", message);
    pb_json_string(json, "hint", pb_code_hint(err->code));
    pb_json_end(json);
}
