/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/scene/scene_joined.h"

#include "pipeline/io/checksum.h"
#include "pipeline/io/io_fail.h"
#include "pipeline/io/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1 << 20)

static int no_memory(const char *folder, struct pb_err *err)
{
    return pb_fail(err, PB_E_MEMORY, "out of memory for the files of %s", folder);
}

/* Orders entries by path; those of one path as the folders are listed, the scene's own first. */
static int by_path(const void *a, const void *b)
{
    const struct pb_scene_entry *left = a, *right = b;
    const uintptr_t from = (uintptr_t)left->joined, other = (uintptr_t)right->joined;
    int order = strcmp(left->path, right->path);
    return order != 0 ? order : (from > other) - (from < other);
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

static int64_t ns_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

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
    const bool is_unchanged = came->mtime_ns == ns_of(&st.st_mtim);
    if ((is_unchanged && came->ctime_ns == ns_of(&st.st_ctim)) || came->checksum == NULL)
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
    int rc = came != NULL ? 0 : no_memory(joined->manifest->root[0], err);
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
    if (pb_scene_walk_rest(from, folder) != 0)
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

const char *pb_scene_joined_inner(const struct pb_scene_walk *walk, const char *folder,
                                  const char *path)
{
    const char *inner = pb_path_below(path, folder);
    for (size_t i = 0; inner == NULL && i < walk->n_joined; i++)
        inner = pb_path_below(path, walk->joined[i].folder);
    return inner != NULL ? inner : path;
}
