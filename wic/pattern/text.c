/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * One function, so that a failure is one statement: `return wic_fail(...)`. */
#include "wic/pattern/text.h"

#include <stdarg.h>
#include <stdio.h>

int wic_fail(int rc, char *text, size_t text_bytes, const char *format, ...)
{
    if (text != NULL && text_bytes > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(text, text_bytes, format, args);
        va_end(args);
    }
    return rc;
}
