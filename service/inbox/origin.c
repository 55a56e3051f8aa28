/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/origin.h"

#include "service/inbox/companion.h"

#include <errno.h>
#include <unistd.h>

static const char LINK[] = ".from";

int pb_origin_write(const char *claim, const char *from)
{
    char link[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(link, claim, LINK);
    return rc ? rc : symlink(from, link) == 0 ? 0 : -errno;
}

int pb_origin_read(const char *claim, char out_from[PB_FILES_PATH_BYTES])
{
    char link[PB_FILES_PATH_BYTES];
    int rc = pb_files_join(link, claim, LINK);
    ssize_t n = rc == 0 ? readlink(link, out_from, PB_FILES_PATH_BYTES) : -1;
    if (n < 0 || n == PB_FILES_PATH_BYTES)
        return rc ? rc : n < 0 ? -errno : -ENAMETOOLONG;
    out_from[n] = '\0';
    return 0;
}

void pb_origin_end(const char *claim)
{
    char link[PB_FILES_PATH_BYTES];
    pb_companion_end(claim);
    if (rmdir(claim) == 0 || errno != ENOTEMPTY || pb_files_join(link, claim, LINK) != 0)
        return;
    char from[PB_FILES_PATH_BYTES];
    int rc = pb_origin_read(claim, from);
    if (rc != 0 || unlink(link) != 0)
        return;
    if (rmdir(claim) != 0 && errno == ENOTEMPTY)
        (void)symlink(from, link); /* another entry has that name */
}
