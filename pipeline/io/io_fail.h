/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_IO_FAIL_H
#define PB_IO_FAIL_H
/* Error of a file that could not be written. Thread: any. */
#include "config/base/err.h"

/* Converts error (an errno) to output.full, output.denied, output.name, system.files,
 * system.memory or output.write; the message is "<what> '<path>': <strerror>". Returns the
 * negative errno. */
int pb_io_fail(struct pb_err *err, int error, const char *what, const char *path);
#endif
