/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CORE_USE_H
#define PB_CORE_USE_H
/* What limits a run, in words: the core seconds that there were between its first call and its end,
 * and what they went to. Each kind of work has its CPU time; the rest of a phase is cores that had
 * nothing to do, for the reason that the phase or the calls to storage give. Nothing is estimated
 * but the split of idle cores into storage and others, whose first part is at most what threads
 * slept in such calls. Plain arithmetic. Thread: any. */
#include "pipeline/run/base/run_work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PB_CORE_USES_MAX = PB_WORK_KINDS + PB_RUN_PARTS + 1 };

struct pb_core_facts {
    uint32_t cores;
    struct pb_part_report part[PB_RUN_PARTS];
    uint64_t process_ns; /* CPU time of all processes of the run */
};

struct pb_core_use {
    double share;    /* of the core seconds */
    bool in_phase;   /* CPU time that a phase without tiles is named by as well: not in the line */
    char words[120]; /* "decode: 38% of both cores" */
    size_t brief;    /* so many bytes of them where the cores were named before: "decode: 38%" */
};

struct pb_core_uses {
    struct pb_core_use use[PB_CORE_USES_MAX]; /* largest first */
    size_t n;
    uint64_t other_ns; /* of process_ns, in no part */
    char line[400];    /* the largest, in one line; "" = no time has passed */
};

void pb_core_uses_find(const struct pb_core_facts *facts, struct pb_core_uses *out);

struct pb_json;
struct pb_json_value;
/* The members `cores`, `cpu_ms` and `phases` of the open object. */
void pb_core_facts_print(const struct pb_core_facts *facts, struct pb_json *json);
/* Reads them back; what is missing, or is no number of milliseconds, counts as 0. */
void pb_core_facts_read(const struct pb_json_value *report, struct pb_core_facts *out);
/* The members `limit` and `limits`. */
void pb_core_uses_print(const struct pb_core_uses *uses, struct pb_json *json);
#endif
