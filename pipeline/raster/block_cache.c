/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* One lock, one condition, a table short enough for a linear search (some dozen to some hundred
 * cells; a search costs a microsecond, a cell milliseconds).
 *
 * A tile is read fragment by fragment. A fragment whose cell is in the cache is copied; if no
 * reader has the cell, this one decodes it; if another reader is decoding it, the fragment is
 * deferred, so that readers which need the same cells share the decoding instead of queueing. A
 * reader parks only when no other fragment is left.
 *
 * A codec may decode two blocks at a time faster than one after the other, and a tile often misses
 * a single cell. Therefore a reader that decodes a cell decodes a second one with it, which this
 * tile or one of the next tiles needs; and a reader whose cells are all being decoded by others
 * decodes two later ones instead of parking, until one of them does not decode.
 *
 * No reader waits for ever: a reader holds at most two cells at a time (it copies from one or
 * decodes into them) and never parks while it holds one. Therefore a reader that holds a cell is
 * running, and releases it after a copy, or after a decode that succeeds or fails. This is true
 * for any number of cells from one up; with fewer cells than readers some readers wait for
 * others. Failure and abort wake all. Only parked readers are woken; therefore a reader parks only
 * if it has held the lock since the start of its last sweep over its cells.
 *
 * Evicts an unpinned cell: one that no later tile needs if its last reader knew that, or else the
 * least recently used one. The cells that a tile will need are marked as used when it begins, so
 * that its own decodes do not evict them; a later cell evicts none that was used since then, and
 * only those that no tile needs if the reader knows that. With fewer cells than all tiles in work
 * need, blocks are decoded one at a time then, instead of again.
 *
 * The pixels of a cell are written without the lock by the reader that claimed it, and read
 * without it by readers that pinned it; claim, publication and pin happen under the lock. */
#include "pipeline/raster/block_cache.h"
#include "config/base/clock.h"
#include "pipeline/device/mem.h"
#include "pipeline/profile/work.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* LATER_MAX: fragments of later rectangles that are looked at for a cell. */
enum { PLANE_ALIGN = 64, CHUNK_MAX = 1024, LATER_MAX = 128 };

enum state { CELL_EMPTY, CELL_DECODING, CELL_READY };

struct cell {
    enum state state;
    bool spent; /* no later read needs it */
    int32_t col, row;
    uint32_t pins; /* count of readers that copy from it */
    uint64_t used; /* value of pb_block_cache.clock at the last use */
};

struct pb_block_cache {
    struct pb_block_cache_options options;
    pthread_mutex_t lock; /* protects all below except the pixels */
    pthread_cond_t changed;
    uint32_t parked;
    uint64_t clock;
    uint64_t decoded_px;
    bool aborted, failed;
    struct pb_err failure;
    char *memory;
    size_t plane_bytes, cell_bytes;
    struct cell cell[];
};

/* A read in progress. */
struct job {
    struct pb_block_cache *cache;
    const struct pb_cache_reader *reader;
    const struct pb_window *target;
    struct pb_cell_fragments fragments;
    uint64_t began;    /* value of pb_block_cache.clock when its cells were marked as used */
    bool later_failed; /* true if it decodes no more later cells while it waits */
};

/* A cell that a reader decodes. */
struct claim {
    struct cell *cell;
    struct pb_rect rect;
};

/* --- size ------------------------------------------------------------------------------------ */

static size_t align_up(size_t n)
{
    return (n + PLANE_ALIGN - 1) / PLANE_ALIGN * PLANE_ALIGN;
}

uint64_t pb_block_cache_cell_bytes(const struct pb_block_cache_options *options)
{
    size_t px = (size_t)pb_cell_px_max(&options->shape);
    return align_up(px * pb_type_bytes(options->type)) * options->n_bands +
           (options->has_mask ? align_up(px) : 0);
}

