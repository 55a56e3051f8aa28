/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "config/base/archive_name.h"

#include <string.h>
#include <strings.h>

size_t pb_archive_name_stem(const char *path)
{
    static const char *const suffixes[] = {".zip",  ".tar",     ".tar.gz", ".tgz",    ".tar.bz2",
                                           ".tbz2", ".tar.zst", ".tzst",   ".tar.xz", ".txz"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t m = strlen(suffixes[i]);
        if (n > m && path[n - m - 1] != '/' && strcasecmp(path + n - m, suffixes[i]) == 0)
            return n - m;
    }
    return 0;
}
