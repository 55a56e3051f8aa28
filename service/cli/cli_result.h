/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RESULT_H
#define PB_CLI_RESULT_H
/* What `pushbroom run` prints on stdout about an input. One thread. */
#include "config/base/err.h"
#include "service/jobs/job.h"

/* For people: where the products are. */
void cli_result_text(const char *input, const struct pb_job *job, bool verbose);
/* For people: the scene has no pixel in the area of its pipeline. */
void cli_result_skipped(const char *input, const char *why);
/* One JSON object on one line, of a job that is done, and of an input that failed: device_why as in
 * a job on the status socket, "" = no device failed. */
void cli_result_done(const char *input, const struct pb_job *job);
void cli_result_failed(const char *input, const char *pipeline, const char *device_why,
                       const struct pb_err *err);
/* The same for --dry-run. plan: JSON, what pb_explain wrote; err: what the run would fail with,
 * NULL = nothing. */
void cli_result_plan(const char *input, const char *pipeline, const char *plan,
                     const struct pb_err *err);
struct pb_json_value;
/* A line of what became of the tiles of a report; NULL: there are none. */
void cli_result_tiles(const struct pb_json_value *tiles);
/* Lines "  calibrate  R = toa of band 4: DN * 2.26e-05 - 0.113" of a report's member; NULL: none.
 */
void cli_result_calibration(const struct pb_json_value *calibration);
/* Which file is which number, where metadata order them; of a report's member; NULL: they do not.
 */
void cli_result_order(const struct pb_json_value *order);
/* Of a report: files beside the scene, those that were read and those that were not. */
void cli_result_sidecars(const struct pb_json_value *sidecars);
/* Of a report, which may be NULL: what limited the run. */
void cli_result_limit(const struct pb_json_value *report, bool all);
#endif