uint64_t pb_block_cache_bytes(const struct pb_block_cache_options *options)
{
    return sizeof(struct pb_block_cache) +
           options->count * (pb_block_cache_cell_bytes(options) + sizeof(struct cell));
}

/* --- pixels ---------------------------------------------------------------------------------- */

static char *pixels_of(const struct pb_block_cache *cache, const struct cell *cell)
{
    return cache->memory + (size_t)(cell - cache->cell) * cache->cell_bytes;
}

static void copy_fragment(const struct job *job, const struct cell *cell,
                          const struct pb_cell_fragment *fragment)
{
    const struct pb_block_cache *cache = job->cache;
    const struct pb_window *to = job->target;
    struct pb_rect from = pb_cell_rect(&cache->options.shape, cell->col, cell->row);
    size_t px = pb_type_bytes(cache->options.type), n = (size_t)fragment->rect.w;
    size_t from_x = (size_t)(fragment->rect.x - from.x),
           from_y = (size_t)(fragment->rect.y - from.y);
    size_t to_x = (size_t)(fragment->rect.x - to->rect.x);
    size_t to_y = (size_t)(fragment->rect.y - to->rect.y);
    const char *base = pixels_of(cache, cell);
    for (size_t b = 0; b < cache->options.n_bands; b++) {
        const char *plane = base + b * cache->plane_bytes;
        char *out = (char *)to->data + b * to->plane_bytes;
        for (size_t y = 0; y < (size_t)fragment->rect.h; y++)
            memcpy(out + (to_y + y) * to->row_bytes + to_x * px,
                   plane + ((from_y + y) * (size_t)from.w + from_x) * px, n * px);
    }
    if (to->mask == NULL)
        return;
    const char *mask = base + cache->options.n_bands * cache->plane_bytes;
    for (size_t y = 0; y < (size_t)fragment->rect.h; y++)
        memcpy(to->mask + (to_y + y) * to->mask_row_bytes + to_x,
               mask + (from_y + y) * (size_t)from.w + from_x, n);
}

static struct pb_window window_of(const struct pb_block_cache *cache, const struct claim *claim)
{
    const struct pb_block_cache_options *o = &cache->options;
    const struct pb_rect *rect = &claim->rect;
    char *base = pixels_of(cache, claim->cell);
    return (struct pb_window){
        .data = base,
        .row_bytes = (size_t)rect->w * pb_type_bytes(o->type),
        .plane_bytes = cache->plane_bytes,
        .mask = o->has_mask ? (uint8_t *)base + o->n_bands * cache->plane_bytes : NULL,
        .mask_row_bytes = (size_t)rect->w,
        .rect = *rect};
}

/* --- the table; the lock is held -------------------------------------------------------------- */

static struct cell *find(struct pb_block_cache *cache, const struct pb_cell_fragment *fragment)
{
    for (uint32_t i = 0; i < cache->options.count; i++) {
        struct cell *cell = &cache->cell[i];
        if (cell->state != CELL_EMPTY && cell->row == fragment->row && cell->col == fragment->col)
            return cell;
    }
    return NULL;
}

/* Time of the last use for eviction: 0 if no tile needs the content; UINT64_MAX: it is in use. */
static uint64_t last_use(const struct cell *cell)
{
    if (cell->state == CELL_EMPTY)
        return 0;
    if (cell->state == CELL_DECODING || cell->pins > 0)
        return UINT64_MAX;
    return cell->spent ? 0 : cell->used;
}

/* Claims a cell to decode the fragment's cell into: one that no tile needs, or the least recently
 * used one if that was before `before`. Returns false if all are in use. */
