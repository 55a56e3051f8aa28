/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/archive/archive_names.h"

#include <string.h>

static bool is_absolute(const char *name)
{
    bool letter = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');
    return name[0] == '/' || name[0] == '\\' || (letter && name[1] == ':');
}

bool pb_archive_member_name(const char *name, int max_depth, char *out, size_t bytes,
                            const char **out_why)
{
    size_t n = 0;
    int depth = 0;
    *out_why = "is empty";
    if (is_absolute(name)) {
        *out_why = "is an absolute path";
        return false;
    }
    for (const char *at = name; *at != '\0';) {
        size_t length = strcspn(at, "/");
        bool dot = length == 1 && at[0] == '.';
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            *out_why = "leads out of the archive (..)";
            return false;
        }
        if (length > 0 && !dot) {
            if (n + length + 2 > bytes || length > 255) {
                *out_why = "is too long";
                return false;
            }
            if (n > 0)
                out[n++] = '/';
            memcpy(out + n, at, length);
            n += length;
            depth++;
        }
        at += length + (at[length] == '/');
    }
    out[n] = '\0';
    if (depth > max_depth)
        *out_why = "has more folders below each other than limits.archive_depth allows";
    return n > 0 && depth <= max_depth;
}
