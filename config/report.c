/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Insertion into a sorted list of twenty: a mistake that comes late in the file falls off the end
 * when one before it is found later. The nearest name is the smallest edit distance in which an
 * exchange of two neighbours counts as one edit (Damerau, restricted). */
#include "config/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LETTERS 63

static bool before(int line, int col, const struct pb_err *err)
{
    return line < err->line || (line == err->line && col < err->col);
}

int pb_report(struct pb_report *report, enum pb_code code, int line, int col, const char *format,
              ...)
{
    struct pb_err_list *list = report->list;
    size_t at = list->n;
    while (at > 0 && before(line, col, &list->err[at - 1]))
        at--;
    if (list->n == PB_CONFIG_ERRORS_MAX)
        list->n_more++;
    if (at == PB_CONFIG_ERRORS_MAX)
        return pb_code_errno(code);
    if (list->n < PB_CONFIG_ERRORS_MAX)
        list->n++;
    memmove(&list->err[at + 1], &list->err[at], (list->n - 1 - at) * sizeof *list->err);
    struct pb_err *err = &list->err[at];
    memset(err, 0, sizeof *err);
    va_list args;
    va_start(args, format);
    char message[sizeof err->msg];
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    for (char *c = message; *c; c++) /* a name out of the file must not steer a terminal */
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
    return pb_fail_at(err, code, report->file, line, col, "%s", message);
}

size_t pb_report_count(const struct pb_report *report)
{
    return report->list->n + report->list->n_more;
}

int pb_report_memory(struct pb_report *report)
{
    memset(report->list, 0, sizeof *report->list);
    return pb_report(report, PB_E_MEMORY, 0, 0, "out of memory while reading the configuration");
}

static unsigned lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t rows[3][NAME_MAX_LETTERS + 1];
    size_t *two_back = rows[0], *back = rows[1], *now = rows[2];
    for (size_t j = 0; j <= m; j++)
        back[j] = two_back[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t differs = lower(a[i - 1]) != lower(b[j - 1]);
            now[j] = least(least(back[j], now[j - 1]) + 1, back[j - 1] + differs);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = least(now[j], two_back[j - 2] + 1);
        }
        size_t *spare = two_back;
        two_back = back;
        back = now;
        now = spare;
    }
    return back[m];
}

const char *pb_nearest_name(const char *wrong, const char *const *names, size_t n)
{
    size_t letters = strlen(wrong);
    if (letters == 0 || letters > NAME_MAX_LETTERS)
        return NULL;
    const char *nearest = NULL;
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        size_t others = strlen(names[i]);
        if (others > NAME_MAX_LETTERS)
            continue;
        size_t allowed = (letters > others ? letters : others) / 3;
        size_t edits = distance(wrong, names[i]);
        if (edits <= (allowed ? allowed : 1) && edits < letters && (!nearest || edits < best)) {
            nearest = names[i];
            best = edits;
        }
    }
    return nearest;
}

const char *pb_suggest(const char *wrong, const char *const *names, size_t n, char *out,
                       size_t out_bytes)
{
    const char *nearest = pb_nearest_name(wrong, names, n);
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
