/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * An update has a thread of its own, because it may take longer than a request may. It works
 * without the lock: only it changes the folders; the others use the index as it was. */
#include "service/web/catalog.h"

#include "config/base/clock.h"
#include "pipeline/metadata/meta_time.h"
#include "service/base/log.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MS   500 /* between updates, and ten times the length of the last one */
#define PAUSES     10
#define LONGEST_MS 10000 /* limit of the latter */
#define WAIT_MS    8000  /* limit of a request's wait for an update */

struct pb_web_catalog {
    atomic_bool is_ending;
    pthread_mutex_t lock;      /* all below */
    pthread_cond_t done;       /* signalled at the end of an update */
    struct pb_web_index index; /* the updating thread reads it without the lock, like products */
    size_t items_max;
    char products[PATH_MAX];
    bool is_updating, is_read;
    bool has_thread; /* the last update's is not joined yet */
    pthread_t thread;
    int failure; /* result of the last update: 0 or negative errno */
    struct pb_web_pace pace;
};

/* --- updates --- */

struct pb_web_catalog *pb_web_catalog_create(size_t items_max)
{
    struct pb_web_catalog *catalog = calloc(1, sizeof *catalog);
    pthread_condattr_t monotonic;
    if (catalog == NULL)
        return NULL;
    catalog->items_max = items_max;
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
    pb_web_index_free(&catalog->index);
    (void)pthread_cond_destroy(&catalog->done);
    (void)pthread_mutex_destroy(&catalog->lock);
    free(catalog);
}

static void report(const struct pb_web_index *before, const struct pb_web_index *now,
                   size_t items_max)
{
    if (now->unreadable > 0 && now->unreadable != before->unreadable)
        pb_log(PB_LOG_WARNING,
               "catalogue: %zu directories of products are unreadable: their items "
               "are missing until they can be read",
               now->unreadable);
    if (now->n_older > 0 && before->n_older == 0)
        pb_log(PB_LOG_WARNING, "catalogue: more than %zu items: the oldest are missing", items_max);
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
    struct pb_web_index next = {0}, before = {0};
    (void)pthread_setname_np(pthread_self(), "pb-catalog");
    const int64_t begun_ms = pb_clock_mono_ms();
    const int rc = pb_web_index_read(catalog->products, &catalog->index, catalog->items_max,
                                     &catalog->is_ending, &next);
    (void)pthread_mutex_lock(&catalog->lock);
    if (rc == 0) {
        report(&catalog->index, &next, catalog->items_max);
        before = catalog->index;
        catalog->index = next;
        catalog->is_read = true;
    }
    const bool is_kept = pb_web_index_is_scarce(rc) && catalog->is_read;
    if (is_kept)
        pb_log(PB_LOG_WARNING, "catalogue: an update was given up: %s", strerror(-rc));
    catalog->failure = is_kept ? 0 : rc;
    pb_web_pace_end(&catalog->pace, begun_ms, pb_clock_mono_ms());
    catalog->is_updating = false;
    (void)pthread_cond_broadcast(&catalog->done);
    (void)pthread_mutex_unlock(&catalog->lock);
    pb_web_index_free(&before);
    return NULL;
}

/* Begins an update. Call with the lock. Returns 0 or a negative errno. */
static int start(struct pb_web_catalog *catalog, const char *products)
{
    if (catalog->has_thread)
        (void)pthread_join(catalog->thread, NULL); /* it needs no lock any more */
    if (strcmp(catalog->products, products) != 0) {
        pb_web_index_free(&catalog->index);
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

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The words of a list, sorted. */
struct words {
    char *text; /* has the words; NULL = there is no list, and each word fits */
    size_t n;
    const char *word[PB_WEB_WORDS_MAX];
};

/* Reads a list (NULL = none). Returns 0, -E2BIG for too many words, or -ENOMEM. */
static int read_words(const char *list, char separator, struct words *out)
{
    const char ends[] = {separator != '\0' ? separator : ',', '\0'};
    *out = (struct words){.text = list ? strdup(list) : NULL};
    if (list == NULL || out->text == NULL)
        return list == NULL ? 0 : -ENOMEM;
    char *at = out->text, *word;
    while ((word = strsep(&at, ends)) != NULL) {
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

void pb_web_item_cursor(const struct pb_web_item *item, char out[PB_WEB_CURSOR_BYTES])
{
    (void)snprintf(out, PB_WEB_CURSOR_BYTES, "%s,%s", item->extent.start, item->path);
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
    rc = rc ? rc : read_words(search->collections, search->separator, &out->collections);
    return rc ? rc : read_words(search->ids, search->separator, &out->ids);
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
            (sought->path != NULL && pb_web_item_order(sought->start, sought->path, item) >= 0))
            continue;
        rc = pb_web_item_copy(item, &out[*out_n]);
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
