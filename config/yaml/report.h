/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REPORT_H
#define PB_REPORT_H
/* Collects the mistakes of a configuration in the order of their places, whatever the order in
 * which they are found; the first PB_CONFIG_ERRORS_MAX are kept, the rest counted. A configuration
 * may have several files, and a place of any of them is one number and a column: line is
 * PB_FILE_LINES * number of the file + line in the file. One thread. */
#include "config/base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define PB_CONFIG_ERRORS_MAX 20
#define PB_FILE_LINES        (1 << 21) /* more than a file may have (PB_CONFIG_BYTES_MAX) */

struct pb_err_list {
    size_t n; /* reported; errors past PB_CONFIG_ERRORS_MAX are counted in n_more */
    size_t n_more;
    struct pb_err err[PB_CONFIG_ERRORS_MAX];
};

struct pb_report {
    struct pb_err_list *list;        /* borrowed */
    const char *file;                /* number 0; borrowed */
    const char *const *more;         /* numbers 1, 2, ...; borrowed. NULL = there is one file */
    int place[PB_CONFIG_ERRORS_MAX]; /* file number and line of each of list->err */
};

/* Line 0 of a file = the file as a whole. Returns the code's negative errno. */
int pb_report(struct pb_report *report, enum pb_code code, int line, int col, const char *format,
              ...) __attribute__((format(printf, 5, 6)));

/* Mistakes found so far, kept or not. */
size_t pb_report_count(const struct pb_report *report);

/* Whether one of those kept has this place. */
bool pb_report_has(const struct pb_report *report, int line, int col);

/* Replaces the list by "out of memory". Returns -ENOMEM. */
int pb_report_memory(struct pb_report *report);

/* "; did you mean 'x'?" or "; allowed: a, b, c" for a message. Returns out. */
const char *pb_suggest(const char *wrong, const char *const *names, size_t n, char *out,
                       size_t out_bytes);
#endif
