/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REPORT_H
#define PB_REPORT_H
/* How a finished run is told in JSON: the same words on the command line, on the status socket and
 * between the service and its workers. Thread: any, one writer a thread. */
#include "config/json_writer.h"
#include "pipeline/run.h"

/* "products": [{"type":"cog","path":"…","bytes":0,"checksum":"sha256:…"}] */
void pb_report_products(struct pb_json *json, const struct pb_run_result *result);
/* "report": device, buffers, sync, memory, elapsed and publish times, one entry a stage with busy
 * and parked time. */
void pb_report_stages(struct pb_json *json, const struct pb_run_report *report);
/* "error": {"code","message","hint"} */
void pb_report_error(struct pb_json *json, const struct pb_err *err);
#endif
