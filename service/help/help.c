/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/help/help.h"

#include <string.h>

#define COLUMNS    80
#define DOC_COLUMN 25

/* Prints words from a column on, in lines that begin at `indent`. */
static void wrap(FILE *out, int column, int indent, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    bool first = true;
    while (text < end) {
        size_t n = strcspn(text, " \n");
        n = n < (size_t)(end - text) ? n : (size_t)(end - text);
        if (!first && column + 1 + (int)n > COLUMNS - 1) {
            (void)fprintf(out, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        (void)fprintf(out, "%s%.*s", first ? "" : " ", (int)n, text);
        column += (int)n + !first;
        first = false;
        text += n;
        text += text < end;
    }
    (void)fputc('\n', out);
}

static void print_option(const struct pb_help_option *option, FILE *out)
{
    char left[60], letter[8] = "    ";
    if (option->letter != 0)
        (void)snprintf(letter, sizeof letter, "-%c, ", option->letter);
    int n = snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name,
                     option->value ? " " : "", option->value ? option->value : "");
    if (n >= DOC_COLUMN)
        (void)fprintf(out, "%s\n%*s", left, DOC_COLUMN, "");
    else
        (void)fprintf(out, "%-*s", DOC_COLUMN, left);
    wrap(out, DOC_COLUMN, DOC_COLUMN, option->doc, strlen(option->doc));
}

void pb_help_print(const struct pb_help_page *page, const char *program, FILE *out)
{
    (void)fprintf(out, "usage: %s%s%s %s\n\n", program ? program : "", program ? " " : "",
                  page->name, page->arguments);
    char summary[300];
    int n_summary = snprintf(summary, sizeof summary, "%s.", page->summary);
    wrap(out, 0, 0, summary, (size_t)n_summary);
    if (page->options->name != NULL)
        (void)fputc('\n', out);
    for (const struct pb_help_option *option = page->options; option->name != NULL; option++)
        print_option(option, out);
    for (const char *text = page->text; text != NULL && *text;) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        (void)fputc('\n', out);
        wrap(out, 0, 0, text, n);
        text = end ? end + 2 : NULL;
    }
    if (page->example != NULL)
        (void)fprintf(out, "\nExample:\n  %s\n", page->example);
}
