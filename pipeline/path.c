/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int pb_path_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : -errno;
    (void)close(fd);
    return rc;
}

static int sync_parent(const char *path)
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return pb_path_sync(".");
    int n = slash == path ? 1 : (int)(slash - path);
    (void)snprintf(parent, sizeof parent, "%.*s", n, path);
    int rc = pb_path_sync(parent);
    return rc == -EACCES ? 0 : rc; /* may be written in, but not read */
}

int pb_path_make(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0)
        return -ENOENT;
    if (n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (char *end = part + 1;; end++) {
        char was = *end;
        if (was != '/' && was != '\0')
            continue;
        *end = '\0';
        int rc = mkdir(part, 0755) == 0 ? sync_parent(part) : -errno;
        if (rc < 0 && rc != -EEXIST)
            return rc;
        *end = was;
        if (was == '\0')
            return 0;
    }
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    (void)remove(path); /* what stays does not keep the rest */
    return 0;
}

void pb_path_remove(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
