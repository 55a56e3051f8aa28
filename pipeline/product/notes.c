/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/product/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pb_notes_add(struct pb_notes *notes, const char *format, ...)
{
    char text[PB_NOTE_BYTES];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (size_t i = 0; i < notes->n; i++)
        if (strcmp(notes->text[i], text) == 0)
            return;
    if (notes->n < PB_NOTES_MAX)
        memcpy(notes->text[notes->n++], text, sizeof text);
}
