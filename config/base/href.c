/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/href.h"

#include <stdbool.h>
#include <string.h>

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

static size_t escape(const char *text, bool keeps_slashes, char *out, size_t bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *text != '\0'; text++) {
        const bool is_plain = is_unreserved(*text) || (keeps_slashes && *text == '/');
        if (n + (is_plain ? 1 : 3) >= bytes)
            break;
        if (is_plain) {
            out[n++] = *text;
        } else {
            out[n++] = '%';
            out[n++] = hex[(unsigned char)*text >> 4];
            out[n++] = hex[(unsigned char)*text & 15];
        }
    }
    out[n] = '\0';
    return n;
}

size_t pb_href_part(const char *part, char *out, size_t bytes)
{
    return escape(part, false, out, bytes);
}

size_t pb_href_path(const char *path, char *out, size_t bytes)
{
    return escape(path, true, out, bytes);
}
