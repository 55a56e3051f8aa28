/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/file_identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static char expected[PB_FILE_IDENTITY_BYTES]; /* "" = any */

void pb_file_identity_print(const struct stat *st, char out[PB_FILE_IDENTITY_BYTES])
{
    (void)snprintf(out, PB_FILE_IDENTITY_BYTES, "%ju %ju %jd %" PRId64, (uintmax_t)st->st_dev,
                   (uintmax_t)st->st_ino, (intmax_t)st->st_size,
                   (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
}

void pb_file_identity_expect(const char *identity)
{
    (void)snprintf(expected, sizeof expected, "%s", identity ? identity : "");
}

bool pb_file_identity_is_expected(const struct stat *st)
{
    char is[PB_FILE_IDENTITY_BYTES];
    if (expected[0] == '\0')
        return true;
    pb_file_identity_print(st, is);
    return strcmp(is, expected) == 0;
}
