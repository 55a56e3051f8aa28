/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_PLAN_H
#define PB_CLI_PLAN_H
/* Text output of `pushbroom run --dry-run`. One thread. */
#include <stdbool.h>

struct pb_json_value;

/* plan: output of pb_explain; why: how the pipeline was chosen. verbose adds the schedule of the
 * run: tiles, threads, slots, transfer plan. */
void cli_plan_text(const char *input, const char *pipeline, const char *why,
                   const struct pb_json_value *plan, bool verbose);
#endif
