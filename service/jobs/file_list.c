/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/jobs/file_list.h"

#include "config/base/clock.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX  200000 /* maximum number of files of an input; a longer list is not stored */
#define DEPTH_MAX  64
#define PATH_BYTES 4096

static char kind_of(mode_t mode)
{
    return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : 'o';
}

/* Makes the path of an entry below the input. -ENAMETOOLONG. */
static int join(char out[PATH_BYTES], const char *above, const char *name)
{
    int n = snprintf(out, PATH_BYTES, "%s%s%s", above, above[0] ? "/" : "", name);
    return n < 0 || n >= PATH_BYTES ? -ENAMETOOLONG : 0;
}

/* --- the list -------------------------------------------------------------------------------- */

void pb_file_list_fini(struct pb_file_list *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->file[i].path);
    free(files->file);
    *files = (struct pb_file_list){NULL, 0};
}

void pb_input_lists_fini(struct pb_input_lists *lists)
{
    pb_file_list_fini(&lists->input);
    pb_file_list_fini(&lists->companion);
}

/* Adds a file and copies its path. The capacity is the next power of two. */
static int add(struct pb_file_list *files, const struct pb_listed_file *file)
{
    if (files->n == FILES_MAX)
        return -E2BIG;
    if ((files->n & (files->n - 1)) == 0) {
        size_t room = files->n ? 2 * files->n : 1;
        struct pb_listed_file *more = realloc(files->file, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        files->file = more;
    }
    struct pb_listed_file *last = &files->file[files->n];
    *last = *file;
    last->path = strdup(file->path);
    files->n += last->path != NULL;
    return last->path != NULL ? 0 : -ENOMEM;
}

static int list(struct pb_file_list *files, int directory, const char *name, const char *path,
                int depth);

static int list_below(struct pb_file_list *files, int directory, const char *name, const char *path,
                      int depth)
{
    char below[PATH_BYTES];
    int rc = depth < DEPTH_MAX ? 0 : -ELOOP;
    int fd = rc == 0 ? pb_path_open_at(directory, name) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (rc == 0 && dir == NULL)
        rc = fd < 0 ? fd : -ENOMEM;
    if (dir == NULL && fd >= 0)
        (void)close(fd);
    for (const struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (pb_path_is_dots(e->d_name))
            continue;
        rc = join(below, path, e->d_name);
        rc = rc ? rc : list(files, dirfd(dir), e->d_name, below, depth + 1);
    }
    if (dir != NULL)
        (void)closedir(dir);
    return rc;
}

static int list(struct pb_file_list *files, int directory, const char *name, const char *path,
                int depth)
{
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    const struct pb_listed_file file = {.path = (char *)path,
                                        .kind = kind_of(st.st_mode),
                                        .inode = st.st_ino,
                                        .bytes = st.st_size,
                                        .mtime_ns = pb_clock_ns(&st.st_mtim),
                                        .ctime_ns = pb_clock_ns(&st.st_ctim)};
    int rc = add(files, &file);
    return rc == 0 && file.kind == 'd' ? list_below(files, directory, name, path, depth) : rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct pb_listed_file *)a)->path,
                  ((const struct pb_listed_file *)b)->path);
}

int pb_file_list_read(const char *path, struct pb_file_list *out)
{
    *out = (struct pb_file_list){NULL, 0};
    int rc = list(out, AT_FDCWD, path, "", 0);
    if (rc == 0)
        qsort(out->file, out->n, sizeof *out->file, by_path);
    else
        pb_file_list_fini(out);
    return rc;
}

static const struct pb_listed_file *find(const struct pb_file_list *files, const char *path)
{
    const struct pb_listed_file key = {.path = (char *)path};
    return files->n > 0 ? bsearch(&key, files->file, files->n, sizeof key, by_path) : NULL;
}

/* --- bytes for the store: "<kind> <inode> <size> <mtime> <ctime> <path>" and a NUL each ------- */

char *pb_file_list_pack(const struct pb_file_list *files, size_t *out_bytes)
{
    char *text = NULL;
    FILE *to = files->n > 0 ? open_memstream(&text, out_bytes) : NULL;
    bool good = to != NULL;
    for (size_t i = 0; good && i < files->n; i++) {
        const struct pb_listed_file *file = &files->file[i];
        good = fprintf(to, "%c %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %s%c", file->kind,
                       file->inode, file->bytes, file->mtime_ns, file->ctime_ns, file->path, 0) > 0;
    }
    if (to != NULL && fclose(to) != 0)
        good = false;
    if (good)
        return text;
    free(text);
    return NULL;
}

int pb_file_list_unpack(const void *data, size_t bytes, struct pb_file_list *out)
{
    *out = (struct pb_file_list){NULL, 0};
    if (bytes == 0)
        return 0;
    const char *at = data, *end = at + bytes;
    int rc = end[-1] != '\0' ? -EINVAL : 0;
    for (; rc == 0 && at < end; at += strlen(at) + 1) {
        struct pb_listed_file file;
        int n = 0;
        if (sscanf(at, "%c %" SCNu64 " %" SCNd64 " %" SCNd64 " %" SCNd64 "%n", &file.kind,
                   &file.inode, &file.bytes, &file.mtime_ns, &file.ctime_ns, &n) != 5 ||
            at[n] != ' ')
            rc = -EINVAL;
        file.path = (char *)at + n + 1;
        rc = rc ? rc : add(out, &file);
    }
    if (rc != 0)
        pb_file_list_fini(out);
    return rc;
}

