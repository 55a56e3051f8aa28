/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_CORE_USE_H
#define PB_CORE_USE_H
/* Explains in words what limits a run: splits the core seconds between its first call and its end
 * into uses. Each kind of work has its CPU time; the rest of a phase is idle cores, with the reason
 * given by the phase or by the calls to storage. Nothing is estimated except the split of idle
 * cores into storage and others: storage is at most the time that threads slept in such calls.
 * Plain arithmetic. Thread: any. */
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
    double share;    /* fraction of the core seconds */
    bool in_phase;   /* CPU time within a phase that is named itself: not in the line */
    char words[120]; /* "decode: 38% of both cores" */
    size_t brief;    /* length of the short form of words, without the cores: "decode: 38%" */
};

struct pb_core_uses {
    struct pb_core_use use[PB_CORE_USES_MAX]; /* largest first */
    size_t n;
    uint64_t other_ns; /* part of process_ns outside all phases */
    char line[400];    /* the largest uses, in one line; "" = no time has passed */
};

void pb_core_uses_find(const struct pb_core_facts *facts, struct pb_core_uses *out);

struct pb_json;
struct pb_json_value;
/* Prints the members `cores`, `cpu_ms` and `phases` of the open object. */
void pb_core_facts_print(const struct pb_core_facts *facts, struct pb_json *json);
/* Reads these members; a value that is missing or not a number of milliseconds counts as 0. */
void pb_core_facts_read(const struct pb_json_value *report, struct pb_core_facts *out);
/* Prints the members `limit` and `limits`. */
void pb_core_uses_print(const struct pb_core_uses *uses, struct pb_json *json);
#endif
