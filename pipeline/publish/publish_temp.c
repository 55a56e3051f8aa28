/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish/publish_temp.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/publish/manifest.h"
#include "pipeline/io/path.h"
#include "pipeline/product/product.h"
#include "pipeline/publish/publish.h"
#include "pipeline/publish/publish_parents.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_TRIES      1000
#define LOCK_MS_MAX     2000
#define SHOWN_BYTES     180 /* of the scene in the temporary name */
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* --- making ----------------------------------------------------------------------------------*/

/* A concurrent sweep holds the lock while it reads the manifest. */
static int lock_soon(int fd)
{
    for (int ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ms++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (ms >= LOCK_MS_MAX)
            return -EAGAIN;
        (void)usleep(1000);
    }
    return 0;
}

/* Opens and locks a directory just made. -EAGAIN: another process has locked or removed it. */
static int lock_made(int products_fd, const char *name, int *out_fd)
{
    struct stat ours, there;
    int fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    int rc = lock_soon(fd);
    if (rc == 0 &&
        (fstat(fd, &ours) != 0 || fstatat(products_fd, name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
         ours.st_ino != there.st_ino))
        rc = -EAGAIN;
    if (rc == 0) {
        *out_fd = fd;
        return 0;
    }
    (void)unlinkat(products_fd, name, AT_REMOVEDIR); /* just made, and empty */
    (void)close(fd);
    return rc;
}

int pb_publish_temp_make(int products_fd, const char *shown, const char *scene, struct pb_err *err,
                         char out_name[256], int *out_fd)
{
    static _Atomic unsigned serial;
    int rc = -EEXIST;
    /* The scene is for people only, so a long one is cut, but not in the middle of a character. */
    int bytes = (int)strnlen(scene, SHOWN_BYTES);
    while (bytes == SHOWN_BYTES && ((unsigned char)scene[bytes] & 0xc0) == 0x80)
        bytes--;
    for (int i = 0; i < TEMP_TRIES; i++) {
        (void)snprintf(out_name, 256, ".%.*s.%ld-%u.tmp", bytes, scene, (long)getpid(),
                       atomic_fetch_add(&serial, 1));
        rc = mkdirat(products_fd, out_name, 0755) == 0 ? lock_made(products_fd, out_name, out_fd)
                                                       : -errno;
        if (rc == 0)
            return 0;
        if (rc != -EEXIST && rc != -EAGAIN)
            break;
    }
    return pb_io_fail(err, -rc, "cannot create a temporary directory in", shown);
}

/* --- removing --------------------------------------------------------------------------------*/

/* A stream over an open directory that is independent of its descriptor. */
static DIR *entries_of(int fd)
{
    int own = openat(fd, ".", DIRECTORY_FLAGS);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    if (dir == NULL && own >= 0)
        (void)close(own);
    return dir;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool holds_manifest_only(int fd)
{
    bool only = true;
    DIR *dir = entries_of(fd);
    if (dir == NULL)
        return false;
    for (const struct dirent *e; only && (e = readdir(dir)) != NULL;)
        only = is_dots(e->d_name) || strcmp(e->d_name, PB_MANIFEST_FILE) == 0;
    (void)closedir(dir);
    return only;
}

/* Removes a directory that holds nothing but its manifest. The manifest goes last: while anything
 * else is there, it says what that is. */
static bool remove_emptied(int at, const char *name, int fd)
{
    if (!holds_manifest_only(fd))
        return false;
    (void)unlinkat(fd, PB_MANIFEST_FILE, 0);
    return unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* With a manifest: the files that it names. Without: the directory was not complete, so all in it
 * was written by the run that made the temporary directory. */
static bool remove_products(int at, const char *name)
{
    struct pb_manifest m = {0};
    int fd = openat(at, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT || pb_path_remove_at(at, name) == 0;
    int rc = pb_manifest_read(fd, &m);
    bool gone = false;
    if (rc == 0) {
        for (size_t i = 0; i < m.n_files; i++)
            (void)unlinkat(fd, m.file[i].file, 0);
        gone = remove_emptied(at, name, fd);
    } else if (rc == -ENOENT || rc == -EINVAL) {
        gone = pb_path_remove_at(at, name) == 0;
    }
    pb_manifest_fini(&m);
    (void)close(fd);
    return gone;
}

static bool has_manifest(int at, const char *name)
{
    struct pb_manifest m = {0};
    int fd = openat(at, name, DIRECTORY_FLAGS);
    bool found = fd >= 0 && pb_manifest_read(fd, &m) == 0;
    pb_manifest_fini(&m);
    if (fd >= 0)
        (void)close(fd);
    return found;
}

/* A crash between two renames: the older products go back to their place, unless newer ones are
 * there. What else lies there is not ours, and the older ones wait. */
static void put_back_old(int products_fd, int temp_fd)
{
    struct pb_manifest m = {0};
    int old = openat(temp_fd, PB_PUBLISH_OLD, DIRECTORY_FLAGS);
    if (old < 0)
        return;
    int rc = pb_manifest_read(old, &m);
    (void)close(old);
    if (rc == 0 && m.path[0] == '\0')
        (void)snprintf(m.path, sizeof m.path, "%s/%s", m.scene, m.pipeline);
    char *slash = strrchr(m.path, '/'), *name = slash ? slash + 1 : m.path;
    if (slash != NULL)
        *slash = '\0';
    int scene = -1;
    if (rc == 0 && m.pipeline[0] != '\0')
        scene = pb_publish_parents(products_fd, slash ? m.path : "", false, 0);
    /* Onto a directory with anything in it the rename fails. */
    if (scene >= 0 && renameat(temp_fd, PB_PUBLISH_OLD, scene, name) == 0)
        (void)fsync(scene);
    else if (scene >= 0 && (errno == ENOTEMPTY || errno == EEXIST) && has_manifest(scene, name))
        (void)remove_products(temp_fd, PB_PUBLISH_OLD);
    if (scene >= 0)
        (void)close(scene);
    pb_manifest_fini(&m);
}

bool pb_publish_temp_discard(int products_fd, const char *name)
{
    struct pb_manifest marker = {0};
    int fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return errno == ENOENT;
    bool products = pb_manifest_read(fd, &marker) == 0 && marker.pipeline[0] != '\0';
    pb_manifest_fini(&marker);
    if (products) { /* taken back after a failed sync */
        (void)close(fd);
        return remove_products(products_fd, name);
    }
    put_back_old(products_fd, fd);
    DIR *dir = entries_of(fd);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (!is_dots(e->d_name) && strcmp(e->d_name, PB_MANIFEST_FILE) != 0 &&
            strcmp(e->d_name, PB_PUBLISH_OLD) != 0)
            (void)remove_products(fd, e->d_name);
    if (dir != NULL)
        (void)closedir(dir);
    bool gone = remove_emptied(products_fd, name, fd);
    (void)close(fd);
    return gone;
}

/* --- after a crash ---------------------------------------------------------------------------*/

/* .<scene>.<pid>-<n>.tmp, as make spells it. */
static bool is_temp_name(const char *name)
{
    static const char digits[] = "0123456789";
    size_t n = strlen(name), used;
    if (n < 9 || name[0] != '.' || strcmp(name + n - 4, ".tmp") != 0)
        return false;
    const char *at = name + n - 4;
    while (at > name && at[-1] != '.')
        at--;
    if (at - name < 3 || (used = strspn(at, digits)) == 0 || at[used] != '-')
        return false;
    at += used + 1;
    used = strspn(at, digits);
    return used > 0 && at + used == name + n - 4;
}

/* Killed between mkdir and the first manifest: nothing is in it, or that manifest under the name it
 * is written with. An empty directory may be removed, whichever process made it. */
static bool remove_begun(int products_fd, const char *name, int fd)
{
    struct stat st;
    bool begun = true;
    DIR *dir = entries_of(fd);
    if (dir == NULL)
        return false;
    for (const struct dirent *e; begun && (e = readdir(dir)) != NULL;)
        begun = is_dots(e->d_name) || strcmp(e->d_name, PB_MANIFEST_NEW_FILE) == 0;
    (void)closedir(dir);
    if (begun && fstatat(fd, PB_MANIFEST_NEW_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode))
        (void)unlinkat(fd, PB_MANIFEST_NEW_FILE, 0);
    return begun && unlinkat(products_fd, name, AT_REMOVEDIR) == 0;
}

/* The lock is held meanwhile, so that a process that is making the directory notices. */
static bool sweep_one(int products_fd, const char *name)
{
    struct pb_manifest marker = {0};
    int fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return false;
    int rc = flock(fd, LOCK_EX | LOCK_NB) == 0 ? pb_manifest_read(fd, &marker) : -EBUSY;
    bool gone = rc == 0         ? pb_publish_temp_discard(products_fd, name)
                : rc == -ENOENT ? remove_begun(products_fd, name, fd)
                                : false;
    pb_manifest_fini(&marker);
    (void)close(fd);
    return gone;
}

int pb_publish_sweep(const char *products)
{
    DIR *dir = opendir(products);
    if (dir == NULL)
        return 0;
    int removed = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (is_temp_name(e->d_name))
            removed += sweep_one(dirfd(dir), e->d_name);
    (void)closedir(dir);
    return removed;
}
