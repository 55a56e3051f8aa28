/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COLUMNS 100

static bool reserve(struct pb_text *out, size_t more)
{
    if (out->failed)
        return false;
    if (out->capacity - out->length > more)
        return true;
    size_t capacity = (out->capacity + more) * 2 + 1024;
    char *grown = realloc(out->text, capacity);
    if (grown == NULL) {
        out->failed = true;
        return false;
    }
    out->text = grown;
    out->capacity = capacity;
    return true;
}

void pb_text_add(struct pb_text *out, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        out->failed = true;
    else if (reserve(out, (size_t)length)) {
        (void)vsnprintf(out->text + out->length, (size_t)length + 1, format, again);
        out->length += (size_t)length;
    }
    va_end(again);
}

static bool plain_is_safe(const char *value)
{
    static const char *const taken[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-./";
    if (value[0] == '\0' || (!strchr(letters, value[0]) && value[0] != '/' && value[0] != '_'))
        return false;
    if (strspn(value, inside) != strlen(value))
        return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        /* A band may well be called N: one letter stays plain, it is only ever read as text. */
        if (value[1] != '\0' && strcasecmp(value, taken[i]) == 0)
            return false;
    return true;
}

void pb_text_yaml(struct pb_text *out, const char *value)
{
    if (plain_is_safe(value)) {
        pb_text_add(out, "%s", value);
        return;
    }
    pb_text_add(out, "\"");
    for (const char *c = value; *c; c++) {
        if (*c == '"' || *c == '\\')
            pb_text_add(out, "\\%c", *c);
        else if (*c == '\n' || *c == '\t')
            pb_text_add(out, "\\%c", *c == '\n' ? 'n' : 't');
        else
            pb_text_add(out, "%c", *c);
    }
    pb_text_add(out, "\"");
}

void pb_text_comment(struct pb_text *out, int indent, const char *text)
{
    int at = 0;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (at > 0 && at + 1 + (int)word > COLUMNS) {
            pb_text_add(out, "\n");
            at = 0;
        }
        if (at == 0) {
            pb_text_add(out, "%*s#", indent, "");
            at = indent + 1;
        }
        pb_text_add(out, " %.*s", (int)word, text);
        at += 1 + (int)word;
        text += word;
        text += strspn(text, " ");
    }
    pb_text_add(out, "\n");
}

char *pb_text_take(struct pb_text *out)
{
    char *text = out->text;
    if (out->failed) {
        free(text);
        text = NULL;
    }
    memset(out, 0, sizeof *out);
    return text;
}
