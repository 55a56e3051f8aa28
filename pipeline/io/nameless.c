/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/nameless.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PREFIX[] = ".spool.";

int pb_nameless_open(const char *directory)
{
    char path[4096];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd >= 0 ? fd : -errno;
    if (snprintf(path, sizeof path, "%s/%sXXXXXX", directory, PREFIX) >= (int)sizeof path)
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    int error = errno;
    if (fd >= 0)
        (void)unlink(path);
    return fd >= 0 ? fd : -error;
}

static bool is_left_behind(int directory, const char *name)
{
    struct stat st;
    size_t n = strlen(PREFIX);
    return strncmp(name, PREFIX, n) == 0 && strlen(name) == n + 6 &&
           fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_nlink == 1 && st.st_uid == geteuid();
}

int pb_nameless_sweep(const char *directory)
{
    DIR *dir = opendir(directory);
    int n = 0;
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (is_left_behind(dirfd(dir), e->d_name))
            n += unlinkat(dirfd(dir), e->d_name, 0) == 0;
    if (dir != NULL)
        (void)closedir(dir);
    return n;
}
