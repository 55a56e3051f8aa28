/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The holder uses its directory by descriptor only: once that directory is removed or replaced,
 * nothing can be made in it or renamed out of it, and a successor's directory of the same name is
 * never touched by mistake. */
#include "pipeline/publish/publish_lock.h"

#include "config/base/clock.h"
#include "pipeline/io/path.h"
#include "pipeline/publish/holder.h"
#include "pipeline/publish/publish_move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PREFIX          PB_PUBLISH_LOCK_DIRECTORY "." /* prefix of a directory before its rename */
#define FILE_PREFIX     "new-"
#define MAKE_TRIES      100

enum { STEP_MS = 5 };

struct file {
    char name[NAME_MAX + 1];
};

struct pb_publish_lock {
    int products_fd, fd, held_fd; /* fd: the directory; held_fd: the locked file in it */
    char held[PB_HOLDER_BYTES];
    struct file *file; /* n_files: FILE_PREFIX<i> is renamed to its name */
    size_t n_files;
};

/* State of a lock as a waiting process sees it. */
struct sight {
    struct pb_holder holder;
    bool has_holder, is_empty, is_foreign; /* is_foreign: with a file that is not a holder's */
    uint64_t bytes; /* sum of its files' sizes, which grow while the holder writes */
};

static void look(int fd, struct sight *out)
{
    DIR *dir = pb_path_entries(fd);
    *out = (struct sight){.is_empty = dir != NULL};
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct stat st;
        if (pb_path_is_dots(e->d_name))
            continue;
        out->is_empty = false;
        if (pb_holder_parse(e->d_name, &out->holder))
            out->has_holder = true;
        else if (strncmp(e->d_name, FILE_PREFIX, sizeof FILE_PREFIX - 1) != 0)
            out->is_foreign = true;
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            out->bytes += (uint64_t)st.st_size;
    }
    if (dir != NULL)
        (void)closedir(dir);
}

/* Removes the files of a lock and the directory. If `name` is another process' lock by now, that
 * directory contains a file, and is not removed. */
static void break_lock(int products_fd, const char *name, int fd)
{
    struct pb_holder holder;
    DIR *dir = pb_path_entries(fd);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (pb_holder_parse(e->d_name, &holder) ||
            strncmp(e->d_name, FILE_PREFIX, sizeof FILE_PREFIX - 1) == 0)
            (void)unlinkat(fd, e->d_name, 0);
    if (dir != NULL)
        (void)closedir(dir);
    (void)unlinkat(products_fd, name, AT_REMOVEDIR);
}