static bool claim_cell(struct pb_block_cache *cache, const struct pb_cell_fragment *fragment,
                       uint64_t before, struct claim *out)
{
    struct cell *best = NULL;
    for (uint32_t i = 0; i < cache->options.count; i++) {
        struct cell *cell = &cache->cell[i];
        if (last_use(cell) < (best != NULL ? last_use(best) : before))
            best = cell;
    }
    if (best == NULL)
        return false;
    *best = (struct cell){CELL_DECODING, false, fragment->col, fragment->row, 0, ++cache->clock};
    *out = (struct claim){best, pb_cell_rect(&cache->options.shape, fragment->col, fragment->row)};
    return true;
}

/* Lists up to n missing cells that the later rectangles need, and returns their count. */
static uint32_t list_later(const struct job *job, uint32_t n, struct pb_cell_fragment *out)
{
    struct pb_rect rect;
    uint32_t found = 0, looked = 0;
    for (uint32_t i = 0; job->reader->later(job->reader->user, i, &rect); i++) {
        const struct pb_cell_fragments all =
            pb_cell_fragments_of(&job->cache->options.shape, &rect);
        uint32_t count = rect.w > 0 ? (uint32_t)all.cols * (uint32_t)all.rows : 0;
        for (uint32_t k = 0; k < count; k++, looked++) {
            if (found == n || looked == LATER_MAX)
                return found;
            out[found] = pb_cell_fragment(&all, k);
            bool is_listed = found == 1 && out[0].col == out[1].col && out[0].row == out[1].row;
            found += !is_listed && find(job->cache, &out[found]) == NULL;
        }
    }
    return found;
}

/* Claims a cell for a later one; see the head of this file. */
static bool claim_later(const struct job *job, const struct pb_cell_fragment *fragment,
                        struct claim *out)
{
    return claim_cell(job->cache, fragment, job->reader->rest != NULL ? 1 : job->began, out);
}

/* Finds the next missing cell of this read after fragment `i`, or else a later one. */
static bool find_second(const struct job *job, uint32_t i, struct pb_cell_fragment *out)
{
    uint32_t n = (uint32_t)job->fragments.cols * (uint32_t)job->fragments.rows;
    for (uint32_t k = i + 1; k < n && k - i <= LATER_MAX; k++) {
        *out = pb_cell_fragment(&job->fragments, k);
        if (find(job->cache, out) == NULL)
            return true;
    }
    return list_later(job, 1, out) == 1;
}

/* Claims the cell that is decoded together with the one of fragment `i`. */
static bool claim_second(const struct job *job, uint32_t i, struct claim *out)
{
    struct pb_cell_fragment fragment;
    return job->reader->later != NULL && find_second(job, i, &fragment) &&
           claim_later(job, &fragment, out);
}

static void wake(struct pb_block_cache *cache)
{
    if (cache->parked > 0)
        pthread_cond_broadcast(&cache->changed);
}

/* Returns 0, or the error that ends this read. */
static int standing(const struct pb_block_cache *cache, struct pb_err *err)
{
    if (cache->failed) {
        if (err != NULL && err->code == PB_OK)
            *err = cache->failure;
        return pb_code_errno(cache->failure.code);
    }
    return cache->aborted ? -ECANCELED : 0;
}

static void park(struct job *job)
{
    uint64_t start = pb_clock_mono_ns();
    job->cache->parked++;
    pb_work_begin(PB_WORK_WAIT, 0);
    pthread_cond_wait(&job->cache->changed, &job->cache->lock);
    pb_work_end();
    job->cache->parked--;
    *job->reader->parked_ns += pb_clock_mono_ns() - start;
}

static void copy_from(struct job *job, struct cell *cell, const struct pb_cell_fragment *fragment)
{
    struct pb_block_cache *cache = job->cache;
    cell->used = ++cache->clock;
    cell->pins++;
    pthread_mutex_unlock(&cache->lock);
    copy_fragment(job, cell, fragment);
    pthread_mutex_lock(&cache->lock);
    if (--cell->pins == 0)
        wake(cache); /* another reader may wait for the cell */
}