/* --- after a move ----------------------------------------------------------------------------- */

/* Returns true if the folder still contains a file of the list: an inode may be reused after a
 * removal. */
static bool has_one(const struct pb_file_list *files, int directory, const char *name)
{
    struct stat st;
    bool found = files->n == 1;
    int fd = found ? -1 : pb_path_open_at(directory, name);
    for (size_t i = 1; fd >= 0 && !found && i < files->n; i++)
        found = fstatat(fd, files->file[i].path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_ino == files->file[i].inode && kind_of(st.st_mode) == files->file[i].kind;
    if (fd >= 0)
        (void)close(fd);
    return found;
}

/* Returns true if the entry is the input, by the properties that a rename preserves. */
static bool is_input(const struct pb_file_list *files, int directory, const char *name)
{
    struct stat st;
    if (files->n == 0 || fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    const struct pb_listed_file *top = &files->file[0];
    if (st.st_ino != top->inode || kind_of(st.st_mode) != top->kind)
        return false;
    return top->kind == 'd' ? has_one(files, directory, name)
                            : st.st_size == top->bytes && pb_clock_ns(&st.st_mtim) == top->mtime_ns;
}

bool pb_file_list_find(const struct pb_file_list *files, const char *directory, char out_name[256])
{
    bool found = false;
    DIR *dir = files->n > 0 ? opendir(directory) : NULL;
    if (dir == NULL)
        return false;
    for (const struct dirent *e; !found && (e = readdir(dir)) != NULL;) {
        found = e->d_name[0] != '.' && is_input(files, dirfd(dir), e->d_name);
        if (found)
            (void)snprintf(out_name, 256, "%s", e->d_name);
    }
    (void)closedir(dir);
    return found;
}

void pb_file_list_moved(struct pb_file_list *files, const char *path)
{
    struct stat st;
    if (files->n == 1 && is_input(files, AT_FDCWD, path) && lstat(path, &st) == 0)
        files->file[0].ctime_ns = pb_clock_ns(&st.st_ctim);
}

/* --- removal ---------------------------------------------------------------------------------- */

struct removal {
    const struct pb_file_list *files;
    int64_t until_ns; /* for an empty list: latest allowed ctime */
    bool removes;     /* false: the tree is only checked */
    char *other;
};

static bool came(const struct removal *removal, const char *path, const struct stat *st)
{
    const struct pb_listed_file *file = find(removal->files, path);
    const char kind = kind_of(st->st_mode);
    if (removal->files->n == 0) /* a removal below changes the times of a directory */
        return (kind != 'o' || (S_ISLNK(st->st_mode) && path[0] != '\0')) &&
               ((kind == 'd' && removal->removes) ||
                pb_clock_ns(&st->st_ctim) <= removal->until_ns);
    return file != NULL && file->kind == kind &&
           (kind == 'd' ||
            (file->bytes == st->st_size && file->mtime_ns == pb_clock_ns(&st->st_mtim) &&
             file->ctime_ns == pb_clock_ns(&st->st_ctim)));
}

static int stays(const struct removal *removal, const char *path)
{
    (void)snprintf(removal->other, PATH_BYTES, "%s", path);
    return 1;
}

static int visit(const struct removal *removal, int directory, const char *name, const char *path,
                 int depth);

static int visit_below(const struct removal *removal, int directory, const char *name,
                       const char *path, int depth)
{
    char below[PATH_BYTES];
    int fd = depth < DEPTH_MAX ? pb_path_open_at(directory, name) : -ELOOP, rc = 0;
    if (fd == -EXDEV) /* a mount point */
        return stays(removal, path);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            (void)close(fd);
        return fd < 0 ? fd : -ENOMEM;
    }
    for (const struct dirent *e; rc == 0 && (e = readdir(dir)) != NULL;) {
        if (pb_path_is_dots(e->d_name))
            continue;
        rc = join(below, path, e->d_name);
        rc = rc ? rc : visit(removal, dirfd(dir), e->d_name, below, depth + 1);
    }
    (void)closedir(dir);
    return rc;
}

static int visit(const struct removal *removal, int directory, const char *name, const char *path,
                 int depth)
{
    struct stat st;
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -errno;
    const bool is_directory = S_ISDIR(st.st_mode);
    if (!came(removal, path, &st))
        return stays(removal, path);
    int rc = is_directory ? visit_below(removal, directory, name, path, depth) : 0;
    if (rc != 0 || !removal->removes)
        return rc;
    if (unlinkat(directory, name, is_directory ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
        return 0;
    return errno == ENOTEMPTY || errno == EEXIST ? stays(removal, path) : -errno;
}

int pb_file_list_remove(const struct pb_file_list *files, int64_t until_ms, int directory,
                        const char *name, char out_other[4096])
{
    struct removal removal = {.files = files, .until_ns = until_ms * 1000000, .other = out_other};
    int rc = visit(&removal, directory, name, "", 0);
    removal.removes = true;
    return rc ? rc : visit(&removal, directory, name, "", 0);
}
