/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/patterns.h"

#include "config/installed.h"
#include "wic/pattern/plugin.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pb_pattern_directory(char *out, size_t out_bytes)
{
    return pb_installed(PB_PATTERNS_FROM_PROGRAM, out, out_bytes);
}

static bool has_name(char (*names)[WIC_PATTERN_NAME_MAX], size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

size_t pb_pattern_names(char (*names)[WIC_PATTERN_NAME_MAX])
{
    char directory[PATH_MAX + 64], files[WIC_PATTERNS_MAX][WIC_PATTERN_NAME_MAX];
    size_t n = 0, n_files = 0;
    for (const struct wic_pattern *p; n < WIC_PATTERNS_MAX && (p = wic_pattern_at(n)) != NULL; n++)
        (void)snprintf(names[n], WIC_PATTERN_NAME_MAX, "%s", p->name);
    (void)wic_plugin_names(pb_pattern_directory(directory, sizeof directory), files,
                           WIC_PATTERNS_MAX, &n_files);
    for (size_t i = 0; i < n_files && n < WIC_PATTERNS_MAX; i++)
        if (!has_name(names, n, files[i]))
            memcpy(names[n++], files[i], WIC_PATTERN_NAME_MAX);
    return n;
}

int pb_pattern_find(const char *name, const struct wic_pattern **out_pattern, char *text,
                    size_t text_bytes)
{
    char directory[PATH_MAX + 64], names[WIC_PATTERNS_MAX][WIC_PATTERN_NAME_MAX];
    const struct wic_pattern *known = wic_pattern_find(name);
    if (known != NULL) {
        *out_pattern = known;
        return 0;
    }
    if (!has_name(names, pb_pattern_names(names), name)) {
        (void)snprintf(text, text_bytes, "there is no pattern '%.80s' in %s", name,
                       pb_pattern_directory(directory, sizeof directory));
        return -ENOENT;
    }
    return wic_plugin_load(pb_pattern_directory(directory, sizeof directory), name, out_pattern,
                           text, text_bytes);
}
