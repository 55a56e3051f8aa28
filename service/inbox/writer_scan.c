/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/inbox/writer_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct target {
    unsigned major, minor;
    uint64_t inode;
};

/* Uses cached attributes, which are sufficient, so that the call does not wait for storage that
 * hangs. */
static bool identify(int at, const char *name, struct target *out)
{
    struct statx st;
    int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT | (name[0] == '\0' ? AT_EMPTY_PATH : 0);
    if (statx(at, name, flags, STATX_INO | STATX_TYPE, &st) != 0 || !S_ISREG(st.stx_mode))
        return false;
    *out = (struct target){st.stx_dev_major, st.stx_dev_minor, st.stx_ino};
    return true;
}

static bool is_for_writing(int process, const char *number)
{
    char path[64], text[256];
    unsigned flags = 0;
    (void)snprintf(path, sizeof path, "fdinfo/%.32s", number);
    int fd = openat(process, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "flags:");
    return line != NULL && sscanf(line, "flags: %o", &flags) == 1 &&
           (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
}

static bool writes(int process, int descriptors, const char *number, const struct target *file)
{
    struct target open_file;
    return number[0] != '.' && identify(descriptors, number, &open_file) &&
           open_file.inode == file->inode && open_file.major == file->major &&
           open_file.minor == file->minor && is_for_writing(process, number);
}

/* Returns 1 if the process writes the file; 0 if it does not, or is gone; -EPERM if it may not be
 * examined. */
static int look_at(int proc, const char *pid, const struct target *file)
{
    int process = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = process < 0 ? -1 : openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int found = 0;
    for (const struct dirent *e; dir != NULL && found == 0 && (e = readdir(dir)) != NULL;)
        found = writes(process, dirfd(dir), e->d_name, file);
    if (dir != NULL)
        (void)closedir(dir);
    else if (fd >= 0)
        (void)close(fd);
    if (process >= 0)
        (void)close(process);
    return fd < 0 && (error == EACCES || error == EPERM) ? -EPERM : found;
}

int pb_writer_scan(int fd)
{
    struct target file;
    char self[32];
    int result = 0;
    if (!identify(fd, "", &file))
        return -EINVAL;
    (void)snprintf(self, sizeof self, "%ld", (long)getpid());
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return -errno;
    for (const struct dirent *e; result <= 0 && (e = readdir(proc)) != NULL;) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9' || strcmp(e->d_name, self) == 0)
            continue;
        int rc = look_at(dirfd(proc), e->d_name, &file);
        if (rc == 1)
            result = atoi(e->d_name);
        else if (rc < 0)
            result = rc;
    }
    (void)closedir(proc);
    return result;
}
