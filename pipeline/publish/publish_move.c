/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A failed sync is not repeated: the kernel reports an error once; therefore a second fsync that
 * returns 0 proves nothing. */
#include "pipeline/publish/publish_move.h"
#include "pipeline/publish/publish_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

int pb_publish_sync(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : -errno;
}

/* Returns true for errors of file systems (network ones, older FUSE) without flags of renameat2. */
static bool lacks_flags(int error)
{
    return error == EINVAL || error == ENOSYS;
}

/* Renames to a free name; -EEXIST if it is used. Without RENAME_NOREPLACE a race can at worst
 * replace an empty directory: onto any other entry the rename of a directory fails. */
static int rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
    struct stat st;
    if (renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (!lacks_flags(errno))
        return -errno;
    if (fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    if (errno != ENOENT)
        return -errno;
    if (renameat(from_fd, from, to_fd, to) == 0)
        return 0;
    return errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
}

/* Handles a sync that failed with rc; reverting the rename ended with back. */
static int settle(struct pb_publish_move *move, int rc, int back)
{
    if (back == 0)
        return rc;
    move->unsynced = -rc;
    return 0;
}

/* Returns 0; -ESTALE: the run has lost its own entry; or another negative errno. */
static int look_for(int fd, const char *name)
{
    if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return errno == ENOENT ? -ESTALE : -errno;
}

/* Maps the error of a rename to a name that had to be free, or of an exchange. */
static int failed(int rc, int from_fd, const char *from)
{
    if (rc == -ENOENT && (rc = look_for(from_fd, from)) == 0)
        return -EAGAIN;
    return rc == -EEXIST ? -EAGAIN : rc;
}

int pb_publish_move_scene(struct pb_publish_move *move)
{
    int rc = rename_new(move->temp_fd, PB_PUBLISH_SCENE, move->base_fd, move->place);
    if (rc < 0)
        return failed(rc, move->temp_fd, PB_PUBLISH_SCENE);
    if ((rc = pb_publish_sync(move->base_fd)) == 0)
        return 0;
    /* Another pipeline of the input may have published into it by now: only our leaf is moved
     * back. */
    return settle(move, rc, rename_new(move->from_fd, move->leaf, move->temp_fd, PB_PUBLISH_SCENE));
}

int pb_publish_move_leaf(struct pb_publish_move *move)
{
    int rc = rename_new(move->from_fd, move->leaf, move->scene_fd, move->name);
    if (rc < 0)
        return failed(rc, move->from_fd, move->leaf);
    if ((rc = pb_publish_sync(move->scene_fd)) == 0)
        return 0;
    return settle(move, rc, rename_new(move->scene_fd, move->name, move->from_fd, move->leaf));
}

static bool is_it(int fd, const char *name, const struct stat *expected)
{
    struct stat st;
    return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == expected->st_dev &&
           st.st_ino == expected->st_ino;
}

static int exchange(const struct pb_publish_move *move)
{
    return renameat2(move->from_fd, move->leaf, move->scene_fd, move->name, RENAME_EXCHANGE) == 0
               ? 0
               : -errno;
}

/* Reverts by two renames. */
static int undo_replace(const struct pb_publish_move *move)
{
    int rc = rename_new(move->scene_fd, move->name, move->from_fd, move->leaf);
    return rc ? rc : rename_new(move->from_fd, PB_PUBLISH_OLD, move->scene_fd, move->name);
}

static int replace(struct pb_publish_move *move, const struct stat *old)
{
    int rc = look_for(move->from_fd, move->leaf);
    if (rc < 0)
        return rc;
    rc = rename_new(move->scene_fd, move->name, move->from_fd, PB_PUBLISH_OLD);
    if (rc == -ENOENT)
        return -EAGAIN;
    if (rc < 0)
        return rc;
    rc = is_it(move->from_fd, PB_PUBLISH_OLD, old)
             ? rename_new(move->from_fd, move->leaf, move->scene_fd, move->name)
             : -EEXIST;
    if (rc < 0) {
        (void)rename_new(move->from_fd, PB_PUBLISH_OLD, move->scene_fd, move->name);
        return failed(rc, move->from_fd, move->leaf);
    }
    rc = pb_publish_sync(move->scene_fd);
    return rc == 0 ? 0 : settle(move, rc, undo_replace(move));
}

int pb_publish_move_exchange(struct pb_publish_move *move, const struct stat *old)
{
    int rc = exchange(move);
    if (rc < 0 && lacks_flags(-rc))
        return replace(move, old);
    if (rc < 0)
        return failed(rc, move->from_fd, move->leaf);
    if (!is_it(move->from_fd, move->leaf, old)) {
        rc = exchange(move);
        return rc < 0 ? rc : -EAGAIN;
    }
    rc = pb_publish_sync(move->scene_fd);
    return rc == 0 ? 0 : settle(move, rc, exchange(move));
}
