/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Space is reserved for files of a usual size only: a huge one would block the space of all other
 * writers while it is computed. */
#include "pipeline/io/file_room.h"
#include "pipeline/io/io_fail.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

#define RESERVE_MAX_BYTES (UINT64_C(16) << 30)

int pb_file_room(int fd, const char *path, uint64_t bytes, struct pb_err *err)
{
    struct statvfs disk;
    if (bytes == 0 || fstatvfs(fd, &disk) != 0 || disk.f_blocks == 0)
        return 0;
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t all = (uint64_t)disk.f_blocks * disk.f_frsize;
    if (bytes > all)
        return pb_fail(
            err, PB_E_PIPELINE_PRODUCT,
            "'%s' would have %llu bytes, and the whole file system has %llu; compress it, "
            "or put the products on a larger one",
            path, (unsigned long long)bytes, (unsigned long long)all);
    if (bytes > room)
        return pb_fail(err, PB_E_OUTPUT_FULL, "'%s' will have %llu bytes, but only %llu are free",
                       path, (unsigned long long)bytes, (unsigned long long)room);
    if (bytes > RESERVE_MAX_BYTES || bytes > room / 4)
        return 0;
    /* Not posix_fallocate: on file systems without support it would write zeros. */
    if (fallocate(fd, 0, 0, (off_t)bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return pb_io_fail(err, errno, "cannot reserve the space of", path);
    return 0;
}
