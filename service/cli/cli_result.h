/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RESULT_H
#define PB_CLI_RESULT_H
/* What `pushbroom run` prints on stdout about an input. One thread. */
#include "config/base/err.h"
#include "pipeline/run/run.h"

/* For people: where the products are. */
void cli_result_text(const char *input, const struct pb_run_result *result);
/* One JSON object on one line. result NULL = it failed with *err; device_why as in a job on the
 * status socket, "" = no device failed. */
void cli_result_json(const char *input, const char *pipeline, const char *device_why,
                     const struct pb_err *err, const struct pb_run_result *result);
/* Both for an input that was computed apart: done is the line of pb_worker_job_publish; warning: of
 * the publication, "" = none, and already said on stderr. */
void cli_result_done_text(const char *input, const char *done);
void cli_result_done_json(const char *input, const char *pipeline, const char *device_why,
                          const char *done, const char *warning);
/* The same for --dry-run; text is what pb_run_explain wrote, and is cut up. */
void cli_result_plan(const char *input, const char *pipeline, char *text);
#endif
