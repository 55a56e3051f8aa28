/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lists the plugins of a directory by their file names; loads nothing. */
#include "wic/pattern/plugin.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The name of the pattern that the file would have; 0: no plugin's file name. */
static size_t name_length(const char *file)
{
    size_t length = strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length < WIC_PATTERN_NAME_MAX && strcmp(file + length, ".so") == 0 ? length : 0;
}

int wic_plugin_names(const char *directory, char (*names)[WIC_PATTERN_NAME_MAX], size_t max,
                     size_t *out_count)
{
    size_t count = 0;
    DIR *folder = opendir(directory);
    if (folder == NULL) {
        return -errno;
    }
    for (const struct dirent *entry; count < max && (entry = readdir(folder)) != NULL;) {
        size_t length = name_length(entry->d_name);
        if (length > 0) {
            memcpy(names[count], entry->d_name, length);
            names[count++][length] = '\0';
        }
    }
    closedir(folder);
    qsort(names, count, sizeof(names[0]), compare);
    *out_count = count;
    return 0;
}
