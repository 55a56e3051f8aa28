/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_walk.h"
#include "config/base/base_name.h"
#include "config/base/glob.h"

#include "pipeline/raster/raster_file.h"
#include "pipeline/scene/scene_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER    (O_RDONLY | O_DIRECTORY | O_CLOEXEC) /* a scene's path may be a link */
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* State of one walk: the folder's name for messages, and the count of entries of all kinds. */
struct walker {
    struct pb_scene_walk *walk;
    const char *folder;
    struct pb_err *err;
    size_t met;
    const char **name; /* sorted names of the files of the scene; NULL: all files belong to it */
    size_t n_names;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_of_scene(const struct walker *w, const char *name)
{
    return w->name == NULL || bsearch(&name, w->name, w->n_names, sizeof *w->name, by_name) != NULL;
}

static int add(struct walker *w, const char *path, bool is_link)
{
    struct pb_scene_walk *walk = w->walk;
    if (walk->n == walk->room) {
        size_t room = walk->room ? 2 * walk->room : 64;
        struct pb_scene_entry *more = realloc(walk->entry, room * sizeof *more);
        if (more == NULL)
            return pb_fail(w->err, PB_E_MEMORY, "out of memory for the files of %s", w->folder);
        walk->entry = more;
        walk->room = room;
    }
    walk->entry[walk->n] = (struct pb_scene_entry){.path = strdup(path), .is_link = is_link};
    if (walk->entry[walk->n].path == NULL)
        return pb_fail(w->err, PB_E_MEMORY, "out of memory for the files of %s", w->folder);
    walk->n++;
    return 0;
}

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* One step of FNV-1a. */
static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t mix(uint64_t hash, int64_t number)
{
    for (int shift = 0; shift < 64; shift += 8)
        hash = (hash ^ ((uint64_t)number >> shift & 0xff)) * UINT64_C(1099511628211);
    return hash;
}

/* Uses a sum, so that the result does not depend on the order of entries. */
static void take_facts(struct pb_scene_walk *walk, const char *path, const struct stat *st)
{
    const int64_t ctime_ns = ns_of(&st->st_ctim);
    uint64_t hash = mix_text(UINT64_C(14695981039346656037), path);
    hash = mix(mix(mix(hash, st->st_size), (int64_t)st->st_ino), ns_of(&st->st_mtim));
    walk->digest += mix(mix(hash, ctime_ns), (int64_t)st->st_nlink);
    walk->youngest_ns = ctime_ns > walk->youngest_ns ? ctime_ns : walk->youngest_ns;
    walk->bytes += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    walk->n_linked += S_ISREG(st->st_mode) && st->st_nlink > 1;
}

static int list(struct walker *w, int directory, const char *inner, int depth);

/* Reports that the folder `inner` of the scene cannot be listed. Missing permissions are an
 * error of the delivery. */
static int fail_list(const struct walker *w, int error, const char *inner)
{
    char what[300];
    inner = inner[0] != '\0' ? inner : ".";
    if (error == EACCES || error == EPERM)
        return pb_fail_at(w->err, PB_E_INPUT_DENIED, w->folder, 0, 0,
                          "user id %d has no right to list its folder %.200s", (int)geteuid(),
                          inner);
    (void)snprintf(what, sizeof what, "cannot list its folder %.200s", inner);
    return pb_raster_file_fail(w->err, error, w->folder, what);
}

static int meet(struct walker *w, int directory, const char *inner, const char *name, int depth)
{
    char path[PATH_MAX];
    struct stat st;
    if (!is_of_scene(w, name))
        return 0;
    if (++w->met > PB_SCENE_ENTRIES_MAX)
        return pb_fail_at(w->err, PB_E_INPUT_LIMIT, w->folder, 0, 0,
                          "the folder has more than %d entries", PB_SCENE_ENTRIES_MAX);
    if (snprintf(path, sizeof path, "%s%s%s", inner, inner[0] ? "/" : "", name) >= (int)sizeof path)
        return pb_fail_at(w->err, PB_E_INPUT_LIMIT, w->folder, 0, 0,
                          "the folder has a path longer than %d bytes", PATH_MAX - 1);
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : fail_list(w, errno, inner);
    if (S_ISDIR(st.st_mode) && w->name != NULL)
        return 0;
    take_facts(w->walk, path, &st);
    if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
        return add(w, path, S_ISLNK(st.st_mode));
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (depth == PB_SCENE_DEPTH_MAX)
        return pb_fail_at(w->err, PB_E_INPUT_LIMIT, w->folder, 0, 0,
                          "the folder has folders below each other deeper than %d: %.200s",
                          PB_SCENE_DEPTH_MAX, path);
    int fd = openat(directory, name, DIRECTORY);
    if (fd < 0)
        return fail_list(w, errno, path);
    return list(w, fd, path, depth + 1);
}

/* Lists a directory; takes the descriptor. */
static int list(struct walker *w, int directory, const char *inner, int depth)
{
    DIR *dir = fdopendir(directory);
    if (dir == NULL) {
        int error = errno;
        (void)close(directory);
        return pb_raster_file_fail(w->err, error, w->folder, "cannot list it");
    }
    int rc = 0;
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (e == NULL && errno != 0)
            rc = pb_raster_file_fail(w->err, errno, w->folder, "cannot list it");
        if (e == NULL || rc < 0)
            break;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = meet(w, dirfd(dir), inner, e->d_name, depth);
        if (rc < 0)
            break;
    }
    (void)closedir(dir);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct pb_scene_entry *)a)->path,
                  ((const struct pb_scene_entry *)b)->path);
}

