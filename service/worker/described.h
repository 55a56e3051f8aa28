/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DESCRIBED_H
#define PB_DESCRIBED_H
/* Answer of a worker about one loose file (worker.h, "describe"): the facts that input.by uses, or
 * an error. Parsed and checked as output of a process that decodes foreign files. Thread: any. */
#include "pipeline/scene/entry.h"

#include <stddef.h>

/* Sets an error and no facts. */
void pb_described_fail(struct pb_described *out, enum pb_code code, const char *message);
void pb_described_fail_err(struct pb_described *out, const struct pb_err *err);
/* Prints the line without its newline, as JSON; the caller owns it. */
struct pb_json;
struct pb_json *pb_described_line(const struct pb_described *described);
/* Parses such a line. Returns 0; -EPROTO if it is another line or has an impossible value: *out is
 * then untouched. */
int pb_described_parse(const char *line, size_t bytes, struct pb_described *out);
#endif