/* Decodes one or two claimed cells without the lock. */
static void decode_claims(struct job *job, const struct claim *claim, unsigned n,
                          struct pb_read_result *out_result)
{
    struct pb_block_cache *cache = job->cache;
    const struct pb_block_cache_options *o = &cache->options;
    struct pb_window to[2];
    pthread_mutex_unlock(&cache->lock);
    for (unsigned i = 0; i < n; i++)
        to[i] = window_of(cache, &claim[i]);
    o->decode(job->reader->raster, o->bands, o->n_bands, to, n, out_result);
    pthread_mutex_lock(&cache->lock);
    for (unsigned i = 0; i < n; i++) {
        const bool is_good = out_result[i].rc == 0;
        claim[i].cell->state = is_good ? CELL_READY : CELL_EMPTY;
        cache->decoded_px += is_good ? (uint64_t)claim[i].rect.w * (uint64_t)claim[i].rect.h : 0;
    }
    wake(cache);
}

/* Records the first failed decode of a cell that a read needs. */
static void fail(struct pb_block_cache *cache, int rc, struct pb_err *err)
{
    if (cache->failed)
        return;
    (void)pb_fail(err, PB_E_SYSTEM, "a part of the scene cannot be read: %s",
                  strerror(-rc)); /* keeps the first message */
    cache->failure = *err;
    cache->failed = true;
}

/* Handles fragment i if that is possible now. Returns 1 = done, 0 = later, or the error of this
 * read's decode. */
static int take_fragment(struct job *job, uint32_t i)
{
    struct pb_block_cache *cache = job->cache;
    const struct pb_cell_fragment fragment = pb_cell_fragment(&job->fragments, i);
    struct cell *cell = find(cache, &fragment);
    if (cell != NULL && cell->state == CELL_DECODING)
        return 0;
    if (cell == NULL) {
        struct claim claim[2];
        struct pb_read_result result[2] = {{0}};
        if (!claim_cell(cache, &fragment, UINT64_MAX, &claim[0]))
            return 0;
        decode_claims(job, claim, claim_second(job, i, &claim[1]) ? 2 : 1, result);
        if (result[0].rc < 0) { /* the other one fails in its own read */
            fail(cache, result[0].rc, &result[0].err);
            return result[0].rc;
        }
        cell = claim[0].cell;
    }
    copy_from(job, cell, &fragment);
    return 1;
}

/* Takes the available fragments of first to first + n - 1 and marks them in `done`. Returns
 * their count, or the error that ends this read. */
static int sweep(struct job *job, uint32_t first, uint32_t n, uint64_t *done, struct pb_err *err)
{
    int taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (done[i / 64] >> i % 64 & 1)
            continue;
        int rc = standing(job->cache, err);
        if (rc < 0)
            return rc;
        rc = take_fragment(job, first + i);
        if (rc < 0)
            return standing(job->cache, err);
        taken += rc;
        done[i / 64] |= (uint64_t)rc << i % 64;
    }
    return taken;
}

/* Decodes two later cells while other readers decode those of this read; after one that does not
 * decode, no more. Returns true if it released the lock: the cells of this read may be different
 * then. */
static bool decode_later(struct job *job)
{
    struct pb_cell_fragment fragment[2];
    struct claim claim[2];
    struct pb_read_result result[2] = {{0}};
    if (job->later_failed || job->reader->later == NULL || list_later(job, 2, fragment) < 2 ||
        !claim_later(job, &fragment[0], &claim[0]))
        return false;
    decode_claims(job, claim, claim_later(job, &fragment[1], &claim[1]) ? 2 : 1, result);
    job->later_failed = result[0].rc < 0 || result[1].rc < 0;
    return true;
}

