/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_HELP_H
#define PB_HELP_H
/* Arguments and options of programs and commands, as tables. --help, the manual pages and the
 * completions of shells are made from them. Static, read-only; one thread. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct pb_help_option {
    char letter;         /* 0 = no letter */
    const char *name;    /* "config"; NULL = the end of the table */
    const char *value;   /* "FILE"; NULL if it has no value */
    const char *choices; /* choices for the value, "auto|cpu"; NULL: any, a file when value is FILE
                            or DIR */
    const char *doc;
};

/* Help of a program, or of a command of a program. */
struct pb_help_page {
    const char *name, *arguments; /* words of the usage line */
    const char *summary;          /* a few words, without a full stop */
    const struct pb_help_option *options;
    const char *text;    /* paragraphs with a blank line between them; NULL if absent */
    const char *example; /* a command line; NULL if absent */
    bool takes_files;    /* for completion */
};

/* Help of the programs other than pushbroom. */
extern const struct pb_help_page pb_help_pushbroomd, pb_help_notify, pb_help_web, pb_help_ccsds,
    pb_help_fetch;

/* Prints "usage: <program> <name> <arguments>", summary, options, text, example; 80 columns.
 * program NULL: the page is that of a program. */
void pb_help_print(const struct pb_help_page *page, const char *program, FILE *out);
#endif
