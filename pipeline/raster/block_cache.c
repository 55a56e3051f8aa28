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
 * No reader waits for ever: a reader holds at most one cell at a time (it copies from it or
 * decodes into it) and never parks while it holds one. Therefore a reader that holds a cell is
 * running, and releases it after a copy, or after a decode that succeeds or fails. This is true
 * for any number of cells from one up; with fewer cells than readers some readers wait for
 * others. Failure and abort wake all.
 *
 * Evicts the least recently used unpinned cell. The cells that a tile will need are marked as
 * used when it begins, so that its own decodes do not evict them.
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

enum { PLANE_ALIGN = 64, CHUNK_MAX = 1024 };

enum state { CELL_EMPTY, CELL_DECODING, CELL_READY };

struct cell {
    enum state state;
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
    struct pb_raster *raster;
    const struct pb_window *target;
    struct pb_cell_fragments fragments;
    uint64_t *parked_ns;
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

static int decode(const struct job *job, const struct cell *cell, const struct pb_rect *rect,
                  struct pb_err *err)
{
    const struct pb_block_cache *cache = job->cache;
    const struct pb_block_cache_options *o = &cache->options;
    char *base = pixels_of(cache, cell);
    const struct pb_window to = {
        .data = base,
        .row_bytes = (size_t)rect->w * pb_type_bytes(o->type),
        .plane_bytes = cache->plane_bytes,
        .mask = o->has_mask ? (uint8_t *)base + o->n_bands * cache->plane_bytes : NULL,
        .mask_row_bytes = (size_t)rect->w,
        .rect = *rect};
    return o->decode(job->raster, o->bands, o->n_bands, &to, err);
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

/* A cell to decode into; NULL = all are pinned. */
static struct cell *find_free(struct pb_block_cache *cache)
{
    struct cell *oldest = NULL;
    for (uint32_t i = 0; i < cache->options.count; i++) {
        struct cell *cell = &cache->cell[i];
        if (cell->state == CELL_EMPTY)
            return cell;
        if (cell->state == CELL_READY && cell->pins == 0 &&
            (oldest == NULL || cell->used < oldest->used))
            oldest = cell;
    }
    return oldest;
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
    *job->parked_ns += pb_clock_mono_ns() - start;
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

static int decode_into(struct job *job, struct cell *cell, const struct pb_cell_fragment *fragment)
{
    struct pb_block_cache *cache = job->cache;
    struct pb_rect rect = pb_cell_rect(&cache->options.shape, fragment->col, fragment->row);
    struct pb_err err = {0};
    *cell = (struct cell){CELL_DECODING, fragment->col, fragment->row, 0, ++cache->clock};
    pthread_mutex_unlock(&cache->lock);
    int rc = decode(job, cell, &rect, &err);
    pthread_mutex_lock(&cache->lock);
    if (rc < 0) {
        cell->state = CELL_EMPTY;
        if (!cache->failed) {
            (void)pb_fail(&err, PB_E_SYSTEM, "a part of the scene cannot be read: %s",
                          strerror(-rc)); /* keeps the first message */
            cache->failure = err;
            cache->failed = true;
        }
    } else {
        cache->decoded_px += (uint64_t)rect.w * (uint64_t)rect.h;
        cell->state = CELL_READY;
    }
    wake(cache);
    return rc;
}

/* Handles one fragment if that is possible now. Returns 1 = done, 0 = later, or the error of
 * this read's decode. */
static int take_fragment(struct job *job, const struct pb_cell_fragment *fragment)
{
    struct pb_block_cache *cache = job->cache;
    struct cell *cell = find(cache, fragment);
    if (cell != NULL && cell->state == CELL_DECODING)
        return 0;
    if (cell == NULL) {
        cell = find_free(cache);
        int rc = cell != NULL ? decode_into(job, cell, fragment) : 0;
        if (cell == NULL || rc < 0)
            return rc;
    }
    copy_from(job, cell, fragment);
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
        struct pb_cell_fragment fragment = pb_cell_fragment(&job->fragments, first + i);
        rc = take_fragment(job, &fragment);
        if (rc < 0)
            return standing(job->cache, err);
        taken += rc;
        done[i / 64] |= (uint64_t)rc << i % 64;
    }
    return taken;
}

static int read_chunk(struct job *job, uint32_t first, uint32_t n, struct pb_err *err)
{
    uint64_t done[CHUNK_MAX / 64] = {0};
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
        /* A sweep that took a fragment released the lock meanwhile: try again before parking. */
        if (taken == 0)
            park(job);
    }
    return 0;
}

int pb_block_cache_read(struct pb_block_cache *cache, struct pb_raster *raster,
                        const struct pb_window *target, uint64_t *parked_ns, struct pb_err *err)
{
    struct job job = {.cache = cache, .raster = raster, .target = target, .parked_ns = parked_ns};
    job.fragments = pb_cell_fragments_of(&cache->options.shape, &target->rect);
    uint32_t n = (uint32_t)job.fragments.cols * (uint32_t)job.fragments.rows;
    int rc = 0;
    pthread_mutex_lock(&cache->lock);
    for (uint32_t first = 0; first < n && rc == 0; first += CHUNK_MAX)
        rc = read_chunk(&job, first, n - first < CHUNK_MAX ? n - first : CHUNK_MAX, err);
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
        cache->options.decode = pb_raster_read;
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
