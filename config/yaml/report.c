/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Insertion into a sorted list of twenty: a mistake late in the file is dropped when an earlier one
 * is found after it. */
#include "config/yaml/report.h"

#include "kernels/nearest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool before(const struct pb_report *report, int line, int col, size_t at)
{
    const int other = report->place[at];
    return line < other || (line == other && col < report->list->err[at].col);
}

static const char *file_of(const struct pb_report *report, int line)
{
    const int number = line / PB_FILE_LINES;
    return number == 0 || report->more == NULL ? report->file : report->more[number - 1];
}

int pb_report(struct pb_report *report, enum pb_code code, int line, int col, const char *format,
              ...)
{
    struct pb_err_list *list = report->list;
    size_t at = list->n;
    while (at > 0 && before(report, line, col, at - 1))
        at--;
    if (list->n == PB_CONFIG_ERRORS_MAX)
        list->n_more++;
    if (at == PB_CONFIG_ERRORS_MAX)
        return pb_code_errno(code);
    if (list->n < PB_CONFIG_ERRORS_MAX)
        list->n++;
    memmove(&list->err[at + 1], &list->err[at], (list->n - 1 - at) * sizeof *list->err);
    memmove(&report->place[at + 1], &report->place[at], (list->n - 1 - at) * sizeof *report->place);
    report->place[at] = line;
    struct pb_err *err = &list->err[at];
    memset(err, 0, sizeof *err);
    va_list args;
    va_start(args, format);
    char message[sizeof err->msg];
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    for (char *c = message; *c;
         c++) /* a name from the file must not contain control sequences for a terminal */
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
    return pb_fail_at(err, code, file_of(report, line), line % PB_FILE_LINES, col, "%s", message);
}

size_t pb_report_count(const struct pb_report *report)
{
    return report->list->n + report->list->n_more;
}

bool pb_report_has(const struct pb_report *report, int line, int col)
{
    for (size_t i = 0; i < report->list->n; i++)
        if (report->place[i] == line && report->list->err[i].col == col)
            return true;
    return false;
}

int pb_report_memory(struct pb_report *report)
{
    memset(report->list, 0, sizeof *report->list);
    return pb_report(report, PB_E_MEMORY, 0, 0, "out of memory while reading the configuration");
}

const char *pb_suggest(const char *wrong, const char *const *names, size_t n, char *out,
                       size_t out_bytes)
{
    const char *nearest = pb_nearest(wrong, names, n);
    if (nearest) {
        (void)snprintf(out, out_bytes, "; did you mean '%s'?", nearest);
        return out;
    }
    size_t length = (size_t)snprintf(out, out_bytes, "; allowed: ");
    for (size_t i = 0; i < n && length < out_bytes; i++)
        length +=
            (size_t)snprintf(out + length, out_bytes - length, "%s%s", i ? ", " : "", names[i]);
    return out;
}
