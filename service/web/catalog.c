/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder is a directory with the manifest of a pipeline. An update walks over the directories,
 * and reads a folder's files only if its manifest is another one: publications replace whole
 * folders, and write the manifest last. An update has a thread of its own, because it may take
 * longer than a request may. It works without the lock: only it changes the folders; the others
 * use the index as it was. */
#include "service/web/catalog.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "config/output/output_path.h"
#include "pipeline/metadata/meta_time.h"
#include "pipeline/publish/manifest.h"
#include "service/base/log.h"
#include "service/web/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ITEM_TYPE  "application/geo+json"
#define PAUSE_MS   500 /* between updates, and ten times the length of the last one */
#define PAUSES     10
#define LONGEST_MS 10000 /* limit of the latter */
#define WAIT_MS    8000  /* limit of a request's wait for an update */
#define DEPTH_MAX  (PB_OUTPUT_PARTS_MAX + 2)
#define ITEM_MAX   ((size_t)8 << 20)

struct folder {
    char *path;       /* below the directory of products */
    int64_t stamp[4]; /* inode, size and times of its manifest */
    struct pb_web_item *item;
    size_t n;
    struct folder *owner; /* the folder of the other index whose items these are; NULL = own */
};

struct index {
    struct folder *folder; /* n, by path */
    size_t n, room;
    struct pb_web_item **item; /* n_items, newest first */
    size_t n_items;
    struct pb_web_collection *collection; /* n_collections, by id */
    size_t n_collections;
    size_t unreadable, too_many; /* folders, items */
};

struct pb_web_catalog {
    atomic_bool is_ending;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t done;  /* signalled at the end of an update */
    struct index index;   /* the updating thread reads it without the lock, like products */
    char products[PATH_MAX];
    bool is_updating, is_read;
    bool has_thread; /* the last update's is not joined yet */
    pthread_t thread;
    int failure; /* result of the last update: 0 or negative errno */
    struct pb_web_pace pace;
};

/* --- items --- */

void pb_web_item_fini(struct pb_web_item *item)
{
    free(item->path);
    free(item->id);
    free(item->collection);
}

static int copy_item(const struct pb_web_item *item, struct pb_web_item *out)
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

static int order_of(double start, const char *path, const struct pb_web_item *item)
{
    return start != item->start ? (start > item->start ? -1 : 1) : strcmp(path, item->path);
}

static int compare_items(const void *a, const void *b)
{
    const struct pb_web_item *const *one = a, *const *other = b;
    return order_of((*one)->start, (*one)->path, *other);
}

void pb_web_item_cursor(const struct pb_web_item *item, char out[PB_WEB_CURSOR_BYTES])
{
    (void)snprintf(out, PB_WEB_CURSOR_BYTES, "%s,%s", item->extent.start, item->path);
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
    if (id != NULL && id[0] != '\0' && strlen(id) < PB_WEB_ID_BYTES_MAX &&
        strlen(collection) < PB_WEB_ID_BYTES_MAX && take_times(root, &item)) {
        char *path = NULL;
        rc = asprintf(&path, "%s/%s", folder, file) < 0 ? -ENOMEM : 0;
        const struct pb_web_item found = {
            path,    (char *)(uintptr_t)id, (char *)(uintptr_t)collection, item.extent, item.start,
            item.end};
        rc = rc ? rc : copy_item(&found, out);
        free(path);
    }
    pb_json_release(root);
    return rc;
}

/* --- folders --- */

/* Returns true for a failure that each further file would have. */
static bool is_scarce(int failure)
{
    return failure == -ENOMEM || failure == -EMFILE || failure == -ENFILE;
}

/* Counts what is unreadable. Returns 0, or the failure if the update has to be given up. */
static int count_failure(struct index *index, int failure)
{
    if (is_scarce(failure))
        return failure;
    index->unreadable++;
    return 0;
}

static void free_folder(struct folder *folder)
{
    for (size_t i = 0; i < folder->n && folder->owner == NULL; i++)
        pb_web_item_fini(&folder->item[i]);
    if (folder->owner == NULL)
        free(folder->item);
    free(folder->path);
}

static void free_index(struct index *index)
{
    for (size_t i = 0; i < index->n; i++)
        free_folder(&index->folder[i]);
    free(index->folder);
    free(index->item);
    pb_web_collections_free(index->collection, index->n_collections);
    *index = (struct index){0};
}

static int compare_folders(const void *a, const void *b)
{
    const struct folder *one = a, *other = b;
    return strcmp(one->path, other->path);
}

