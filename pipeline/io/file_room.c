/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Space is reserved only for files of a usual size: a huge one would block the space of all
 * other writers while it is computed. */
#include "pipeline/io/file_room.h"
#include "pipeline/io/io_fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define RESERVE_MAX_BYTES (UINT64_C(16) << 30)

static bool read_disk(int fd, uint64_t *out_room, uint64_t *out_all)
{
    struct statvfs disk;
    if (fstatvfs(fd, &disk) != 0 || disk.f_blocks == 0)
        return false;
    *out_room = (uint64_t)disk.f_bavail * disk.f_frsize;
    *out_all = (uint64_t)disk.f_blocks * disk.f_frsize;
    return true;
}

bool pb_file_room_never(int fd, uint64_t bytes)
{
    uint64_t room, all;
    return read_disk(fd, &room, &all) && bytes / 9 >= all / 10;
}

/* Opens the nearest existing directory at or above the path. */
static int open_existing(const char *directory)
{
    char path[PATH_MAX];
    int fd = -1;
    if (snprintf(path, sizeof path, "%s", directory) >= (int)sizeof path)
        return -1;
    while ((fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (strcmp(path, ".") == 0 || strcmp(path, "/") == 0)
            return -1;
        if (slash == NULL)
            (void)snprintf(path, sizeof path, ".");
        else
            slash[slash == path] = '\0';
    }
    return fd;
}

int pb_file_room_below(const char *directory, uint64_t bytes, struct pb_err *err)
{
    uint64_t room, all;
    const int fd = open_existing(directory);
    const bool known = fd >= 0 && read_disk(fd, &room, &all);
    if (fd >= 0)
        (void)close(fd);
    if (known && bytes > all)
        return pb_fail(err, PB_E_OUTPUT_LIMIT,
                       "the products would have at least %llu bytes, and their whole file system "
                       "has %llu",
                       (unsigned long long)bytes, (unsigned long long)all);
    if (known && bytes > room)
        return pb_fail(
            err, PB_E_OUTPUT_FULL,
            "the products will have at least %llu bytes, but only %llu are free in their directory",
            (unsigned long long)bytes, (unsigned long long)room);
    return 0;
}

int pb_file_room(int fd, const char *path, uint64_t bytes, struct pb_err *err)
{
    uint64_t room, all;
    if (bytes == 0 || !read_disk(fd, &room, &all))
        return 0;
    if (bytes > all)
        return pb_fail(
            err, PB_E_OUTPUT_LIMIT,
            "'%s' would have %llu bytes, and the whole file system has %llu; compress it, "
            "or put the products on a larger one",
            path, (unsigned long long)bytes, (unsigned long long)all);
    if (bytes > room)
        return pb_fail(err, PB_E_OUTPUT_FULL, "'%s' will have %llu bytes, but only %llu are free",
                       path, (unsigned long long)bytes, (unsigned long long)room);
    if (bytes > RESERVE_MAX_BYTES || bytes > room / 4)
        return 0;
    /* posix_fallocate would write zeros on file systems without support. */
    if (fallocate(fd, 0, 0, (off_t)bytes) != 0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return pb_io_fail(err, errno, "cannot reserve the space of", path);
    return 0;
}
