/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder is a directory with the manifest of a pipeline. A reading walks over the directories,
 * and reads a folder's files only if its manifest is another one: publications replace whole
 * folders, and write the manifest last. A folder without an item, or with older items than those
 * that the index may have, is kept as two numbers: memory does not grow with the archive. */
#include "service/web/index.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/output/output_path.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/publish/manifest.h"
#include "service/web/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ITEM_TYPE "application/geo+json"
#define DEPTH_MAX (PB_OUTPUT_PARTS_MAX + 2)
#define ITEM_MAX  ((size_t)8 << 20)
#define ID_BYTES  1536 /* limit of ids; others are left out */
#define LEFT_MAX  1000000

struct pb_web_folder {
    char *path;       /* below the directory of products */
    int64_t stamp[4]; /* inode, size and times of its manifest */
    double newest;    /* start of its newest item */
    struct pb_web_item *item;
    size_t n;
    struct pb_web_folder *owner; /* the folder of the other index that owns the items; NULL = own */
};

/* Digests of a folder that is left out. */
struct pb_web_left {
    uint64_t path, stamp;
    size_t n_items;
};

/* --- items --- */

void pb_web_item_fini(struct pb_web_item *item)
{
    free(item->path);
    free(item->id);
    free(item->collection);
}

int pb_web_item_copy(const struct pb_web_item *item, struct pb_web_item *out)
{
    *out = *item;
    out->path = strdup(item->path);
    out->id = strdup(item->id);
    out->collection = strdup(item->collection);
    if (out->path != NULL && out->id != NULL && out->collection != NULL)
        return 0;
    pb_web_item_fini(out);
    return -ENOMEM;
}

int pb_web_item_order(double start, const char *path, const struct pb_web_item *item)
{
    return start != item->start ? (start > item->start ? -1 : 1) : strcmp(path, item->path);
}

static int compare_items(const void *a, const void *b)
{
    const struct pb_web_item *const *one = a, *const *other = b;
    return pb_web_item_order((*one)->start, (*one)->path, *other);
}

/* Reads an open file, malloc'd. Returns 0; 1: no file of an item; or a negative errno. */
static int read_open(int fd, char **out, size_t *out_bytes)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > ITEM_MAX)
        return 1;
    char *text = malloc((size_t)st.st_size + 1);
    if (text == NULL)
        return -ENOMEM;
    const ssize_t n = read(fd, text, (size_t)st.st_size);
    if (n < 0) {
        const int error = errno;
        free(text);
        return -error;
    }
    *out = text;
    *out_bytes = (size_t)n;
    return 0;
}

