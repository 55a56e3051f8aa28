/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_mode.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int set_mode(int directory, const char *name, unsigned mode)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 || fchmod(fd, mode) != 0 || fsync(fd) != 0 ? -errno : 0;
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

unsigned pb_publish_search_mode(unsigned mode)
{
    return mode | ((mode & 0444u) >> 2);
}

int pb_publish_set_modes(int temp_fd, int fd, const struct pb_manifest *m, unsigned mode)
{
    unsigned search = pb_publish_search_mode(mode);
    if (mode == 0)
        return 0;
    int rc = 0;
    for (size_t i = 0; i < m->n_files && rc == 0; i++)
        rc = set_mode(fd, m->file[i].file, mode);
    rc = rc ? rc : set_mode(fd, PB_MANIFEST_FILE, mode); /* last: pb_manifest_is_changed */
    rc = rc ? rc : set_mode(temp_fd, PB_MANIFEST_FILE, mode);
    if (rc == 0 && (fchmod(fd, search) != 0 || fchmod(temp_fd, search) != 0))
        rc = -errno;
    return rc;
}
