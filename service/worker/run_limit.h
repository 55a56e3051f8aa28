/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_RUN_LIMIT_H
#define PB_RUN_LIMIT_H
/* Finds the limit of a run whose tiles a GPU computes: the longest phase, or, in the phase of the
 * tiles, the stage that was busy for most of it. Stages run at the same time, therefore the
 * busiest one sets the time if it is always busy. Plain arithmetic. Thread: any. */
#include "service/worker/core_use.h"

enum { PB_RUN_LIMIT_BYTES = 200 };

struct pb_json_value;
/* report: with `link`, `gpu`, `stages` and `elapsed_ms`; a missing member counts as not busy. "":
 * no GPU computed, or no time has passed. */
void pb_run_limit_find(const struct pb_core_facts *facts, const struct pb_json_value *report,
                       char out[PB_RUN_LIMIT_BYTES]);
#endif
