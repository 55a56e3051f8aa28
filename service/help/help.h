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
    char letter;         /* 0 = none */
    const char *name;    /* "config"; NULL = the end of the table */
    const char *value;   /* "FILE"; NULL if it has no value */
    const char *choices; /* choices for the value, "auto|cpu"; NULL: any, a file when value is FILE
                            or DIR */
    const char *doc;
};

/* A program, or a command of one. */
struct pb_help_page {
    const char *name, *arguments; /* words of the usage line */
    const char *summary;          /* a few words, without a full stop */
    const struct pb_help_option *options;
    const char *text;    /* paragraphs, a blank line between; NULL = none */
    const char *example; /* a command line; NULL = none */
    bool takes_files;    /* for completion */
};

/* The programs other than pushbroom. */
extern const struct pb_help_page pb_help_pushbroomd, pb_help_notify;

/* "usage: <program> <name> <arguments>", summary, options, text, example; 80 columns. program NULL:
 * the page is of a program. */
void pb_help_print(const struct pb_help_page *page, const char *program, FILE *out);
#endif
