/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEXT_H
#define PB_TEXT_H
/* A growing text; running out of memory sticks and shows at the end. One thread. */
#include <stdbool.h>
#include <stddef.h>

struct pb_text {
    char *text;
    size_t length, capacity;
    bool failed;
};

void pb_text_add(struct pb_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A YAML scalar that reads back as this text: plain when that is safe, else in double quotes. */
void pb_text_yaml(struct pb_text *out, const char *value);
/* A comment: lines of at most 100 columns that start with indent spaces and "# ". */
void pb_text_comment(struct pb_text *out, int indent, const char *text);
/* The text, malloc'd, or NULL when memory ran out; out is empty afterwards. */
char *pb_text_take(struct pb_text *out);
#endif
