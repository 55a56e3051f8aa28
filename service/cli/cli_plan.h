/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CLI_PLAN_H
#define PB_CLI_PLAN_H
/* What `pushbroom run --dry-run` prints for people. One thread. */
#include <stdbool.h>

struct pb_json_value;

/* plan: what pb_explain wrote; why: how the pipeline was chosen. With verbose how the run is
 * scheduled as well: tiles, threads, slots, transfer plan. */
void cli_plan_text(const char *input, const char *pipeline, const char *why,
                   const struct pb_json_value *plan, bool verbose);
#endif
