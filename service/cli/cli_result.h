/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_RESULT_H
#define PB_CLI_RESULT_H
/* Output of `pushbroom run` to stdout about an input. One thread. */
#include "config/base/err.h"
#include "service/jobs/job.h"

/* Text: prints the places of the products. */
void cli_result_text(const char *input, const struct pb_job *job, bool verbose);
/* Text: reports that the scene has no pixel in the area of its pipeline. */
void cli_result_skipped(const char *input, const char *why);
/* Print one JSON object on one line: for a job that is done, and for an input that failed.
 * part: scene of an archive of several, NULL: the input is one scene. device_why: as in a job on
 * the status socket, "" = no device failed. */
void cli_result_done(const char *input, const char *part, const struct pb_job *job);
void cli_result_failed(const char *input, const char *part, const char *pipeline,
                       const char *device_why, const struct pb_err *err);
/* Prints the JSON line of --dry-run. plan: JSON from pb_explain; err: the error that the run would
 * have, NULL if it would have no error. */
void cli_result_plan(const char *input, const char *part, const char *pipeline, const char *plan,
                     const struct pb_err *err);
struct pb_json_value;
/* Prints a line with the results of the tiles of a report; NULL if it has no tiles. */
void cli_result_tiles(const struct pb_json_value *tiles);
/* Prints lines "  calibrate  R = toa of band 4: DN * 2.26e-05 - 0.113" from a member of a report;
 * NULL if absent. */
void cli_result_calibration(const struct pb_json_value *calibration);
/* Prints the number of each file if metadata determine their order, from a member of a report;
 * NULL if absent. */
void cli_result_order(const struct pb_json_value *order);
/* Prints the files next to the scene from a report: the files that were read and the files that
 * were not. */
void cli_result_sidecars(const struct pb_json_value *sidecars);
/* Prints the notes of a report; NULL if absent. */
void cli_result_notes(const struct pb_json_value *notes);
/* Prints the limit of the run from a report, which may be NULL. */
void cli_result_limit(const struct pb_json_value *report, bool all);
#endif