/* Takes the items of the folder from the index before, if the manifest is the same. */
static bool take_known(struct index *before, struct folder *folder)
{
    struct folder *known =
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
static int read_folder(int directory, struct folder *folder)
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

static int add_folder(struct index *index, const struct folder *folder)
{
    if (index->n == index->room) {
        const size_t room = index->room > 0 ? 2 * index->room : 64;
        struct folder *more = realloc(index->folder, room * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        index->folder = more;
        index->room = room;
    }
    index->folder[index->n++] = *folder;
    index->n_items += folder->n;
    return 0;
}

/* Takes the directory if it is a folder of a pipeline. One that is unreadable is not taken: the
 * next update tries it again. Returns 0; 1: it is no folder; negative: the update is given up. */
static int take_folder(struct index *before, struct index *index, int directory, const char *path)
{
    struct folder folder = {.path = (char *)(uintptr_t)path};
    struct stat st;
    if (path[0] == '\0')
        return 1;
    if (fstatat(directory, PB_MANIFEST_FILE, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 1 : count_failure(index, -errno);
    folder.stamp[0] = (int64_t)st.st_ino;
    folder.stamp[1] = st.st_size;
    folder.stamp[2] = pb_clock_ns(&st.st_mtim);
    folder.stamp[3] = pb_clock_ns(&st.st_ctim);
    int rc = take_known(before, &folder) ? 0 : read_folder(directory, &folder);
    folder.path = rc == 0 ? strdup(path) : NULL;
    if (rc == 0 && folder.path == NULL)
        rc = -ENOMEM;
    rc = rc ? rc : add_folder(index, &folder);
    if (rc != 0)
        free_folder(&folder);
    return rc < 0 ? count_failure(index, rc) : rc;
}

struct walk {
    struct index *before, *index;
    const atomic_bool *is_ending;
    char path[PATH_MAX]; /* path of the directory, below the directory of products */
};

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
    int rc = take_folder(at->before, at->index, directory, at->path);
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
static int make_collections(struct index *index)
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
static void sort_folders(struct index *index)
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

/* Lists the items of the folders. */
static int finish(struct index *index)
{
    size_t n = 0;
    sort_folders(index);
    index->item = malloc((index->n_items + 1) * sizeof(struct pb_web_item *));
    if (index->item == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < index->n; i++)
        for (size_t k = 0; k < index->folder[i].n; k++)
            index->item[n++] = &index->folder[i].item[k];
    if (n > 0)
        qsort(index->item, n, sizeof(struct pb_web_item *), compare_items);
    index->too_many = n > PB_WEB_ITEMS_MAX ? n - PB_WEB_ITEMS_MAX : 0;
    index->n_items = n - index->too_many;
    return make_collections(index);
}

/* Makes the next index; it owns the items of the one before, unless it fails. */
static int read_products(struct pb_web_catalog *catalog, struct index *out)
{
    struct walk at = {.before = &catalog->index, .index = out, .is_ending = &catalog->is_ending};
    const int root = open(catalog->products, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = root < 0 ? -errno : walk(&at, root, ".", 0);
    if (root >= 0)
        (void)close(root);
    rc = rc ? rc : finish(out);
    for (size_t i = 0; i < out->n && rc == 0; i++)
        if (out->folder[i].owner != NULL) {
            out->folder[i].owner->owner = &out->folder[i];
            out->folder[i].owner = NULL;
        }
    if (rc != 0)
        free_index(out);
    return rc;
}

struct pb_web_catalog *pb_web_catalog_create(void)
{
    struct pb_web_catalog *catalog = calloc(1, sizeof *catalog);
    pthread_condattr_t monotonic;
    if (catalog == NULL)
        return NULL;
    (void)pthread_mutex_init(&catalog->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&catalog->done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    return catalog;
}

void pb_web_catalog_destroy(struct pb_web_catalog *catalog)
{
    if (catalog == NULL)
        return;
    atomic_store(&catalog->is_ending, true);
    if (catalog->has_thread)
        (void)pthread_join(catalog->thread, NULL);
    free_index(&catalog->index);
    (void)pthread_cond_destroy(&catalog->done);
    (void)pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

static void report(const struct index *before, const struct index *now)
{
    if (now->unreadable > 0 && now->unreadable != before->unreadable)
        pb_log(PB_LOG_WARNING,
               "catalogue: %zu directories of products are unreadable: their items "
               "are missing until they can be read",
               now->unreadable);
    if (now->too_many > 0 && before->too_many == 0)
        pb_log(PB_LOG_WARNING, "catalogue: more than %d items: the oldest are missing",
               PB_WEB_ITEMS_MAX);
}

void pb_web_pace_begin(struct pb_web_pace *pace)
{
    pace->is_changed = false;
}

void pb_web_pace_end(struct pb_web_pace *pace, int64_t begun_ms, int64_t now_ms)
{
    const int64_t took_ms = now_ms - begun_ms, pause_ms = PAUSE_MS + PAUSES * took_ms;
    pace->next_ms = now_ms + (pause_ms < LONGEST_MS ? pause_ms : LONGEST_MS);
    pace->soon_ms = now_ms + (took_ms > PAUSE_MS ? took_ms : PAUSE_MS);
}

bool pb_web_pace_is_due(const struct pb_web_pace *pace, int64_t now_ms)
{
    return now_ms >= pace->next_ms || (pace->is_changed && now_ms >= pace->soon_ms);
}

/* The thread of an update: reads the changes. */
static void *update(void *user)
{
    struct pb_web_catalog *catalog = user;
    struct index next = {0}, before = {0};
    (void)pthread_setname_np(pthread_self(), "pb-catalog");
    const int64_t begun_ms = pb_clock_mono_ms();
    const int rc = read_products(catalog, &next);
    (void)pthread_mutex_lock(&catalog->lock);
    if (rc == 0) {
        report(&catalog->index, &next);
        before = catalog->index;
        catalog->index = next;
        catalog->is_read = true;
    }
    const bool is_kept = is_scarce(rc) && catalog->is_read;
    if (is_kept)
        pb_log(PB_LOG_WARNING, "catalogue: an update was given up: %s", strerror(-rc));
    catalog->failure = is_kept ? 0 : rc;
    pb_web_pace_end(&catalog->pace, begun_ms, pb_clock_mono_ms());
    catalog->is_updating = false;
    (void)pthread_cond_broadcast(&catalog->done);
    (void)pthread_mutex_unlock(&catalog->lock);
    free_index(&before);
    return NULL;
}

/* Begins an update. Call with the lock. Returns 0 or a negative errno. */
static int start(struct pb_web_catalog *catalog, const char *products)
{
    if (catalog->has_thread)
        (void)pthread_join(catalog->thread, NULL); /* it needs no lock any more */
    if (strcmp(catalog->products, products) != 0) {
        free_index(&catalog->index);
        catalog->is_read = false;
    }
    (void)snprintf(catalog->products, sizeof catalog->products, "%s", products);
    pb_web_pace_begin(&catalog->pace);
    const int rc = pthread_create(&catalog->thread, NULL, update, catalog);
    catalog->is_updating = catalog->has_thread = rc == 0;
    return -rc;
}

static bool is_due(const struct pb_web_catalog *catalog, const char *products)
{
    return !catalog->is_read || strcmp(catalog->products, products) != 0 ||
           pb_web_pace_is_due(&catalog->pace, pb_clock_mono_ms());
}

int pb_web_catalog_update(struct pb_web_catalog *catalog, const char *products)
{
    const struct timespec until = pb_clock_mono_after(WAIT_MS);
    int rc = 0, waited = 0;
    (void)pthread_mutex_lock(&catalog->lock);
    while (catalog->is_updating && !catalog->is_read && waited == 0)
        waited = pthread_cond_timedwait(&catalog->done, &catalog->lock, &until);
    if (!catalog->is_updating && is_due(catalog, products)) {
        rc = start(catalog, products);
        while (rc == 0 && catalog->is_updating && waited == 0)
            waited = pthread_cond_timedwait(&catalog->done, &catalog->lock, &until);
        rc = rc == 0 && !catalog->is_updating ? catalog->failure : rc;
    }
    if (rc == 0 && !catalog->is_read)
        rc = -EAGAIN;
    (void)pthread_mutex_unlock(&catalog->lock);
    return rc;
}

void pb_web_catalog_changed(struct pb_web_catalog *catalog)
{
    (void)pthread_mutex_lock(&catalog->lock);
    catalog->pace.is_changed = true;
    (void)pthread_mutex_unlock(&catalog->lock);
}

/* --- searches --- */

/* Returns true if the boxes share a point. Each may cross 180 degrees. */
static bool is_near(const double a[4], const double b[4])
{
    if (a[1] > b[3] || b[1] > a[3])
        return false;
    const double east = a[2] + (a[0] > a[2] ? 360 : 0), other = b[2] + (b[0] > b[2] ? 360 : 0);
    for (int turn = -1; turn <= 1; turn++)
        if (a[0] <= other + 360 * turn && b[0] + 360 * turn <= east)
            return true;
    return false;
}

/* The words of a list with commas, sorted. */
struct words {
    char *text; /* has the words; NULL = there is no list, and each word fits */
    size_t n;
    const char *word[PB_WEB_WORDS_MAX];
};

/* Reads a list (NULL = none). Returns 0, -E2BIG for too many words, or -ENOMEM. */
static int read_words(const char *list, struct words *out)
{
    *out = (struct words){.text = list ? strdup(list) : NULL};
    if (list == NULL || out->text == NULL)
        return list == NULL ? 0 : -ENOMEM;
    char *at = out->text, *word;
    while ((word = strsep(&at, ",")) != NULL) {
        if (word[0] == '\0')
            continue;
        if (out->n == PB_WEB_WORDS_MAX)
            return -E2BIG;
        out->word[out->n++] = word;
    }
    if (out->n > 0)
        qsort(out->word, out->n, sizeof *out->word, compare_names);
    return 0;
}

static bool has_word(const struct words *words, const char *word)
{
    return words->text == NULL || (words->n > 0 && bsearch(&word, words->word, words->n,
                                                           sizeof *words->word, compare_names));
}

/* A search whose lists are read. */
struct sought {
    const struct pb_web_search *search;
    struct words collections, ids;
    double start; /* the cursor's; its path is not NULL */
    const char *path;
};

static bool is_match(const struct pb_web_item *item, const struct sought *sought)
{
    const struct pb_web_search *search = sought->search;
    return (search->collection == NULL || strcmp(item->collection, search->collection) == 0) &&
           (search->id == NULL || strcmp(item->id, search->id) == 0) &&
           has_word(&sought->collections, item->collection) && has_word(&sought->ids, item->id) &&
           (!search->time.has_from || item->end >= search->time.from) &&
           (!search->time.has_to || item->start <= search->time.to) &&
           (!search->has_bbox ||
            (item->extent.has_bbox && is_near(search->bbox, item->extent.bbox)));
}

/* Reads a cursor: the time of an item and its path. */
static int read_cursor(const char *text, double *out_start, const char **out_path)
{
    char when[40];
    const size_t n = strcspn(text, ",");
    if (text[n] != ',' || n >= sizeof when)
        return -EINVAL;
    (void)snprintf(when, sizeof when, "%.*s", (int)n, text);
    *out_start = pb_meta_julian_day(when);
    *out_path = text + n + 1;
    return isfinite(*out_start) ? 0 : -EINVAL;
}

/* Reads the texts of a search. */
static int read_search(const struct pb_web_search *search, struct sought *out)
{
    *out = (struct sought){.search = search};
    int rc = search->after ? read_cursor(search->after, &out->start, &out->path) : 0;
    rc = rc ? rc : read_words(search->collections, &out->collections);
    return rc ? rc : read_words(search->ids, &out->ids);
}

/* Copies the items of a page. Returns 0 or -ENOMEM. */
static int copy_page(struct pb_web_catalog *catalog, const struct sought *sought,
                     struct pb_web_item *out, size_t room, size_t *out_n, size_t *out_matched)
{
    int rc = 0;
    (void)pthread_mutex_lock(&catalog->lock);
    for (size_t i = 0; i < catalog->index.n_items && rc == 0; i++) {
        const struct pb_web_item *item = catalog->index.item[i];
        if (!is_match(item, sought))
            continue;
        ++*out_matched;
        if (*out_n == room ||
            (sought->path != NULL && order_of(sought->start, sought->path, item) >= 0))
            continue;
        rc = copy_item(item, &out[*out_n]);
        *out_n += rc == 0;
    }
    (void)pthread_mutex_unlock(&catalog->lock);
    return rc;
}

int pb_web_catalog_find(struct pb_web_catalog *catalog, const struct pb_web_search *search,
                        struct pb_web_item *out, size_t room, size_t *out_matched)
{
    size_t n = 0;
    struct sought *sought = malloc(sizeof *sought);
    if (sought == NULL)
        return -ENOMEM;
    *out_matched = 0;
    int rc = read_search(search, sought);
    rc = rc ? rc : copy_page(catalog, sought, out, room, &n, out_matched);
    free(sought->collections.text);
    free(sought->ids.text);
    free(sought);
    while (rc != 0 && n > 0)
        pb_web_item_fini(&out[--n]);
    return rc ? rc : (int)n;
}

int pb_web_catalog_collections(struct pb_web_catalog *catalog, struct pb_web_collection **out)
{
    (void)pthread_mutex_lock(&catalog->lock);
    const size_t n = catalog->index.n_collections;
    struct pb_web_collection *copy = calloc(n + 1, sizeof *copy);
    bool made = copy != NULL;
    for (size_t i = 0; i < n && made; i++) {
        copy[i] = catalog->index.collection[i];
        copy[i].id = strdup(copy[i].id);
        made = copy[i].id != NULL;
    }
    (void)pthread_mutex_unlock(&catalog->lock);
    if (made) {
        *out = copy;
        return (int)n;
    }
    pb_web_collections_free(copy, n);
    return -ENOMEM;
}

void pb_web_collections_free(struct pb_web_collection *collections, size_t n)
{
    for (size_t i = 0; i < n && collections != NULL; i++)
        free(collections[i].id);
    free(collections);
}
