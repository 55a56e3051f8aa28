/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TRACE_FILE_H
#define PB_TRACE_FILE_H
/* File in Chrome's trace event format, as JSON, for Perfetto and chrome://tracing. Format:
 * "Trace Event Format", Google, 2016 (phases X, C, b, e and M). The events of each run are in
 * the order of their starts, one per line. An existing file is refused. One thread. */
#include "config/base/err.h"

#include <stdint.h>

struct pb_trace_file;

/* Creates the file and allocates the trace's memory. path: borrowed until close. Call before the
 * first recording process is forked. */
int pb_trace_file_open(const char *path, struct pb_err *err, struct pb_trace_file **out_file);
/* Writes the events of the run of this input, and drops them. No process may record meanwhile. */
void pb_trace_file_add(struct pb_trace_file *file, const char *input);
/* Ends the file. *out_left_out: count of dropped events. A file that could not be written, or
 * has no events, is removed. NULL is fine. */
int pb_trace_file_close(struct pb_trace_file *file, struct pb_err *err, uint64_t *out_left_out);
#endif
