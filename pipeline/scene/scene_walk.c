/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_walk.h"

#include "config/base/base_name.h"
#include "config/base/clock.h"
#include "config/base/glob.h"
#include "pipeline/io/checksum.h"
#include "pipeline/io/io_fail.h"
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
    const int64_t ctime_ns = pb_clock_ns(&st->st_ctim);
    uint64_t hash = mix_text(UINT64_C(14695981039346656037), path);
    hash = mix(mix(mix(hash, st->st_size), (int64_t)st->st_ino), pb_clock_ns(&st->st_mtim));
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

/* Orders entries by path; those of one path as the folders are listed, the scene's own first. */
static int by_path(const void *a, const void *b)
{
    const struct pb_scene_entry *left = a, *right = b;
    const uintptr_t from = (uintptr_t)left->joined, other = (uintptr_t)right->joined;
    int order = strcmp(left->path, right->path);
    return order != 0 ? order : (from > other) - (from < other);
}

static int open_walk(struct walker *w)
{
    struct pb_scene_walk *out = w->walk;
    const char *folder = w->folder;
    struct pb_err *err = w->err;
    *out = (struct pb_scene_walk){.fd = open(folder, FOLDER)};
    if (out->fd < 0 &&
        (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO || errno == ESTALE))
        return pb_raster_file_fail(err, errno, folder, "cannot open the folder");
    if (out->fd < 0)
        return pb_fail_at(err, PB_E_INPUT_MISSING, folder, 0, 0, "cannot open the folder: %s",
                          strerror(errno));
    struct stat st;
    int fd = openat(out->fd, ".", DIRECTORY);
    if (fd >= 0 && w->name == NULL && fstat(fd, &st) == 0)
        out->youngest_ns = pb_clock_ns(&st.st_ctim);
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

int pb_scene_walk_open_loose(const char *folder, const struct pb_scene_manifest *manifest,
                             struct pb_err *err, struct pb_scene_walk *out)
{
    char real[PATH_MAX];
    const char **name = malloc((manifest->n_entries + 1) * sizeof *name);
    struct walker w = {.walk = out, .folder = folder, .err = err, .name = name};
    *out = (struct pb_scene_walk){.fd = -1};
    if (name == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    const bool is_known = realpath(folder, real) != NULL; /* else the walk reports the reason */
    for (size_t i = 0; is_known && i < manifest->n_entries; i++)
        if (strcmp(manifest->root[manifest->entry[i].root], real) == 0)
            name[w.n_names++] = manifest->entry[i].path;
    if (w.n_names > 1)
        qsort(name, w.n_names, sizeof *name, by_name);
    int rc = open_walk(&w);
    free(name);
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

int pb_scene_walk_open_raster(const struct pb_scene_walk *walk, const char *folder,
                              const struct pb_scene_entry *entry, int64_t reader,
                              struct pb_err *err, struct pb_raster_file *out)
{
    if (entry->joined != NULL) {
        walk = entry->joined;
        folder = entry->joined->folder;
    }
    int fd = entry->is_link ? -ELOOP : pb_scene_walk_open_file(walk, entry->path, reader);
    if (fd == -ELOOP)
        return pb_fail_at(err, PB_E_INPUT_LINK, folder, 0, 0,
                          "%.200s is a symbolic link, or its path contains one", entry->path);
    size_t bytes = strlen(folder) + strlen(entry->path) + 2;
    out->path = malloc(bytes);
    out->fd = fd;
    out->handed = true;
    if (out->path == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
    (void)snprintf(out->path, bytes, "%s/%s", folder, entry->path);
    if (fd == -ENOENT)
        return pb_fail_at(err, PB_E_INPUT_CHANGED, folder, 0, 0,
                          "%.200s went away while the scene was opened", entry->path);
    if (fd == -EACCES || fd == -EPERM)
        return pb_fail_at(err, PB_E_INPUT_MISSING, folder, 0, 0, "cannot open %.200s: %s",
                          entry->path, strerror(-fd));
    if (fd < 0 || fstat(fd, &out->stat) != 0)
        return pb_raster_file_fail(err, fd < 0 ? -fd : errno, out->path, "cannot open the file");
    if (!S_ISREG(out->stat.st_mode))
        return pb_fail_at(err, PB_E_INPUT_CHANGED, folder, 0, 0,
                          "%.200s was replaced while the scene was opened", entry->path);
    out->bytes = (uint64_t)out->stat.st_size;
    out->mtime_ns = pb_raster_file_mtime_ns(&out->stat);
    return 0;
}

bool pb_scene_walk_fits(const char *pattern, const char *path)
{
    if (strchr(pattern, '/') != NULL)
        return pb_glob_fits(pattern, path, PB_GLOB_ANY_CASE | PB_GLOB_GROUPS | PB_GLOB_PATH);
    return pb_glob_fits(pattern, pb_base_name(path), PB_GLOB_ANY_CASE | PB_GLOB_GROUPS);
}

#define CHUNK (1 << 20)

static int no_memory(const char *folder, struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
}

static int compare_path(const void *path, const void *entry)
{
    return strcmp(path, ((const struct pb_scene_entry *)entry)->path);
}

/* Returns true if the sorted entries of the walk include the path. */
static bool has(const struct pb_scene_walk *walk, const char *path)
{
    return walk->n > 0 &&
           bsearch(path, walk->entry, walk->n, sizeof *walk->entry, compare_path) != NULL;
}

/* --- comparison of files with the delivery ---------------------------------------------------- */

/* A delivered file of known state. */
struct came {
    const char *folder, *path;
    const struct pb_manifest_entry *entry;
};

static int by_folder(const void *a, const void *b)
{
    return strcmp(((const struct came *)a)->folder, ((const struct came *)b)->folder);
}

static int by_place(const void *a, const void *b)
{
    int order = by_folder(a, b);
    return order != 0 ? order
                      : strcmp(((const struct came *)a)->path, ((const struct came *)b)->path);
}

/* Lists the delivered files of known state, sorted by their places; malloc'd, NULL: out of memory.
 */
static struct came *list_came(const struct pb_scene_manifest *manifest, size_t *out_n)
{
    struct came *came = calloc(manifest->n_entries + 1, sizeof *came);
    *out_n = 0;
    for (size_t i = 0; came != NULL && i < manifest->n_entries; i++) {
        const struct pb_manifest_entry *entry = &manifest->entry[i];
        if (entry->bytes >= 0)
            came[(*out_n)++] = (struct came){manifest->root[entry->root], entry->path, entry};
    }
    if (came != NULL)
        qsort(came, *out_n, sizeof *came, by_place);
    return came;
}

/* Checks that the open file has that checksum: 1, 0, or a negative errno. */
static int has_checksum(int fd, const char *checksum)
{
    char text[PB_CHECKSUM_TEXT_BYTES] = "";
    enum pb_checksum kind;
    const char *digits = NULL;
    ssize_t n = 0;
    if (pb_checksum_parse(checksum, &kind, &digits) != 0 || digits == NULL)
        return 0;
    struct pb_sum *sum = pb_sum_create(kind);
    char *buffer = malloc(CHUNK);
    int rc = sum != NULL && buffer != NULL ? 0 : -ENOMEM;
    while (rc == 0 && ((n = read(fd, buffer, CHUNK)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            pb_sum_add(sum, buffer, (size_t)n);
    if (n < 0)
        rc = -errno;
    rc = rc ? rc : pb_sum_text(sum, text);
    free(buffer);
    pb_sum_destroy(sum);
    return rc ? rc : strcmp(text, checksum) == 0;
}

/* Checks that the open file is the delivered one: 1, 0, or a negative errno. */
static int is_what_came(const struct pb_manifest_entry *came, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (came->bytes != st.st_size)
        return 0;
    /* A file that was restored, or whose permissions were changed, has another ctime. */
    const bool is_unchanged = came->mtime_ns == pb_clock_ns(&st.st_mtim);
    if ((is_unchanged && came->ctime_ns == pb_clock_ns(&st.st_ctim)) || came->checksum == NULL)
        return is_unchanged;
    return has_checksum(fd, came->checksum);
}

static int check_entry(const struct pb_scene_joined *joined, const struct pb_manifest_entry *came,
                       const struct pb_scene_walk *from, struct pb_err *err)
{
    int fd = pb_scene_walk_open_file(from, came->path, -1);
    int rc = fd >= 0 ? is_what_came(came, fd) : fd;
    if (fd >= 0)
        (void)close(fd);
    if (rc == 1)
        return 0;
    if (rc < 0)
        return pb_io_fail(err, -rc, "cannot read", came->path);
    return pb_fail_at(err, PB_E_INPUT_GONE, from->folder, 0, 0,
                      "it joins the scene that job %s made, and %.200s of that was changed in the "
                      "archive since: it is not the file that was delivered",
                      joined->by, came->path);
}

/* --- joining --------------------------------------------------------------------------------- */

/* Decides if the entry of a joined folder is used: 1, 0, or a negative errno and *err. */
static int is_taken(const struct pb_scene_joined *joined, const struct came *came, size_t n,
                    const struct pb_scene_entry *entry, struct pb_err *err)
{
    const struct came place = {entry->joined->folder, entry->path, NULL};
    const struct came *found = bsearch(&place, came, n, sizeof place, by_place);
    if (found == NULL) /* a file that was added later to a folder whose files are known */
        return bsearch(&place, came, n, sizeof place, by_folder) == NULL;
    int rc = check_entry(joined, found->entry, entry->joined, err);
    return rc ? rc : 1;
}

/* Removes the entries of joined folders that are not used. */
static int choose(const struct pb_scene_joined *joined, struct pb_scene_walk *walk,
                  struct pb_err *err)
{
    size_t n, kept = 0;
    struct came *came = list_came(joined->manifest, &n);
    int rc = 0;
    if (came == NULL)
        return no_memory(joined->manifest->root[0], err);
    if (walk->n > 0)
        qsort(walk->entry, walk->n, sizeof *walk->entry, by_path);
    for (size_t i = 0; i < walk->n; i++) {
        struct pb_scene_entry *entry = &walk->entry[i];
        int taken = entry->joined == NULL;
        if (rc == 0 && !taken &&
            (kept == 0 || strcmp(entry->path, walk->entry[kept - 1].path) != 0))
            taken = is_taken(joined, came, n, entry, err);
        rc = taken < 0 ? taken : rc;
        if (taken == 1)
            walk->entry[kept++] = *entry;
        else
            free(entry->path);
    }
    walk->n = kept;
    free(came);
    return rc;
}

/* Closes the folder, which is opened by that path (copied) for each file from now on: the count
 * of such folders may exceed the limit of descriptors. Returns 0 or -ENOMEM. */
static int rest(struct pb_scene_walk *walk, const char *folder)
{
    walk->folder = strdup(folder);
    if (walk->folder == NULL)
        return -ENOMEM;
    (void)close(walk->fd);
    walk->fd = -1;
    return 0;
}

/* Moves the entries of a folder to the walk. */
static int join(const char *folder, struct pb_scene_walk *walk, struct pb_err *err)
{
    struct pb_scene_walk *from = &walk->joined[walk->n_joined];
    if (access(folder, F_OK) != 0)
        return 0;
    int rc = pb_scene_walk_open(folder, err, from);
    walk->n_joined++;
    if (rc != 0)
        return rc;
    if (rest(from, folder) != 0)
        return no_memory(folder, err);
    if (walk->n + from->n > walk->room) {
        const size_t room = 2 * (walk->n + from->n);
        struct pb_scene_entry *more = realloc(walk->entry, room * sizeof *more);
        if (more == NULL)
            return no_memory(folder, err);
        walk->entry = more;
        walk->room = room;
    }
    for (size_t i = 0; i < from->n; i++) {
        from->entry[i].joined = from;
        walk->entry[walk->n++] = from->entry[i];
    }
    from->n = 0;
    return 0;
}

/* Checks that no file of the earlier jobs is missing. */
static int check(const struct pb_scene_joined *joined, const char *folder,
                 const struct pb_scene_walk *walk, struct pb_err *err)
{
    const struct pb_scene_manifest *manifest = joined->manifest;
    size_t n = 0, n_gone = 0;
    const char *first = NULL;
    for (size_t i = 0; i < manifest->n_entries; i++) {
        const struct pb_manifest_entry *entry = &manifest->entry[i];
        n += entry->root > 0;
        if (entry->root == 0 || has(walk, entry->path))
            continue;
        first = first ? first : entry->path;
        n_gone++;
    }
    if (n_gone == 0)
        return 0;
    return pb_fail_at(err, PB_E_INPUT_GONE, folder, 0, 0,
                      "it joins the scene that job %s made, and %zu of the %zu files of that %s in "
                      "the archive no more: %.200s%s",
                      joined->by, n_gone, n, n_gone == 1 ? "is" : "are", first,
                      n_gone > 1 ? " and others" : "");
}

int pb_scene_joined_add(const struct pb_scene_joined *joined, const char *folder,
                        struct pb_scene_walk *walk, struct pb_err *err)
{
    int rc = 0;
    if (joined->manifest == NULL || joined->manifest->n_roots < 2)
        return pb_fail_at(err, PB_E_INPUT_GONE, folder, 0, 0,
                          "it was to join the scene that job %s made, and the service keeps the "
                          "files of that no more: input.complete.reopen is over",
                          joined->by);
    walk->joined = calloc(joined->manifest->n_roots + 1, sizeof *walk->joined);
    if (walk->joined == NULL)
        return no_memory(folder, err);
    for (size_t i = 1; i < joined->manifest->n_roots && rc == 0; i++)
        rc = join(joined->manifest->root[i], walk, err);
    rc = rc ? rc : choose(joined, walk, err);
    return rc ? rc : check(joined, folder, walk, err);
}
