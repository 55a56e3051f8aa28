/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
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

DIR *pb_path_entries(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0) {
        int failed = errno;
        (void)close(fd);
        errno = failed;
    }
    return dir;
}

bool pb_path_is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

void pb_path_parent(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        (void)snprintf(out, PATH_MAX, ".");
    else
        (void)snprintf(out, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

static int sync_parent(const char *path)
{
    char parent[PATH_MAX];
    pb_path_parent(path, parent);
    int rc = pb_path_sync(parent);
    return rc == -EACCES ? 0 : rc; /* the directory is writable, but not readable */
}

const char *pb_path_below(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
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

/* --- removing --------------------------------------------------------------------------------*/

#define DEPTH_MAX 64

/* Number of the mount of an open directory; 0 = unknown to the kernel. */
static uint64_t mount_of(int fd)
{
    struct statx st;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0 || (st.stx_mask & STATX_MNT_ID) == 0)
        return 0;
    return st.stx_mnt_id;
}

int pb_path_open_at(int directory, const char *name)
{
    struct stat above, below;
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (directory == AT_FDCWD)
        return fd;
    if (fstat(directory, &above) == 0 && fstat(fd, &below) == 0 && above.st_dev == below.st_dev &&
        mount_of(directory) == mount_of(fd))
        return fd;
    (void)close(fd);
    return -EXDEV;
}

static int remove_below(int directory, const char *name, int depth)
{
    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (unlinkat(directory, name, AT_REMOVEDIR) == 0)
        return 0;
    if ((errno != ENOTEMPTY && errno != EEXIST) || depth == 0)
        return -errno;
    int fd = pb_path_open_at(directory, name);
    if (fd < 0)
        return fd;
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        (void)close(fd);
        return -ENOMEM;
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (!pb_path_is_dots(e->d_name))
            (void)remove_below(fd, e->d_name,
                               depth - 1); /* continues after an entry that cannot be removed */
    (void)closedir(dir);
    return unlinkat(directory, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

int pb_path_remove_at(int directory, const char *name)
{
    return remove_below(directory, name, DEPTH_MAX);
}
