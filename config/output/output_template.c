/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/output/output_template.h"

#include <stdio.h>
#include <string.h>

static bool add_char(struct pb_template_parts *p, size_t *length, char c)
{
    if (*length + 2 >= PB_TEMPLATE_PART_BYTES)
        return false;
    p->text[p->n - 1][(*length)++] = c;
    p->text[p->n - 1][*length] = '\0';
    return true;
}

/* Ends the component, inside a placeholder ("{key:...") by closing and opening it anew. */
static bool next_part(struct pb_template_parts *p, size_t *length, const char *open,
                      size_t open_bytes)
{
    if ((open != NULL && !add_char(p, length, '}')) || p->n == PB_OUTPUT_PARTS_MAX)
        return false;
    p->text[p->n++][0] = '\0';
    *length = 0;
    bool good = true;
    for (size_t i = 0; open != NULL && i < open_bytes && good; i++)
        good = add_char(p, length, open[i]);
    return good;
}

/* False: too long, or too many components. */
bool pb_template_split(const char *text, struct pb_template_parts *p)
{
    const char *open = NULL; /* the '{' of the placeholder that c is in */
    size_t length = 0;
    p->n = 1;
    p->text[0][0] = '\0';
    for (const char *c = text; *c != '\0'; c++) {
        const char *colon = open ? memchr(open, ':', (size_t)(c - open)) : NULL;
        if (*c == '/' && (open == NULL || colon != NULL)) {
            if (!next_part(p, &length, open, colon ? (size_t)(colon - open) + 1 : 0))
                return false;
            continue;
        }
        if (!add_char(p, &length, *c))
            return false;
        open = *c == '{' ? c : *c == '}' ? NULL : open;
    }
    return true;
}

/* Reads the placeholder at *at and moves it behind; false: it is none. */
static bool read_placeholder(const char **at, struct pb_template_placeholder *out)
{
    const char *end = strchr(*at, '}'), *begin = *at + 1;
    if (end == NULL)
        return false;
    const char *colon = memchr(begin, ':', (size_t)(end - begin));
    size_t key = (size_t)((colon ? colon : end) - begin);
    size_t format = colon ? (size_t)(end - colon) - 1 : 0;
    if (key >= sizeof out->key || format >= sizeof out->format)
        return false;
    (void)snprintf(out->key, sizeof out->key, "%.*s", (int)key, begin);
    (void)snprintf(out->format, sizeof out->format, "%.*s", (int)format, colon ? colon + 1 : "");
    *at = end + 1;
    return memchr(out->key, '{', key) == NULL;
}

bool pb_template_next(const char **at, struct pb_template_piece *out)
{
    out->is_placeholder = **at == '{';
    if (out->is_placeholder)
        return read_placeholder(at, &out->placeholder);
    out->letter = *(*at)++;
    return out->letter != '}';
}