/* The same for a file of the open directory. */
static int read_text(int directory, const char *name, char **out, size_t *out_bytes)
{
    const int fd = pb_web_open_below(directory, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return fd == -ENOENT ? 1 : fd;
    const int rc = read_open(fd, out, out_bytes);
    (void)close(fd);
    return rc;
}

/* Reads place and time of an item. Returns false without a time. */
static bool take_times(const struct pb_json_value *root, struct pb_web_item *item)
{
    if (!pb_collection_extent_take(root, &item->extent))
        return false;
    item->start = pb_meta_julian_day(item->extent.start);
    item->end = pb_meta_julian_day(item->extent.end);
    return isfinite(item->start) && isfinite(item->end);
}

/* Reads an item of the open folder. Returns 0; 1: not an item; or a negative errno. */
static int read_item(int directory, const char *folder, const char *file, const char *pipeline,
                     struct pb_web_item *out)
{
    struct pb_json_value *root = NULL;
    struct pb_web_item item = {0};
    size_t bytes = 0;
    char *text = NULL;
    int rc = read_text(directory, file, &text, &bytes);
    if (rc != 0)
        return rc;
    rc = pb_json_parse(text, bytes, ITEM_MAX, &root);
    free(text);
    if (rc != 0)
        return rc == -ENOMEM ? rc : 1;
    const char *id = pb_json_get_text(root, "id");
    const char *collection = pb_json_get_text(root, "collection");
    collection = collection != NULL && collection[0] != '\0' ? collection : pipeline;
    rc = 1;
    if (id != NULL && id[0] != '\0' && strlen(id) < ID_BYTES && strlen(collection) < ID_BYTES &&
        take_times(root, &item)) {
        char *path = NULL;
        rc = asprintf(&path, "%s/%s", folder, file) < 0 ? -ENOMEM : 0;
        const struct pb_web_item found = {
            path,    (char *)(uintptr_t)id, (char *)(uintptr_t)collection, item.extent, item.start,
            item.end};
        rc = rc ? rc : pb_web_item_copy(&found, out);
        free(path);
    }
    pb_json_release(root);
    return rc;
}

/* --- folders --- */

bool pb_web_index_is_scarce(int failure)
{
    return failure == -ENOMEM || failure == -EMFILE || failure == -ENFILE;
}

/* Counts what is unreadable. Returns 0, or the failure if the update has to be given up. */
static int count_failure(struct pb_web_index *index, int failure)
{
    if (pb_web_index_is_scarce(failure))
        return failure;
    index->unreadable++;
    return 0;
}

static void free_folder(struct pb_web_folder *folder)
{
    for (size_t i = 0; i < folder->n && folder->owner == NULL; i++)
        pb_web_item_fini(&folder->item[i]);
    if (folder->owner == NULL)
        free(folder->item);
    free(folder->path);
}

void pb_web_index_free(struct pb_web_index *index)
{
    for (size_t i = 0; i < index->n; i++)
        free_folder(&index->folder[i]);
    free(index->folder);
    free(index->item);
    free(index->left);
    pb_web_collections_free(index->collection, index->n_collections);
    *index = (struct pb_web_index){0};
}

static int compare_folders(const void *a, const void *b)
{
    const struct pb_web_folder *one = a, *other = b;
    return strcmp(one->path, other->path);
}

/* Takes the items of the folder from the index before, if the manifest is the same. */
static bool take_known(struct pb_web_index *before, struct pb_web_folder *folder)
{
    struct pb_web_folder *known =
        before->n > 0 ? bsearch(folder, before->folder, before->n, sizeof *folder, compare_folders)
                      : NULL;
    if (known == NULL || memcmp(known->stamp, folder->stamp, sizeof folder->stamp) != 0)
        return false;
    folder->item = known->item;
    folder->n = known->n;
    folder->owner = known;
    return true;
}

/* Reads the items that the manifest of the open folder names. Returns 0, a negative errno, or 1:
 * no folder of a pipeline. */
static int read_folder(int directory, struct pb_web_folder *folder)
{
    struct pb_manifest manifest;
    int rc = pb_manifest_read(directory, &manifest);
    if (rc != 0)
        return rc == -EINVAL || rc == -ENOENT ? 1 : rc;
    folder->item = calloc(manifest.n_files + 1, sizeof *folder->item);
    rc = manifest.pipeline[0] == '\0' ? 1 : folder->item == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < manifest.n_files && rc == 0; i++)
        if (strcmp(manifest.file[i].media_type, ITEM_TYPE) == 0) {
            const int read = read_item(directory, folder->path, manifest.file[i].file,
                                       manifest.pipeline, &folder->item[folder->n]);
            folder->n += read == 0;
            rc = read < 0 ? read : 0;
        }
    pb_manifest_fini(&manifest);
    return rc;
}

/* Makes room for one more entry of an array. */
static int make_room(void **array, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return 0;
    const size_t more = *room > 0 ? 2 * *room : 64;
    void *larger = realloc(*array, more * bytes);
    if (larger == NULL)
        return -ENOMEM;
    *array = larger;
    *room = more;
    return 0;
}

static int add_folder(struct pb_web_index *index, const struct pb_web_folder *folder)
{
    void *folders = index->folder;
    const int rc = make_room(&folders, index->n, &index->room, sizeof *folder);
    index->folder = folders;
    if (rc != 0)
        return rc;
    index->folder[index->n++] = *folder;
    index->n_items += folder->n;
    return 0;
}

/* --- folders that are left out --- */

static uint64_t hash_of(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t sum = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ at[i]) * 1099511628211u;
    return sum;
}

static struct pb_web_left left_of(const struct pb_web_folder *folder)
{
    return (struct pb_web_left){.path = hash_of(folder->path, strlen(folder->path)),
                                .stamp = hash_of(folder->stamp, sizeof folder->stamp),
                                .n_items = folder->n};
}

static int compare_left(const void *a, const void *b)
{
    const struct pb_web_left *one = a, *other = b;
    return one->path != other->path ? (one->path < other->path ? -1 : 1) : 0;
}

/* Keeps that a folder is left out. With LEFT_MAX such folders a further one is read again by each
 * update. */
static int leave(struct pb_web_index *index, const struct pb_web_left *left)
{
    void *all = index->left;
    index->n_older += left->n_items;
    if (index->n_left == LEFT_MAX)
        return 0;
    const int rc = make_room(&all, index->n_left, &index->left_room, sizeof *left);
    index->left = all;
    if (rc == 0)
        index->left[index->n_left++] = *left;
    return rc;
}

/* Leaves out the folder if it was left out before, with the same manifest. Returns 1 if it was
 * not. */
