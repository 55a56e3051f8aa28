/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_MAN_H
#define PB_MAN_H
/* Manual pages (man macros of roff), made from the tables of help.h and of the configuration's
 * keys. One thread. */
#include "service/help/help.h"

struct pb_product_kinds;

/* Program with commands; groups[i]: the heading before command i, or NULL. */
struct pb_man_commands {
    const struct pb_help_page *const *pages;
    const char *const *groups;
    size_t n;
};

void pb_man_errors(FILE *out);                                           /* (7) */
void pb_man_program(const struct pb_help_page *page, FILE *out);         /* (8) */
void pb_man_commands(const struct pb_man_commands *commands, FILE *out); /* pushbroom(1) */
void pb_man_config(const struct pb_product_kinds *kinds, FILE *out);     /* (5) */
#endif
