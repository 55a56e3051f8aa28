/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_parents.h"

#include "pipeline/publish/publish_move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Makes and syncs a directory. An existing one is synced too: the process that made it may have
 * died before its sync. */
static int make_one(int at, const char *name, unsigned mode)
{
    bool made = mkdirat(at, name, 0755) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    int fd = openat(at, name, DIRECTORY_FLAGS);
    int rc = fd < 0 ? -errno : 0;
    if (rc == 0 && made && mode != 0 && fchmod(fd, mode) != 0)
        rc = -errno;
    if (rc == 0)
        rc = pb_publish_sync(at);
    if (rc < 0 && fd >= 0)
        (void)close(fd);
    return rc < 0 ? rc : fd;
}

int pb_publish_parents(int products_fd, const char *parents, bool make, unsigned mode)
{
    int fd = openat(products_fd, ".", DIRECTORY_FLAGS);
    for (const char *part = parents; fd >= 0 && *part != '\0';) {
        char name[NAME_MAX + 1];
        size_t n = strcspn(part, "/");
        int above = fd;
        if (n >= sizeof name) {
            (void)close(above);
            return -ENAMETOOLONG;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)n, part);
        int rc = make ? make_one(above, name, mode) : openat(above, name, DIRECTORY_FLAGS);
        if (rc < 0 && !make)
            rc = -errno;
        (void)close(above);
        if (rc < 0)
            return rc;
        fd = rc;
        part += n + (part[n] == '/');
    }
    return fd < 0 ? -errno : fd;
}