static int leave_again(const struct pb_web_index *before, struct pb_web_index *index,
                       const struct pb_web_folder *folder)
{
    struct pb_web_left left = left_of(folder);
    const struct pb_web_left *known =
        before->n_left > 0 ? bsearch(&left, before->left, before->n_left, sizeof left, compare_left)
                           : NULL;
    return known != NULL && known->stamp == left.stamp ? leave(index, known) : 1;
}

static int compare_newest(const void *a, const void *b)
{
    const struct pb_web_folder *one = a, *other = b;
    return one->newest != other->newest ? (one->newest > other->newest ? -1 : 1)
                                        : compare_folders(a, b);
}

/* Leaves out the folders without an item among the newest `items_max`. */
static int leave_oldest(struct pb_web_index *index, size_t items_max)
{
    size_t kept = 0, n_items = 0;
    int rc = 0;
    qsort(index->folder, index->n, sizeof *index->folder, compare_newest);
    while (kept < index->n && n_items < items_max)
        n_items += index->folder[kept++].n;
    for (size_t i = kept; i < index->n && rc == 0; i++) {
        const struct pb_web_left left = left_of(&index->folder[i]);
        rc = leave(index, &left);
    }
    for (; index->n > kept && rc == 0; index->n--)
        free_folder(&index->folder[index->n - 1]);
    index->n_items = rc == 0 ? n_items : index->n_items;
    return rc;
}

/* --- the walk --- */

struct walk {
    struct pb_web_index *before, *index;
    size_t items_max;
    const atomic_bool *is_ending;
    char path[PATH_MAX]; /* path of the directory, below the directory of products */
};

/* Adds a folder that was read (taken), or leaves it out if it has no item. Its path is borrowed. */
static int keep_folder(struct walk *at, struct pb_web_folder *folder)
{
    const struct pb_web_left left = left_of(folder);
    if (folder->n == 0) {
        free(folder->item);
        return leave(at->index, &left);
    }
    folder->newest = folder->item[0].start;
    for (size_t i = 1; i < folder->n; i++)
        folder->newest = fmax(folder->newest, folder->item[i].start);
    folder->path = strdup(folder->path);
    const int rc = folder->path ? add_folder(at->index, folder) : -ENOMEM;
    if (rc != 0)
        free_folder(folder);
    return rc;
}

/* Takes the directory if it is a folder of a pipeline. One that is unreadable is not taken: the
 * next update tries it again. Returns 0; 1: it is no folder; negative: the update is given up. */
