/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/publish.h"
#include "pipeline/path.h"
#include "pipeline/product.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_TRIES  1000
#define SHOWN_BYTES 180 /* of the scene in the temporary name */

struct pb_publish {
    char products[PATH_MAX];
    char final[PATH_MAX];
    char temp[PATH_MAX];
    int lock_fd; /* of temp, flock'd */
    bool made, committed;
};

/* Makes a temporary directory of a name that is not there yet, and locks it. A process that died
 * may have had our number, and a sweep may take the directory before it is locked: then the next
 * name is tried. */
static int make_temp(struct pb_publish *p, const char *scene, struct pb_err *err)
{
    static _Atomic unsigned serial;
    int error = EEXIST;
    /* The scene is for people only, so a long one is cut, but not in the middle of a character. */
    int shown = (int)strnlen(scene, SHOWN_BYTES);
    while (shown == SHOWN_BYTES && ((unsigned char)scene[shown] & 0xc0) == 0x80)
        shown--;
    for (int i = 0; i < TEMP_TRIES; i++) {
        struct stat ours, there;
        if (snprintf(p->temp, sizeof p->temp, "%s/.%.*s.%ld-%u.tmp", p->products, shown, scene,
                     (long)getpid(), atomic_fetch_add(&serial, 1)) >= (int)sizeof p->temp)
            return pb_fail(err, PB_E_OUTPUT_WRITE, "the path %s is too long", p->products);
        p->made = mkdir(p->temp, 0755) == 0;
        error = errno;
        if (!p->made && error != EEXIST)
            break;
        if (!p->made)
            continue;
        p->lock_fd = open(p->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p->lock_fd >= 0 && flock(p->lock_fd, LOCK_EX | LOCK_NB) == 0 &&
            fstat(p->lock_fd, &ours) == 0 && stat(p->temp, &there) == 0 &&
            ours.st_ino == there.st_ino)
            return 0;
        error = errno;
        p->made = error != ENOENT && error != EWOULDBLOCK;
        if (p->made)
            break;
        if (p->lock_fd >= 0)
            close(p->lock_fd);
        p->lock_fd = -1;
    }
    return pb_product_io_fail(err, error, "cannot create", p->temp);
}

int pb_publish_open(const char *products, const char *scene, struct pb_err *err,
                    struct pb_publish **out_publish)
{
    struct pb_publish *p = calloc(1, sizeof *p);
    if (p == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory while opening %s", products);
    p->lock_fd = -1;
    int rc = pb_path_make(products);
    if (rc < 0) {
        rc = pb_product_io_fail(err, -rc, "cannot create", products);
        goto out;
    }
    if (scene[0] == '\0' || scene[0] == '.' || strchr(scene, '/') != NULL) {
        rc = pb_fail(err, PB_E_OUTPUT_WRITE,
                     "products cannot be named '%s'; give the input a name without a leading dot",
                     scene);
        goto out;
    }
    int n = snprintf(p->products, sizeof p->products, "%s", products);
    int m = snprintf(p->final, sizeof p->final, "%s/%s", products, scene);
    if (n >= PATH_MAX || m >= PATH_MAX) {
        rc = pb_fail(err, PB_E_OUTPUT_WRITE, "the path %s/%s is too long", products, scene);
        goto out;
    }
    (void)pb_publish_sweep(products); /* of runs that were killed */
    rc = make_temp(p, scene, err);
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

/* Moves temp to final; when a final exists the two change places in one step. old gets where the
 * older products lie now, "" = there were none. */
static int swap_in(struct pb_publish *p, char old[PATH_MAX + 16])
{
    old[0] = '\0';
    if (renameat2(AT_FDCWD, p->temp, AT_FDCWD, p->final, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST && renameat2(AT_FDCWD, p->temp, AT_FDCWD, p->final, RENAME_EXCHANGE) == 0) {
        (void)snprintf(old, PATH_MAX + 16, "%s", p->temp);
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* A file system without these flags (some network ones): two renames, the old products aside
     * first. */
    char aside[PATH_MAX + 16];
    (void)snprintf(aside, sizeof aside, "%s.old.tmp", p->temp);
    bool moved = rename(p->final, aside) == 0;
    if (!moved && errno != ENOENT)
        return -errno;
    if (rename(p->temp, p->final) != 0) {
        int rc = -errno;
        if (moved)
            (void)rename(aside, p->final);
        return rc;
    }
    if (moved)
        (void)snprintf(old, PATH_MAX + 16, "%s", aside);
    return 0;
}

int pb_publish_commit(struct pb_publish *p, struct pb_err *err, char *out_path)
{
    char old[PATH_MAX + 16];
    int rc = pb_path_sync(p->temp);
    if (rc == 0)
        rc = swap_in(p, old);
    if (rc < 0)
        return pb_product_io_fail(err, -rc, "cannot publish", p->final);
    p->committed = true;
    rc = pb_path_sync(p->products);
    /* Only now: a crash must not bring back the old directory without its files. */
    if (rc == 0 && old[0] != '\0')
        pb_path_remove(old);
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
        pb_path_remove(p->temp);
    if (p->lock_fd >= 0)
        close(p->lock_fd);
    free(p);
}

/* Removes the directory unless a living process holds its lock. The lock is kept meanwhile, so that
 * whoever is just making it notices. */
static bool remove_leftover(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ours = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (ours)
        pb_path_remove(path);
    close(fd);
    return ours;
}

/* .<scene>.<pid>-<n>.tmp, as make_temp spells it; what others call .x.tmp is not ours to remove. */
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

int pb_publish_sweep(const char *products)
{
    DIR *dir = opendir(products);
    if (dir == NULL)
        return 0;
    int removed = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        if (is_temp_name(e->d_name) &&
            snprintf(path, sizeof path, "%s/%s", products, e->d_name) < (int)sizeof path)
            removed += remove_leftover(path);
    }
    closedir(dir);
    return removed;
}
