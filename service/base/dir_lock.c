/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/dir_lock.h"

#include "config/base/clock.h"
#include "service/base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static bool try_lock(void *user)
{
    return flock(*(int *)user, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

static int open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Opens the file to lock, or the directory if the disk accepts no file. A pipe or another file
 * with that name does not block it. */
static int open_to_lock(const char *directory, const char *path, bool *out_is_file,
                        struct pb_err *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    int error = errno;
    *out_is_file = fd >= 0;
    if (fd < 0 && (error == ENOSPC || error == EDQUOT || error == EROFS))
        fd = open_directory(directory);
    else if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            (void)close(fd);
        (void)pb_fail(err, PB_E_SERVICE_STATE, "cannot open %s: %s; it must be a plain file", path,
                      fd >= 0 ? "not one" : strerror(error));
        return -1;
    } else if ((st.st_mode & 077) != 0) {
        (void)fchmod(fd, 0600);
    }
    if (fd < 0)
        (void)pb_fail(err, PB_E_SERVICE_STATE, "cannot open %s: %s", directory, strerror(errno));
    return fd;
}

int pb_dir_lock(const char *directory, const char *file, struct pb_err *err, int *out_fd)
{
    char path[PB_FILES_PATH_BYTES], owner[32] = "";
    bool is_file = false;
    if (pb_files_join(path, directory, file) != 0)
        return pb_fail(err, PB_E_CONFIG_VALUE, "the path %s is too long", directory);
    int fd = open_to_lock(directory, path, &is_file, err);
    if (fd < 0)
        return pb_code_errno(PB_E_SERVICE_STATE);
    (void)pb_clock_retry(PB_DIRS_PATIENCE_MS, try_lock, &fd);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        ssize_t n = is_file ? read(fd, owner, sizeof owner - 1) : 0;
        owner[n > 0 ? strcspn(owner, "\n") : 0] = '\0';
        (void)close(fd);
        if (error != EWOULDBLOCK)
            return pb_fail(err, PB_E_SERVICE_STATE, "cannot lock %s: %s", path, strerror(error));
        return pb_fail(err, PB_E_SYSTEM,
                       "another pushbroomd (pid %s) works on %s; stop it, or give this one its own "
                       "directories",
                       owner[0] ? owner : "?", directory);
    }
    int n = snprintf(owner, sizeof owner, "%d\n", (int)getpid());
    /* The pid is informative; writing it may fail on a full disk. */
    if (is_file && ftruncate(fd, 0) == 0 && pwrite(fd, owner, (size_t)n, 0) != n)
        (void)ftruncate(fd, 0);
    *out_fd = fd;
    return 0;
}

bool pb_dir_lock_try(const char *directory, int *out_fd)
{
    int fd = open_directory(directory);
    *out_fd = -1;
    if (fd < 0)
        return true;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
        *out_fd = fd;
        return true;
    }
    (void)close(fd);
    return false;
}