static int take_folder(struct walk *at, int directory)
{
    struct pb_web_folder folder = {.path = at->path};
    struct stat st;
    if (at->path[0] == '\0')
        return 1;
    if (fstatat(directory, PB_MANIFEST_FILE, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 1 : count_failure(at->index, -errno);
    folder.stamp[0] = (int64_t)st.st_ino;
    folder.stamp[1] = st.st_size;
    folder.stamp[2] = pb_clock_ns(&st.st_mtim);
    folder.stamp[3] = pb_clock_ns(&st.st_ctim);
    int rc = leave_again(at->before, at->index, &folder);
    if (rc != 1)
        return rc;
    rc = take_known(at->before, &folder) ? 0 : read_folder(directory, &folder);
    if (rc != 0) {
        folder.path = NULL;
        free_folder(&folder);
    } else {
        rc = keep_folder(at, &folder);
    }
    /* Not at each item above the limit: a call sorts all folders. */
    if (rc == 0 && at->index->n_items > at->items_max + at->items_max / 2)
        rc = leave_oldest(at->index, at->items_max);
    return rc < 0 ? count_failure(at->index, rc) : rc;
}

static int walk(struct walk *walk, int parent, const char *name, int depth);

/* Walks over the directories in an open one (taken). */
static int walk_inside(struct walk *at, int directory, int depth)
{
    const size_t used = strlen(at->path);
    DIR *list = fdopendir(directory);
    const struct dirent *entry;
    int rc = 0;
    if (list == NULL) {
        (void)close(directory);
        return -ENOMEM;
    }
    while (rc == 0 && (errno = 0, entry = readdir(list)) != NULL) {
        const bool may_be = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        const int n = snprintf(at->path + used, sizeof at->path - used, "%s%s", used > 0 ? "/" : "",
                               entry->d_name);
        if (may_be && entry->d_name[0] != '.' && n > 0 && used + (size_t)n < sizeof at->path)
            rc = walk(at, dirfd(list), entry->d_name, depth + 1);
    }
    if (rc == 0 && errno != 0)
        rc = count_failure(at->index, -errno);
    at->path[used] = '\0';
    (void)closedir(list);
    return rc;
}

static int walk(struct walk *at, int parent, const char *name, int depth)
{
    const int directory = atomic_load(at->is_ending)
                              ? -ECANCELED
                              : pb_web_open_below(parent, name, O_RDONLY | O_DIRECTORY);
    if (directory == -ECANCELED)
        return directory;
    if (directory < 0)
        return directory == -ENOENT ? 0 : count_failure(at->index, directory);
    int rc = take_folder(at, directory);
    if (rc == 1 && depth < DEPTH_MAX)
        return walk_inside(at, directory, depth);
    (void)close(directory);
    return rc == 1 ? 0 : rc;
}

/* --- the index --- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Makes the collections from the items. */
static int make_collections(struct pb_web_index *index)
{
    const char **name = calloc(index->n_items + 1, sizeof *name);
    size_t n = 0;
    for (size_t i = 0; name != NULL && i < index->n_items; i++)
        name[i] = index->item[i]->collection;
    if (name != NULL && index->n_items > 0)
        qsort(name, index->n_items, sizeof *name, compare_names);
    for (size_t i = 0; name != NULL && i < index->n_items; i++)
        if (n == 0 || strcmp(name[n - 1], name[i]) != 0)
            name[n++] = name[i];
    index->collection = calloc(n + 1, sizeof *index->collection);
    bool made = name != NULL && index->collection != NULL;
    for (size_t i = 0; i < n && made; i++) {
        index->collection[i].id = strdup(name[i]);
        index->n_collections += made = index->collection[i].id != NULL;
    }
    free(name);
    for (size_t i = 0; i < index->n_items && made; i++) {
        const struct pb_web_item *item = index->item[i];
        struct pb_web_collection *own = bsearch(&item->collection, index->collection, n,
                                                sizeof *own, compare_names); /* id is first */
        if (own->n_items == 0)
            own->extent = item->extent;
        else
            (void)pb_collection_extent_grow(&own->extent, &item->extent);
        own->n_items++;
    }
    return made ? 0 : -ENOMEM;
}

/* Sorts the folders. A directory that was renamed during the walk may be among them twice. */
static void sort_folders(struct pb_web_index *index)
{
    size_t n = 0;
    if (index->n > 0)
        qsort(index->folder, index->n, sizeof *index->folder, compare_folders);
    for (size_t i = 0; i < index->n; i++) {
        if (n > 0 && compare_folders(&index->folder[n - 1], &index->folder[i]) == 0)
            free_folder(&index->folder[i]);
        else
            index->folder[n++] = index->folder[i];
    }
    index->n = n;
}

/* Lists the items of the folders. If many items were removed, the next update reads the folders
 * again that were left out. */
static int finish(struct pb_web_index *index, size_t items_max)
{
    size_t n = 0;
    const int rc = index->n_items > items_max ? leave_oldest(index, items_max) : 0;
    if (rc != 0)
        return rc;
    sort_folders(index);
    if (index->n_left > 0)
        qsort(index->left, index->n_left, sizeof *index->left, compare_left);
    index->item = malloc((index->n_items + 1) * sizeof(struct pb_web_item *));
    if (index->item == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < index->n; i++)
        for (size_t k = 0; k < index->folder[i].n; k++)
            index->item[n++] = &index->folder[i].item[k];
    if (n > 0)
        qsort(index->item, n, sizeof(struct pb_web_item *), compare_items);
    index->n_items = n < items_max ? n : items_max;
    index->n_older += n - index->n_items;
    if (index->n_older > 0 && index->n_items < items_max - items_max / 10)
        index->n_left = 0;
    return make_collections(index);
}

int pb_web_index_read(const char *products, struct pb_web_index *before, size_t items_max,
                      const atomic_bool *is_ending, struct pb_web_index *out)
{
    struct walk at = {
        .before = before, .index = out, .items_max = items_max, .is_ending = is_ending};
    const int root = open(products, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *out = (struct pb_web_index){0};
    int rc = root < 0 ? -errno : walk(&at, root, ".", 0);
    if (root >= 0)
        (void)close(root);
    rc = rc ? rc : finish(out, items_max);
    for (size_t i = 0; i < out->n && rc == 0; i++)
        if (out->folder[i].owner != NULL) {
            out->folder[i].owner->owner = &out->folder[i];
            out->folder[i].owner = NULL;
        }
    if (rc != 0)
        pb_web_index_free(out);
    return rc;
}

void pb_web_collections_free(struct pb_web_collection *collections, size_t n)
{
    for (size_t i = 0; i < n && collections != NULL; i++)
        free(collections[i].id);
    free(collections);
}
