/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/base/files.h"
#include "config/base/base_name.h"

#include "pipeline/io/file_name.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SAME_NAMES_MAX 100000

int pb_files_join(char out[PB_FILES_PATH_BYTES], const char *directory, const char *name)
{
    int n = snprintf(out, PB_FILES_PATH_BYTES, "%s/%s", directory, name);
    return n < 0 || n >= PB_FILES_PATH_BYTES ? -ENAMETOOLONG : 0;
}

int pb_files_check_directory(const char *path, const char *what, struct pb_err *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return pb_fail(err, PB_E_SYSTEM, "%s directory %s: %s", what, path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return pb_fail(err, PB_E_SYSTEM, "%s %s is not a directory; move what is there away", what,
                       path);
    if (access(path, R_OK | W_OK | X_OK) != 0)
        return pb_fail(err, PB_E_SYSTEM,
                       "%s directory %s: %s; give user id %d read, write and search permission",
                       what, path, strerror(errno), (int)geteuid());
    return 0;
}

int pb_files_make_directory(const char *path, const char *what, struct pb_err *err)
{
    char part[PB_FILES_PATH_BYTES];
    if (path == NULL || *path == '\0')
        return pb_fail(err, PB_E_CONFIG_VALUE, "the %s directory has no path", what);
    if ((size_t)snprintf(part, sizeof part, "%s", path) >= sizeof part)
        return pb_fail(err, PB_E_CONFIG_VALUE, "the path of the %s directory is too long", what);
    for (char *c = part + 1;; c++) {
        char was = *c;
        if (was != '/' && was != '\0')
            continue;
        *c = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST && errno != EROFS && errno != EISDIR &&
            errno != EACCES)
            return pb_fail(err, PB_E_SYSTEM, "cannot create %s directory %s at %s: %s", what, path,
                           part, strerror(errno));
        if (access(part, F_OK) != 0)
            return pb_fail(err, PB_E_SYSTEM,
                           "cannot create %s directory %s at %s: %s; create it for user id %d",
                           what, path, part, strerror(errno == ENOENT ? EACCES : errno),
                           (int)geteuid());
        *c = was;
        if (was == '\0')
            return pb_files_check_directory(path, what, err);
    }
}

static void parent_of(const char *path, char out[PB_FILES_PATH_BYTES])
{
    (void)snprintf(out, PB_FILES_PATH_BYTES, "%s", path);
    char *slash = strrchr(out, '/');
    if (slash == NULL)
        (void)snprintf(out, PB_FILES_PATH_BYTES, ".");
    else
        slash[slash == out] = '\0';
}

static int fail_with(int error)
{
    errno = error;
    return -error;
}

/* Creates an empty file with the name, and replaces only that file. */
static int rename_over_empty(const char *from, const char *to)
{
    struct stat ours, there;
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = fstat(fd, &ours) == 0 && lstat(to, &there) == 0 ? 0 : errno;
    (void)close(fd);
    if (error == 0 && (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev))
        return fail_with(EEXIST);
    if (error == 0 && rename(from, to) == 0)
        return 0;
    error = error ? error : errno;
    (void)unlink(to);
    return fail_with(error);
}

bool pb_files_is_local_type(uint32_t type)
{
    switch (type) {
    case BTRFS_SUPER_MAGIC:
    case EXT4_SUPER_MAGIC: /* ext2 and ext3, too */
    case F2FS_SUPER_MAGIC:
    case MSDOS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC: /* only it changes its layers */
    case RAMFS_MAGIC:
    case TMPFS_MAGIC:
    case XFS_SUPER_MAGIC:
    case 0x2011bab0: /* exFAT */
    case 0x2fc12fc1: /* ZFS */
    case 0x3153464a: /* JFS */
    case 0x7366746e: /* NTFS, by ntfs3 */
    case 0xca451a4e: /* bcachefs */
        return true;
    default:
        return false;
    }
}

