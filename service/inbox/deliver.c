/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The entries of the source are listed first, so that links and pipes are refused before any file
 * is copied, and a move removes exactly the files that were copied. A service that runs as another
 * user can move a folder out of the inbox only if the service's group may write in the folder; no
 * usual umask allows that, therefore group and modes are set here. Modification times are
 * preserved because stac.datetime may use them. */
#include "service/inbox/deliver.h"

#include "config/base/base_name.h"
#include "pipeline/io/path.h"
#include "service/base/group_advice.h"
#include "service/inbox/settle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES  ((size_t)16 * 1024 * 1024)
#define BUFFER_BYTES ((size_t)1024 * 1024)
#define DEPTH_MAX    64

struct entry {
    char *path; /* path below the source; "" = the source itself */
    struct stat st;
};

/* Entries of the source; parents precede their children. */
struct pb_deliver_tree {
    struct entry *entry;
    size_t n, room;
    bool is_linked; /* true if a file has several names */
};

static void free_tree(struct pb_deliver_tree *tree)
{
    for (size_t i = 0; tree != NULL && i < tree->n; i++)
        free(tree->entry[i].path);
    if (tree != NULL)
        free(tree->entry);
    free(tree);
}

static int below(char out[PB_FILES_PATH_BYTES], const char *root, const char *path)
{
    int n = snprintf(out, PB_FILES_PATH_BYTES, "%s%s%s", root, path[0] ? "/" : "", path);
    return n < PB_FILES_PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int fail(struct pb_err *err, const char *what, const char *path, int error)
{
    return pb_fail(err, error == ENOSPC || error == EDQUOT ? PB_E_SERVICE_SPACE : PB_E_SYSTEM,
                   "%s %.300s: %s", what, path, strerror(error));
}

static int fail_source(struct pb_err *err, const char *path, int error)
{
    return pb_fail(err, PB_E_INPUT_MISSING, "%.400s: %s", path, strerror(error));
}

static bool stops(const struct pb_delivery *d)
{
    return d->options.on_progress != NULL &&
           d->options.on_progress(d->options.user, d->done_bytes, d->bytes);
}

/* --- the source ------------------------------------------------------------------------------- */

static int add(struct pb_deliver_tree *tree, const char *path, const struct stat *st,
               struct pb_err *err)
{
    if (tree->n == tree->room) {
        size_t room = tree->room ? 2 * tree->room : 64;
        struct entry *more = realloc(tree->entry, room * sizeof *more);
        if (more == NULL)
            return pb_fail(err, PB_E_MEMORY, "out of memory");
        tree->entry = more;
        tree->room = room;
    }
    tree->entry[tree->n] = (struct entry){strdup(path), *st};
    if (tree->entry[tree->n].path == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory");
    tree->n++;
    return 0;
}

static int list(struct pb_delivery *d, const char *path, int depth, struct pb_err *err);

static int list_folder(struct pb_delivery *d, const char *path, int depth, struct pb_err *err)
{
    char whole[PB_FILES_PATH_BYTES], inner[PB_FILES_PATH_BYTES];
    if (below(whole, d->source, path) != 0 || depth == DEPTH_MAX)
        return fail_source(err, d->source, ENAMETOOLONG);
    DIR *directory = opendir(whole);
    if (directory == NULL)
        return fail_source(err, whole, errno);
    int rc = 0;
    for (errno = 0; rc == 0; errno = 0) {
        const struct dirent *entry = readdir(directory);
        if (entry == NULL) {
            rc = errno ? fail_source(err, whole, errno) : 0;
            break;
        }
        if (pb_path_is_dots(entry->d_name))
            continue;
        int n = snprintf(inner, sizeof inner, "%s%s%s", path, path[0] ? "/" : "", entry->d_name);
        rc = n < PB_FILES_PATH_BYTES ? list(d, inner, depth + 1, err)
                                     : fail_source(err, whole, ENAMETOOLONG);
    }
    (void)closedir(directory);
    return rc;
}

static bool is_inbox(const struct pb_delivery *d, const struct stat *st)
{
    struct stat inbox;
    return stat(d->options.inbox, &inbox) == 0 && inbox.st_dev == st->st_dev &&
           inbox.st_ino == st->st_ino;
}

static int list(struct pb_delivery *d, const char *path, int depth, struct pb_err *err)
{
    char whole[PB_FILES_PATH_BYTES];
    struct stat st;
    if (below(whole, d->source, path) != 0)
        return fail_source(err, d->source, ENAMETOOLONG);
    if (lstat(whole, &st) != 0)
        return fail_source(err, whole, errno);
    if (S_ISLNK(st.st_mode))
        return pb_fail(
            err, PB_E_INPUT_LINK,
            "%.400s is a symbolic link; deliver a copy that has the file itself (cp -rL)", whole);
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return pb_fail(err, PB_E_INPUT_MISSING, "%.400s is neither a plain file nor a folder",
                       whole);
    if (S_ISDIR(st.st_mode) && is_inbox(d, &st))
        return pb_fail(err, PB_E_USAGE, "%.400s is the inbox itself; name a scene", whole);
    int rc = add(d->tree, path, &st, err);
    if (rc == 0 && S_ISDIR(st.st_mode))
        return list_folder(d, path, depth, err);
    d->files++;
    d->bytes += (uint64_t)st.st_size;
    d->tree->is_linked = d->tree->is_linked || st.st_nlink > 1;
    return rc;
}

/* --- rights ----------------------------------------------------------------------------------- */

/* Mode of an entry in an inbox that belongs to another user. */
static mode_t mode_for_group(mode_t mode)
{
    return S_ISDIR(mode) ? (mode & 0777) | 0070 | S_ISGID : (mode & 0777) | 0060;
}

/* Sets group and mode. A file that is not the user's own may have the right ones already. */
static int set_rights(int fd, gid_t group, mode_t mode)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (st.st_gid != group && fchown(fd, (uid_t)-1, group) != 0)
        return -errno;
    if (((st.st_mode & 07777) != mode || st.st_gid != group) && fchmod(fd, mode) != 0)
        return -errno;
    return 0;
}

/* Sets group, mode and (of a copy) times of an entry, and syncs it. */
static int finish(const struct pb_delivery *d, int fd, const struct entry *entry,
                  const struct stat *inbox)
{
    bool shared = inbox->st_uid != geteuid();
    mode_t mode = shared ? mode_for_group(entry->st.st_mode) : entry->st.st_mode & 07777;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->st.st_mtim};
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    int rc = set_rights(fd, shared ? inbox->st_gid : st.st_gid, mode);
    if (rc == 0 && !d->renamed && futimens(fd, times) != 0)
        rc = -errno;
    return rc == 0 && fsync(fd) != 0 && errno != EINVAL ? -errno : rc;
}

