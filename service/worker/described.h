/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DESCRIBED_H
#define PB_DESCRIBED_H
/* Answer of a worker about one loose file (worker.h, "describe"): the facts that input.by uses, or
 * an error. Parsed and checked as output of a process that decodes foreign files. Thread: any. */
#include "config/group_pattern.h"
#include "service/jobs/job.h"

#include <stddef.h>

struct pb_described {
    struct pb_group_facts facts;
    struct pb_job_error error; /* code "" = none */
};

/* Without facts, for that reason. hint NULL: that of the code. */
void pb_described_fail(struct pb_described *out, const char *code, const char *message);
void pb_described_fail_err(struct pb_described *out, const struct pb_err *err);
/* The line without its newline, as JSON; the caller's. */
struct pb_json;
struct pb_json *pb_described_line(const struct pb_described *described);
/* Parses such a line. 0; -EPROTO: another line, or an impossible value: *out is untouched. */
int pb_described_parse(const char *line, size_t bytes, struct pb_described *out);
#endif
