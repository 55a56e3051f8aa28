/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESULT_JSON_H
#define PB_RESULT_JSON_H
/* Result of a run as JSON, with the same members on the worker's pipe, in a job on the status
 * socket and in `pushbroom run --json`. Thread: any. */
#include "config/base/err.h"
#include "config/base/json_writer.h"
#include "pipeline/run/run.h"

/* Prints the members "directory", "products" [{type, name, path, bytes, checksum, media_type}] and
 * "report" of the open object. service/doc/report.md lists the members of a report. */
void pb_result_print(struct pb_json *json, const struct pb_run_result *result);
/* Makes "file:line:col: message"; parts of the place that the error lacks are left out. */
void pb_result_err_words(const struct pb_err *err, char *out, size_t bytes);
/* Prints {"code", "message", "hint"} as a member `key`. */
void pb_result_print_err(struct pb_json *json, const char *key, const struct pb_err *err);
#endif