static int read_chunk(struct job *job, uint32_t first, uint32_t n, struct pb_err *err)
{
    uint64_t done[CHUNK_MAX / 64] = {0};
    job->began = job->cache->clock + 1;
    for (uint32_t i = 0; i < n; i++) {
        struct pb_cell_fragment fragment = pb_cell_fragment(&job->fragments, first + i);
        struct cell *cell = find(job->cache, &fragment);
        if (cell != NULL)
            cell->used = ++job->cache->clock;
    }
    for (uint32_t left = n; left > 0;) {
        int taken = sweep(job, first, n, done, err);
        if (taken < 0)
            return taken;
        left -= (uint32_t)taken;
        /* A sweep that took a fragment released the lock, and so did decode_later if it decoded:
         * sweep again before parking. */
        if (taken == 0 && !decode_later(job))
            park(job);
    }
    return 0;
}

static bool is_apart(const struct pb_rect *a, const struct pb_rect *b)
{
    return b->w == 0 || (int64_t)a->x + a->w <= b->x || (int64_t)b->x + b->w <= a->x ||
           (int64_t)a->y + a->h <= b->y || (int64_t)b->y + b->h <= a->y;
}

/* Marks the cells of this read that no later one needs. */
static void mark_spent(const struct job *job, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct pb_cell_fragment fragment = pb_cell_fragment(&job->fragments, i);
        struct pb_rect rect = pb_cell_rect(&job->cache->options.shape, fragment.col, fragment.row);
        struct cell *cell = find(job->cache, &fragment);
        if (cell != NULL && is_apart(&rect, &job->reader->rest[0]) &&
            is_apart(&rect, &job->reader->rest[1]))
            cell->spent = true;
    }
}

int pb_block_cache_read(struct pb_block_cache *cache, const struct pb_cache_reader *reader,
                        const struct pb_window *target, struct pb_err *err)
{
    struct job job = {.cache = cache, .reader = reader, .target = target};
    job.fragments = pb_cell_fragments_of(&cache->options.shape, &target->rect);
    uint32_t n = (uint32_t)job.fragments.cols * (uint32_t)job.fragments.rows;
    int rc = 0;
    pthread_mutex_lock(&cache->lock);
    for (uint32_t first = 0; first < n && rc == 0; first += CHUNK_MAX)
        rc = read_chunk(&job, first, n - first < CHUNK_MAX ? n - first : CHUNK_MAX, err);
    if (rc == 0 && reader->rest != NULL)
        mark_spent(&job, n);
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

/* --- life ------------------------------------------------------------------------------------ */

int pb_block_cache_create(const struct pb_block_cache_options *options, struct pb_err *err,
                          struct pb_block_cache **out_cells)
{
    struct pb_block_cache *cache =
        calloc(1, sizeof *cache + options->count * sizeof cache->cell[0]);
    if (cache == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the readers");
    cache->options = *options;
    if (options->decode == NULL)
        cache->options.decode = pb_raster_read_two;
    cache->plane_bytes =
        align_up((size_t)pb_cell_px_max(&options->shape) * pb_type_bytes(options->type));
    cache->cell_bytes = (size_t)pb_block_cache_cell_bytes(options);
    void *memory = NULL;
    int rc = pb_mem_alloc(PB_MEM_HOST, cache->cell_bytes * options->count, err, &memory);
    if (rc < 0) {
        free(cache);
        return rc;
    }
    cache->memory = memory;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->changed, NULL);
    *out_cells = cache;
    return 0;
}

void pb_block_cache_destroy(struct pb_block_cache *cache)
{
    if (cache == NULL)
        return;
    pb_mem_free(PB_MEM_HOST, cache->memory, cache->cell_bytes * cache->options.count);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

void pb_block_cache_abort(struct pb_block_cache *cache)
{
    if (cache == NULL)
        return;
    pthread_mutex_lock(&cache->lock);
    cache->aborted = true;
    pthread_cond_broadcast(&cache->changed);
    pthread_mutex_unlock(&cache->lock);
}

uint64_t pb_block_cache_decoded_px(struct pb_block_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    uint64_t px = cache->decoded_px;
    pthread_mutex_unlock(&cache->lock);
    return px;
}
