/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/file_identity.h"

#include "config/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static char expected[PB_FILE_IDENTITY_BYTES]; /* "" = any */

void pb_file_identity_print(const struct stat *st, char out[PB_FILE_IDENTITY_BYTES])
{
    (void)snprintf(out, PB_FILE_IDENTITY_BYTES, "%ju %ju %jd %" PRId64 " %" PRId64,
                   (uintmax_t)st->st_dev, (uintmax_t)st->st_ino, (intmax_t)st->st_size,
                   pb_clock_ns(&st->st_mtim), pb_clock_ns(&st->st_ctim));
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
    /* A text stored by an earlier version ends before the ctime. */
    size_t n = strlen(expected);
    return strncmp(is, expected, n) == 0 && (is[n] == '\0' || is[n] == ' ');
}