/* Returns true if the holder is a process of this machine that has ended. */
static bool is_left(int fd, const struct sight *sight)
{
    char held[PB_HOLDER_BYTES];
    if (!sight->has_holder || sight->is_foreign || !pb_holder_is_dead_here(&sight->holder))
        return false;
    pb_holder_print(&sight->holder, held);
    int held_fd = openat(fd, held, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool left = held_fd >= 0 && pb_holder_lock_file(held_fd) != -EAGAIN;
    if (held_fd >= 0)
        (void)close(held_fd);
    return left;
}

void pb_publish_lock_break(int products_fd, const struct pb_holder *process)
{
    struct sight sight;
    int fd = openat(products_fd, PB_PUBLISH_LOCK_DIRECTORY, DIRECTORY_FLAGS);
    if (fd < 0)
        return;
    look(fd, &sight);
    if (sight.has_holder && !sight.is_foreign && pb_holder_is_same_process(&sight.holder, process))
        break_lock(products_fd, PB_PUBLISH_LOCK_DIRECTORY, fd);
    (void)close(fd);
}

/* --- taking it -------------------------------------------------------------------------------*/

/* Makes the directory under a unique name. -EAGAIN: a sweep removed it. */
static int prepare(struct pb_publish_lock *lock, const char *name)
{
    if (mkdirat(lock->products_fd, name, 0777) !=
        0) /* allows users of one group to break each other's locks */
        return errno == EEXIST ? -EAGAIN : -errno;
    lock->fd = openat(lock->products_fd, name, DIRECTORY_FLAGS);
    if (lock->fd >= 0)
        lock->held_fd =
            openat(lock->fd, lock->held, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock->held_fd >= 0)
        return pb_holder_lock_file(lock->held_fd) == -EAGAIN ? -EAGAIN : 0;
    int rc = errno == ENOENT ? -EAGAIN : -errno;
    (void)unlinkat(lock->products_fd, name, AT_REMOVEDIR);
    return rc;
}

static bool is_own(const struct pb_publish_lock *lock)
{
    struct stat own, there;
    return fstat(lock->fd, &own) == 0 &&
           fstatat(lock->products_fd, PB_PUBLISH_LOCK_DIRECTORY, &there, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

/* Returns 0; -EAGAIN: another process has the lock; or a negative errno. A network file system
 * may report a missing source after a successful rename. */
static int try_take(const struct pb_publish_lock *lock, const char *name)
{
    if (renameat(lock->products_fd, name, lock->products_fd, PB_PUBLISH_LOCK_DIRECTORY) == 0)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == EACCES || errno == EPERM)
        return -EAGAIN; /* the last two: another user's, in a sticky directory */
    if (errno == ENOTDIR)
        return -EEXIST;
    int rc = -errno;
    return rc == -ENOENT && is_own(lock) ? 0 : rc;
}

/* The last change of the lock that a waiting process has seen. */
struct watch {
    struct sight sight;
    int64_t since_ms; /* time of the first look with this state */
};

static bool is_alike(const struct sight *a, const struct sight *b)
{
    char first[PB_HOLDER_BYTES], second[PB_HOLDER_BYTES];
    pb_holder_print(&a->holder, first);
    pb_holder_print(&b->holder, second);
    return strcmp(first, second) == 0 && a->bytes == b->bytes;
}

/* Breaks the lock if its holder is dead or the lock is stale. */
static void judge(int products_fd, struct watch *watch)
{
    struct sight now;
    int fd = openat(products_fd, PB_PUBLISH_LOCK_DIRECTORY, DIRECTORY_FLAGS);
    if (fd < 0)
        return;
    look(fd, &now);
    const int64_t ms = pb_clock_mono_ms();
    if (watch->since_ms == 0 || !is_alike(&now, &watch->sight))
        *watch = (struct watch){now, ms};
    if (now.is_empty || is_left(fd, &now) ||
        (!now.is_foreign && ms - watch->since_ms > PB_PUBLISH_LOCK_STALE_MS))
        break_lock(products_fd, PB_PUBLISH_LOCK_DIRECTORY, fd);
    (void)close(fd);
}

static int wait_for(struct pb_publish_lock *lock, const char *name, int64_t wait_ms)
{
    const int64_t until = pb_clock_mono_ms() + wait_ms;
    struct watch watch = {.since_ms = 0};
    int rc;
    while ((rc = try_take(lock, name)) == -EAGAIN) {
        judge(lock->products_fd, &watch);
        if (pb_clock_mono_ms() > until)
            return -ETIMEDOUT;
        (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    return rc;
}

static void give_up(const struct pb_publish_lock *lock, const char *name)
{
    if (lock->held_fd >= 0)
        (void)close(lock->held_fd);
    if (lock->fd < 0)
        return;
    break_lock(lock->products_fd, name, lock->fd);
    (void)close(lock->fd);
}

int pb_publish_lock_take(int products_fd, int64_t wait_ms, struct pb_publish_lock **out)
{
    struct pb_publish_lock *lock = calloc(1, sizeof *lock);
    int rc = lock != NULL ? -EAGAIN : -ENOMEM;
    for (int i = 0; rc == -EAGAIN && i < MAKE_TRIES; i++) {
        char name[sizeof PREFIX + PB_HOLDER_BYTES];
        struct pb_holder own;
        *lock = (struct pb_publish_lock){.products_fd = products_fd, .fd = -1, .held_fd = -1};
        pb_holder_make(&own);
        pb_holder_print(&own, lock->held);
        (void)snprintf(name, sizeof name, PREFIX "%s", lock->held);
        rc = prepare(lock, name);
        rc = rc ? rc : wait_for(lock, name, wait_ms);
        if (rc == -ENOENT) /* a sweep removed it before its file was locked */
            rc = -EAGAIN;
        if (rc != 0)
            give_up(lock, name);
    }
    if (rc != 0) {
        free(lock);
        return rc;
    }
    *out = lock;
    return 0;
}

/* --- using it --------------------------------------------------------------------------------- */

static void name_file(size_t i, char out[32])
{
    (void)snprintf(out, 32, FILE_PREFIX "%zu", i);
}

/* Maps an error of a missing directory or file. */
static int failed(int error)
{
    return error == ENOENT || error == ESTALE ? -ESTALE : -error;
}

int pb_publish_lock_file(struct pb_publish_lock *lock, const char *name, unsigned mode, int *out_fd)
{
    char own[32];
    struct file *file = realloc(lock->file, (lock->n_files + 1) * sizeof *file);
    if (file == NULL)
        return -ENOMEM;
    lock->file = file;
    name_file(lock->n_files, own);
    int fd = openat(lock->fd, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return failed(errno);
    (void)snprintf(file[lock->n_files].name, sizeof file->name, "%s", name);
    lock->n_files++;
    *out_fd = fd;
    return 0;
}

int pb_publish_lock_place(struct pb_publish_lock *lock)
{
    char own[32];
    for (size_t i = 0; i < lock->n_files; i++) {
        name_file(i, own);
        if (renameat(lock->fd, own, lock->products_fd, lock->file[i].name) != 0)
            return failed(errno);
    }
    return lock->n_files > 0 ? pb_publish_sync(lock->products_fd) : 0;
}

void pb_publish_lock_drop(struct pb_publish_lock *lock)
{
    if (lock == NULL)
        return;
    (void)close(lock->held_fd); /* NFS preserves a file that is open, and the directory with it */
    break_lock(lock->products_fd, PB_PUBLISH_LOCK_DIRECTORY, lock->fd);
    (void)close(lock->fd);
    free(lock->file);
    free(lock);
}

/* --- after a crash ---------------------------------------------------------------------------*/

void pb_publish_lock_sweep(int products_fd, const char *name)
{
    struct sight sight;
    struct pb_holder maker;
    const bool prepared = strncmp(name, PREFIX, sizeof PREFIX - 1) == 0;
    if ((!prepared && strcmp(name, PB_PUBLISH_LOCK_DIRECTORY) != 0) ||
        (prepared &&
         (!pb_holder_parse(name + sizeof PREFIX - 1, &maker) || !pb_holder_is_dead_here(&maker))))
        return;
    int fd = openat(products_fd, name, DIRECTORY_FLAGS);
    if (fd < 0)
        return;
    look(fd, &sight);
    if (is_left(fd, &sight) || (prepared && sight.is_empty))
        break_lock(products_fd, name, fd);
    (void)close(fd);
}