int pb_files_open_below(const char *root, const char *path)
{
    char part[256];
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && *path != '\0') {
        size_t n = strcspn(path, "/");
        int parent = fd;
        (void)snprintf(part, sizeof part, "%.*s", (int)n, path);
        bool leaves = n >= sizeof part || strcmp(part, "..") == 0;
        fd = leaves ? -1 : openat(parent, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int error = leaves ? ELOOP : errno;
        (void)close(parent);
        errno = error;
        path += n + strspn(path + n, "/");
    }
    return fd >= 0 ? fd : -errno;
}

int pb_files_rename_new(const char *from, const char *to, enum pb_files_rename how)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -errno;
    if (link(from, to) == 0) {
        if (unlink(from) == 0)
            return 0;
        int error = errno;
        (void)unlink(to);
        return fail_with(error);
    }
    bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
    if (!no_links || how == PB_FILES_LINK_ONLY)
        return -errno;
    return rename_over_empty(from, to);
}

int pb_files_move(const char *from, const char *directory, const char *name,
                  char out_path[PB_FILES_PATH_BYTES], struct pb_err *err)
{
    char to[PB_FILES_PATH_BYTES], numbered[300], parent[PB_FILES_PATH_BYTES];
    for (int i = 0; i < SAME_NAMES_MAX; i++) {
        if (i == 0)
            (void)snprintf(numbered, sizeof numbered, "%s", name);
        else
            (void)snprintf(numbered, sizeof numbered, "%.*s.%d", PB_FILE_NAME_BYTES_MAX + 40, name,
                           i);
        if (pb_files_join(to, directory, numbered) != 0)
            return pb_fail(err, PB_E_SYSTEM, "path too long: %s/%s", directory, numbered);
        if (pb_files_rename_new(from, to, PB_FILES_ANY_WAY) == 0) {
            parent_of(from, parent);
            (void)pb_path_sync(directory);
            (void)pb_path_sync(parent);
            (void)memcpy(out_path, to, sizeof to);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    int rc = -errno;
    (void)pb_fail(err, PB_E_SYSTEM, "cannot move %s to %s: %s%s", from, directory, strerror(-rc),
                  rc == -EXDEV ? "; both must be on one filesystem and one mount" : "");
    return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path) == 0 ? 0 : -errno;
}

int pb_files_remove(const char *path)
{
    int rc = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc < 0 && rc != -1 ? rc : rc == -1 ? -errno : 0;
}

int pb_files_write(const char *path, const char *text, size_t bytes, struct pb_err *err)
{
    char temporary[PB_FILES_PATH_BYTES], parent[PB_FILES_PATH_BYTES];
    parent_of(path, parent);
    int n = snprintf(temporary, sizeof temporary, "%s/.%s.tmp", parent, pb_base_name(path));
    if (n < 0 || (size_t)n >= sizeof temporary)
        return pb_fail(err, PB_E_SYSTEM, "path too long: %s", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return pb_fail(err, PB_E_SYSTEM, "cannot create %s: %s", temporary, strerror(errno));
    int rc = 0;
    for (size_t done = 0; done < bytes && rc == 0;) {
        ssize_t step = write(fd, text + done, bytes - done);
        if (step >= 0)
            done += (size_t)step;
        else if (errno != EINTR)
            rc = -errno;
    }
    if (rc == 0 && fsync(fd) != 0)
        rc = -errno;
    (void)close(fd);
    if (rc == 0 && rename(temporary, path) != 0)
        rc = -errno;
    if (rc != 0)
        (void)unlink(temporary);
    rc = rc ? rc : pb_path_sync(parent);
    if (rc != 0)
        (void)pb_fail(err, PB_E_SYSTEM, "cannot write %s: %s", path, strerror(-rc));
    return rc;
}

int pb_files_check_space(const char *directory, uint64_t bytes, struct pb_err *err)
{
    struct statvfs st;
    if (bytes == 0)
        return 0;
    if (statvfs(directory, &st) != 0)
        return pb_fail(err, PB_E_SYSTEM, "%s: %s", directory, strerror(errno));
    uint64_t available = (uint64_t)st.f_bavail * st.f_frsize;
    if (available >= bytes)
        return 0;
    return pb_fail(err, PB_E_SERVICE_SPACE,
                   "%.1f GiB are free below %s, and service.retention.min_free wants %.1f GiB",
                   (double)available / 1073741824.0, directory, (double)bytes / 1073741824.0);
}
