/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish.h"
#include "pipeline/product.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct pb_publish {
    char products[PATH_MAX];
    char final[PATH_MAX];
    char temp[PATH_MAX];
    int lock_fd; /* of temp, flock'd */
    bool made, committed;
};

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int pb_publish_make_path(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return -errno;
        *p = '/';
    }
    return mkdir(part, 0755) != 0 && errno != EEXIST ? -errno : 0;
}

static int fsync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}

/* Locks the directory. -EAGAIN: a sweep that came in between took it for a leftover. */
static int lock_temp(struct pb_publish *p)
{
    struct stat mine, there;
    p->lock_fd = open(p->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->lock_fd < 0)
        return errno == ENOENT ? -EAGAIN : -errno;
    if (flock(p->lock_fd, LOCK_EX) != 0 || fstat(p->lock_fd, &mine) != 0)
        return -errno;
    if (lstat(p->temp, &there) == 0 && there.st_ino == mine.st_ino)
        return 0;
    close(p->lock_fd);
    p->lock_fd = -1;
    return -EAGAIN;
}

static int make_temp(struct pb_publish *p, struct pb_err *err)
{
    int rc;
    do {
        if (mkdir(p->temp, 0755) != 0)
            return pb_product_io_fail(err, errno, "cannot create", p->temp);
        p->made = true;
        rc = lock_temp(p);
    } while (rc == -EAGAIN);
    return rc < 0 ? pb_product_io_fail(err, -rc, "cannot lock", p->temp) : 0;
}

int pb_publish_open(const char *products, const char *scene, struct pb_err *err,
                    struct pb_publish **out_publish)
{
    static _Atomic unsigned serial;
    struct pb_publish *p = calloc(1, sizeof *p);
    if (p == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while opening %s", products);
    p->lock_fd = -1;
    int rc = pb_publish_make_path(products);
    if (rc < 0) {
        rc = pb_product_io_fail(err, -rc, "cannot create", products);
        goto out;
    }
    int n = snprintf(p->products, sizeof p->products, "%s", products);
    int m = snprintf(p->final, sizeof p->final, "%s/%s", products, scene);
    int k = snprintf(p->temp, sizeof p->temp, "%s/.%s.%ld-%u.tmp", products, scene, (long)getpid(),
                     atomic_fetch_add(&serial, 1));
    if (n >= PATH_MAX || m >= PATH_MAX || k >= PATH_MAX) {
        rc = pb_fail(err, PB_E_OUTPUT_WRITE, "the path %s/%s is too long", products, scene);
        goto out;
    }
    (void)pb_publish_sweep(products, scene); /* of an earlier run that was killed */
    rc = make_temp(p, err);
out:
    if (rc < 0) {
        pb_publish_close(p);
        return rc;
    }
    *out_publish = p;
    return 0;
}

const char *pb_publish_directory(const struct pb_publish *publish)
{
    return publish->temp;
}

/* Moves temp to final; when a final exists the two change places in one step, and the old one is
 * left at temp. */
static int swap_in(struct pb_publish *p)
{
    if (renameat2(AT_FDCWD, p->temp, AT_FDCWD, p->final, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST && renameat2(AT_FDCWD, p->temp, AT_FDCWD, p->final, RENAME_EXCHANGE) == 0) {
        remove_tree(p->temp);
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* A file system without these flags (some network ones): two renames, the old products aside
     * first. */
    char aside[PATH_MAX + 8];
    (void)snprintf(aside, sizeof aside, "%s.old.tmp", p->temp);
    if (rename(p->final, aside) != 0 && errno != ENOENT)
        return -errno;
    if (rename(p->temp, p->final) != 0) {
        int rc = -errno;
        (void)rename(aside, p->final);
        return rc;
    }
    remove_tree(aside);
    return 0;
}

int pb_publish_commit(struct pb_publish *p, struct pb_err *err, char *out_path)
{
    int rc = fsync_directory(p->temp);
    if (rc == 0)
        rc = swap_in(p);
    if (rc < 0)
        return pb_product_io_fail(err, -rc, "cannot publish", p->final);
    p->committed = true;
    rc = fsync_directory(p->products);
    if (rc < 0)
        return pb_product_io_fail(err, -rc, "cannot sync", p->products);
    if (realpath(p->final, out_path) == NULL)
        (void)snprintf(out_path, PATH_MAX, "%s", p->final);
    return 0;
}

void pb_publish_close(struct pb_publish *p)
{
    if (p == NULL)
        return;
    if (p->made && !p->committed)
        remove_tree(p->temp);
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    free(p);
}

/* .<scene>.tmp and .<scene>.<pid>-<n>.tmp, and what comes of them; scene NULL: of any scene. */
static bool is_temp_name(const char *name, const char *scene)
{
    size_t n = strlen(name), s = scene ? strlen(scene) : 0;
    if (n < 6 || name[0] != '.' || strcmp(name + n - 4, ".tmp") != 0)
        return false;
    if (scene == NULL)
        return true;
    if (strncmp(name + 1, scene, s) != 0 || name[1 + s] != '.')
        return false;
    const char *rest = name + 1 + s + 1;
    return strcmp(rest, "tmp") == 0 || (rest[0] >= '0' && rest[0] <= '9');
}

/* The lock is held while the tree goes, so that nobody begins to write into it. */
static bool remove_leftover(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    bool free_to_take = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (free_to_take)
        remove_tree(path);
    close(fd);
    return free_to_take;
}

int pb_publish_sweep(const char *products, const char *scene)
{
    DIR *dir = opendir(products);
    if (dir == NULL)
        return 0;
    int removed = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        if (is_temp_name(e->d_name, scene) &&
            snprintf(path, sizeof path, "%s/%s", products, e->d_name) < PATH_MAX)
            removed += remove_leftover(path);
    }
    closedir(dir);
    return removed;
}