/* Handles children before their folders, because the creation of children changes the times of the
 * folder. */
static int finish_all(struct pb_delivery *d, bool folders_only, struct pb_err *err)
{
    char whole[PB_FILES_PATH_BYTES];
    struct stat inbox;
    if (stat(d->options.inbox, &inbox) != 0)
        return fail(err, "cannot use the inbox", d->options.inbox, errno);
    for (size_t i = d->tree->n; i > 0; i--) {
        const struct entry *entry = &d->tree->entry[i - 1];
        if (folders_only && !S_ISDIR(entry->st.st_mode))
            continue;
        if (stops(d))
            return -EINTR;
        int rc = below(whole, d->part, entry->path);
        int fd = rc == 0 ? open(whole, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
        rc = rc ? rc : fd < 0 ? -errno : finish(d, fd, entry, &inbox);
        if (fd >= 0)
            (void)close(fd);
        if (rc == -EPERM)
            return inbox.st_gid == entry->st.st_gid
                       ? fail(err, "cannot change the permissions of", whole, -rc)
                       : pb_group_advice(err, d->options.inbox, &inbox);
        if (rc != 0)
            return fail(err, "cannot finish", whole, -rc);
    }
    return 0;
}

/* Restores group and modes after a move that failed. */
static void restore_rights(const struct pb_delivery *d)
{
    char whole[PB_FILES_PATH_BYTES];
    for (size_t i = 0; i < d->tree->n; i++) {
        const struct entry *entry = &d->tree->entry[i];
        int fd = below(whole, d->part, entry->path) == 0
                     ? open(whole, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
                     : -1;
        if (fd < 0)
            continue;
        (void)set_rights(fd, entry->st.st_gid, entry->st.st_mode & 07777);
        (void)close(fd);
    }
}

/* --- copying ---------------------------------------------------------------------------------- */

/* Copies the next piece. Returns its bytes, 0 at the end, or a negative errno. If the kernel
 * cannot copy between the two files, *buffer is allocated and used from then on. */
static ssize_t copy_piece(int in, int out, char **buffer)
{
    if (*buffer == NULL) {
        ssize_t n = copy_file_range(in, NULL, out, NULL, PIECE_BYTES, 0);
        if (n >= 0 || (errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
                       errno != EOPNOTSUPP && errno != EBADF && errno != EPERM))
            return n >= 0 ? n : -errno;
        *buffer = malloc(BUFFER_BYTES);
        if (*buffer == NULL)
            return -ENOMEM;
    }
    ssize_t n = read(in, *buffer, BUFFER_BYTES);
    for (ssize_t at = 0; at < n;) {
        ssize_t step = write(out, *buffer + at, (size_t)(n - at));
        if (step < 0 && errno != EINTR)
            return -errno;
        at += step > 0 ? step : 0;
    }
    return n >= 0 ? n : -errno;
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int copy_bytes(struct pb_delivery *d, int in, int out, const struct entry *entry)
{
    char *buffer = NULL;
    uint64_t begun = d->done_bytes;
    ssize_t n = ioctl(out, FICLONE, in) == 0 ? 0 : 1;
    d->done_bytes += n == 0 ? (uint64_t)entry->st.st_size : 0;
    while (n > 0 || n == -EINTR) {
        if (stops(d)) {
            n = -ECANCELED;
            break;
        }
        n = copy_piece(in, out, &buffer);
        d->done_bytes += n > 0 ? (uint64_t)n : 0;
    }
    free(buffer);
    struct stat now;
    if (n == 0 && (fstat(in, &now) != 0 || !is_unchanged(&now, &entry->st) ||
                   d->done_bytes - begun != (uint64_t)entry->st.st_size))
        return -ESTALE;
    return (int)n;
}

static int copy_file(struct pb_delivery *d, const struct entry *entry, const char *from,
                     const char *to, struct pb_err *err)
{
    struct stat inbox;
    int in = open(from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0)
        return fail_source(err, from, errno);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = out < 0 ? -errno : 0;
    d->is_part = d->is_part || out >= 0;
    rc = rc ? rc : copy_bytes(d, in, out, entry);
    if (rc == 0 && stat(d->options.inbox, &inbox) != 0)
        rc = -errno;
    rc = rc ? rc : finish(d, out, entry, &inbox);
    if (out >= 0 && close(out) != 0 && rc == 0)
        rc = -errno;
    (void)close(in);
    if (rc == 0)
        return 0;
    if (rc == -ECANCELED)
        return -EINTR;
    if (rc == -ESTALE)
        return pb_fail(err, PB_E_INPUT_CHANGED, "%.400s changed while it was copied", from);
    if (rc == -EPERM && stat(d->options.inbox, &inbox) == 0)
        return pb_group_advice(err, d->options.inbox, &inbox);
    return fail(err, "cannot write", to, -rc);
}

static int copy_all(struct pb_delivery *d, struct pb_err *err)
{
    char from[PB_FILES_PATH_BYTES], to[PB_FILES_PATH_BYTES];
    int rc = 0;
    for (size_t i = 0; i < d->tree->n && rc == 0; i++) {
        const struct entry *entry = &d->tree->entry[i];
        if (below(from, d->source, entry->path) != 0 || below(to, d->part, entry->path) != 0)
            return fail(err, "cannot write", entry->path, ENAMETOOLONG);
        if (!S_ISDIR(entry->st.st_mode)) {
            rc = copy_file(d, entry, from, to, err);
            continue;
        }
        if (mkdir(to, 0700) != 0)
            rc = fail(err, "cannot create", to, errno);
        d->is_part = d->is_part || rc == 0;
        if (rc == 0 && stops(d))
            rc = -EINTR;
    }
    return rc ? rc : finish_all(d, true, err);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Returns 1 if the source was moved; 0 if it must be copied. */
static int try_rename(struct pb_delivery *d)
{
    if (!d->options.moves || d->tree->is_linked)
        return 0;
    d->renamed = renameat2(AT_FDCWD, d->source, AT_FDCWD, d->part, RENAME_NOREPLACE) == 0;
    d->is_part = d->renamed;
    return d->renamed;
}

bool pb_deliver_remove_source(const struct pb_delivery *d)
{
    char whole[PB_FILES_PATH_BYTES];
    struct stat st;
    bool all = true;
    if (!d->options.moves || d->renamed)
        return true;
    for (size_t i = d->tree->n; i > 0; i--) {
        const struct entry *entry = &d->tree->entry[i - 1];
        bool is_folder = S_ISDIR(entry->st.st_mode);
        bool is_ours = below(whole, d->source, entry->path) == 0 && lstat(whole, &st) == 0 &&
                       (is_folder ? st.st_ino == entry->st.st_ino : is_unchanged(&st, &entry->st));
        bool gone = is_ours && (is_folder ? rmdir(whole) : unlink(whole)) == 0;
        all = all && gone;
    }
    return all;
}

/* --- a delivery ------------------------------------------------------------------------------- */

/* Finds the name of the source: "." and ".." have the name of their folder. */
static int name_it(struct pb_delivery *d, const char *source, struct pb_err *err)
{
    char real[PATH_MAX];
    struct stat st;
    int n = snprintf(d->source, sizeof d->source, "%s", source);
    if (n >= (int)sizeof d->source)
        return fail_source(err, source, ENAMETOOLONG);
    while (n > 1 && d->source[n - 1] == '/')
        d->source[--n] = '\0';
    const char *name = pb_base_name(d->source);
    if (pb_path_is_dots(name) || name[0] == '\0') {
        if (realpath(source, real) == NULL)
            return fail_source(err, source, errno);
        (void)snprintf(d->source, sizeof d->source, "%s", real);
        name = pb_base_name(d->source);
    }
    if (lstat(d->source, &st) != 0)
        return fail_source(err, d->source, errno);
    if (strlen(name) >= sizeof d->name || name[0] == '\0')
        return fail_source(err, source, name[0] == '\0' ? EINVAL : ENAMETOOLONG);
    (void)snprintf(d->name, sizeof d->name, "%s", name);
    if (pb_settle_is_left_alone(name))
        return pb_fail(err, PB_E_INPUT_MISSING,
                       "%.300s: the service leaves names alone that begin with a dot or end with "
                       ".tmp, .part, .inprogress or .filepart; rename it",
                       d->source);
    return 0;
}

static int fail_taken(const struct pb_delivery *d, struct pb_err *err)
{
    return pb_fail(err, PB_E_INPUT_EXISTS, "%.400s is there already", d->place);
}

static int check_inbox(const struct pb_delivery *d, struct pb_err *err)
{
    struct stat st;
    if (stat(d->options.inbox, &st) != 0)
        return fail(err, "cannot use the inbox", d->options.inbox, errno);
    if (faccessat(AT_FDCWD, d->options.inbox, W_OK | X_OK, AT_EACCESS) == 0)
        return 0;
    return errno == EACCES ? pb_group_advice(err, d->options.inbox, &st)
                           : fail(err, "cannot write to the inbox", d->options.inbox, errno);
}

static int begin(struct pb_delivery *d, const char *source, struct pb_err *err)
{
    unsigned random = (unsigned)getpid();
    struct stat st;
    int rc = name_it(d, source, err);
    rc = rc ? rc : check_inbox(d, err);
    if (rc != 0)
        return rc;
    (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
    int n =
        snprintf(d->part, sizeof d->part, "%s/%.200s.%08x.part", d->options.inbox, d->name, random);
    if (n >= (int)sizeof d->part || pb_files_join(d->place, d->options.inbox, d->name) != 0)
        return fail(err, "cannot write to the inbox", d->options.inbox, ENAMETOOLONG);
    if (lstat(d->place, &st) == 0)
        return fail_taken(d, err);
    d->tree = calloc(1, sizeof *d->tree);
    rc = d->tree ? list(d, "", 0, err) : pb_fail(err, PB_E_MEMORY, "out of memory");
    if (rc != 0)
        return rc;
    d->is_folder = S_ISDIR(d->tree->entry[0].st.st_mode);
    return try_rename(d) ? finish_all(d, false, err) : copy_all(d, err);
}

int pb_deliver_begin(const struct pb_deliver_options *options, const char *source,
                     struct pb_err *err, struct pb_delivery *out)
{
    *out = (struct pb_delivery){.options = *options};
    return begin(out, source, err);
}

/* Renames a folder on a filesystem without a rename that refuses to replace: no other folder may
 * exist at the place. */
static int rename_folder(const struct pb_delivery *d)
{
    struct stat st;
    if (renameat2(AT_FDCWD, d->part, AT_FDCWD, d->place, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -errno;
    if (lstat(d->place, &st) == 0)
        return -EEXIST;
    return rename(d->part, d->place) == 0 ? 0 : -errno;
}

int pb_deliver_commit(struct pb_delivery *d, struct pb_err *err)
{
    char parent[PATH_MAX];
    int rc = d->is_folder ? rename_folder(d)
                          : pb_files_rename_new(d->part, d->place, PB_FILES_LINK_ONLY);
    if (rc == -EEXIST)
        return fail_taken(d, err);
    if (rc != 0)
        return fail(err, "cannot rename to", d->place, -rc);
    d->is_part = false;
    (void)pb_path_sync(d->options.inbox);
    pb_path_parent(d->source, parent);
    if (d->renamed)
        (void)pb_path_sync(parent);
    return 0;
}

void pb_deliver_end(struct pb_delivery *d)
{
    if (d->is_part && d->renamed) {
        restore_rights(d);
        (void)renameat2(AT_FDCWD, d->part, AT_FDCWD, d->source, RENAME_NOREPLACE);
    } else if (d->is_part) {
        (void)pb_files_remove(d->part);
    }
    free_tree(d->tree);
    d->tree = NULL;
    d->is_part = false;
}
