/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RESULT_JSON_H
#define PB_RESULT_JSON_H
/* Result of a run as JSON, with the same members on the worker's pipe, in a job on the status
 * socket and in `pushbroom run --json`. Thread: any. */
#include "config/base/json_writer.h"
#include "pipeline/run/run.h"

/* Prints the members "directory", "products" [{type, name, path, bytes, checksum, media_type}] and
 * "report" of the open object. service/doc/report.md lists the members of a report. */
void pb_result_print(struct pb_json *json, const struct pb_run_result *result);
/* Prints the member "bbox" of the open object, as in a report. */
void pb_result_print_bbox(struct pb_json *json, const double bbox[4]);
#endif