static int open_walk(struct walker *w)
{
    struct pb_scene_walk *out = w->walk;
    const char *folder = w->folder;
    struct pb_err *err = w->err;
    *out = (struct pb_scene_walk){.fd = open(folder, FOLDER)};
    if (out->fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO))
        return pb_raster_file_fail(err, errno, folder, "cannot open the folder");
    if (out->fd < 0)
        return pb_fail_at(err, PB_E_INPUT_MISSING, folder, 0, 0, "cannot open the folder: %s",
                          strerror(errno));
    struct stat st;
    int fd = openat(out->fd, ".", DIRECTORY);
    if (fd >= 0 && w->name == NULL && fstat(fd, &st) == 0)
        out->youngest_ns = ns_of(&st.st_ctim);
    if (fd < 0)
        return pb_raster_file_fail(err, errno, folder, "cannot open the folder");
    int rc = list(w, fd, "", 1);
    if (rc == 0 && out->n > 0)
        qsort(out->entry, out->n, sizeof *out->entry, by_path);
    return rc;
}

int pb_scene_walk_open(const char *folder, struct pb_err *err, struct pb_scene_walk *out)
{
    struct walker w = {.walk = out, .folder = folder, .err = err};
    return open_walk(&w);
}

int pb_scene_walk_open_loose(const char *folder, const char *const *name, size_t n,
                             struct pb_err *err, struct pb_scene_walk *out)
{
    const char **sorted = malloc((n + 1) * sizeof *sorted);
    struct walker w = {.walk = out, .folder = folder, .err = err, .name = sorted, .n_names = n};
    *out = (struct pb_scene_walk){.fd = -1};
    if (sorted == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    for (size_t i = 0; i < n; i++)
        sorted[i] = name[i];
    if (n > 1)
        qsort(sorted, n, sizeof *sorted, by_name);
    int rc = open_walk(&w);
    free(sorted);
    return rc;
}

void pb_scene_walk_close(struct pb_scene_walk *walk)
{
    for (size_t i = 0; i < walk->n; i++)
        free(walk->entry[i].path);
    free(walk->entry);
    for (size_t i = 0; i < walk->n_joined; i++)
        pb_scene_walk_close(&walk->joined[i]);
    free(walk->joined);
    free(walk->folder);
    if (walk->fd >= 0)
        (void)close(walk->fd);
    *walk = (struct pb_scene_walk){.fd = -1};
}

int pb_scene_walk_rest(struct pb_scene_walk *walk, const char *folder)
{
    walk->folder = strdup(folder);
    if (walk->folder == NULL)
        return -ENOMEM;
    (void)close(walk->fd);
    walk->fd = -1;
    return 0;
}

static bool may_read(int fd, int64_t reader)
{
    struct stat st;
    if (reader < 0)
        return true;
    if (fstat(fd, &st) != 0)
        return false;
    bool own = (int64_t)st.st_uid == reader;
    mode_t bits = S_ISDIR(st.st_mode) ? 0111 : 0444;
    return (st.st_mode & bits & (own ? 0700 : 0007)) != 0;
}

/* Opens `name` in `at`, which is closed unless it is the folder's. */
static int step(const struct pb_scene_walk *walk, int at, const char *name, int flags,
                int64_t reader)
{
    int fd = openat(at, name, flags), error = fd < 0 ? errno : 0;
    if (at != walk->fd)
        (void)close(at);
    if (fd >= 0 && !may_read(fd, reader)) {
        (void)close(fd);
        error = EACCES;
    }
    return error ? -error : fd;
}

int pb_scene_walk_open_file(const struct pb_scene_walk *walk, const char *path, int64_t reader)
{
    char part[NAME_MAX + 1];
    int at = walk->folder != NULL ? open(walk->folder, FOLDER) : walk->fd;
    if (at < 0)
        return walk->folder != NULL ? -errno : -EBADF;
    for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        if ((size_t)(slash - path) >= sizeof part) {
            if (at != walk->fd)
                (void)close(at);
            return -ENAMETOOLONG;
        }
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        at = step(walk, at, part, DIRECTORY, reader);
        if (at < 0)
            return at;
    }
    return step(walk, at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, reader);
}

bool pb_scene_walk_fits(const char *pattern, const char *path)
{
    if (strchr(pattern, '/') != NULL)
        return pb_glob_fits(pattern, path, PB_GLOB_ANY_CASE | PB_GLOB_GROUPS | PB_GLOB_PATH);
    return pb_glob_fits(pattern, pb_base_name(path), PB_GLOB_ANY_CASE | PB_GLOB_GROUPS);
}
