/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A run has two cursors. `next` is the first unknown block: its offset is known, because it
 * follows the known ones. A block is known when it was added, or its size was announced. `move` is
 * the first block that is neither in the file nor being written: between the two are blocks that
 * waited and can be moved now. Each thread that adds a block moves a few of them, so that no thread
 * has to move all at once while the others wait for it.
 *
 * Locks: one, for cursors, index and the free part of the memory; never held during a copy. A
 * block's memory belongs to the thread that took it until the block is in the index, and then to
 * the thread that moved the cursor over it. */
#include "pipeline/cog/block_store.h"
#include "pipeline/cog/block_pool.h"
#include "pipeline/cog/spool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES_EACH = 4, MOVE_BYTES = 128 << 10 };

/* Values of pb_tiff_block.at: place of a block. Any other value is its offset in the spool. */
#define IN_FILE  UINT64_MAX
#define IN_POOL  (UINT64_C(1) << 63) /* the other bits are the number of its first chunk */
#define STAYS    (UINT64_C(1) << 62) /* the other bits are its address */
#define PLACED   (UINT64_C(1) << 61) /* announced, not added; the others: offset of its leader */
#define COMING   (UINT64_MAX - 1)    /* while it is copied */
#define UNPLACED (UINT64_MAX - 2)    /* announced, after unknown blocks or before the first write */

struct cursor {
    uint64_t block;
    uint64_t at; /* offset of its leader in the file */
};

struct run {
    uint32_t level;
    struct cursor next, move;
};

struct pb_block_store {
    struct pb_block_store_options options;
    struct pb_spool *spool;
    struct pb_block_pool *pool;
    char *buffer; /* MOVE_BYTES for each worker */

    pthread_mutex_t lock; /* protects the pool's free chunks, the index and all below */
    bool started;         /* blocks of runs are written; before, all are in the pool */
    struct run run[PB_BLOCK_RUNS_MAX];
};

uint64_t pb_block_store_bytes(uint32_t workers, uint64_t pool_bytes)
{
    return sizeof(struct pb_block_store) + PB_SPOOL_BYTES + pb_block_pool_bytes(pool_bytes) +
           (uint64_t)workers * MOVE_BYTES;
}

int pb_block_store_create(const struct pb_block_store_options *options, struct pb_err *err,
                          struct pb_block_store **out_store)
{
    struct pb_block_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return pb_fail(err, PB_E_MEMORY, "no memory for a product's blocks");
    pthread_mutex_init(&store->lock, NULL);
    store->options = *options;
    for (uint32_t r = 0; r < options->n_runs; r++) {
        const struct cursor first = {0, options->run[r].at};
        store->run[r] = (struct run){options->run[r].level, first, first};
    }
    store->pool = pb_block_pool_create(options->pool_bytes);
    store->buffer = malloc((size_t)options->workers * MOVE_BYTES);
    int rc = pb_spool_create(options->directory, err, &store->spool);
    if (rc == 0 && (store->pool == NULL || store->buffer == NULL))
        rc = pb_fail(err, PB_E_MEMORY, "no memory for a product's blocks");
    if (rc != 0) {
        pb_block_store_destroy(store);
        return rc;
    }
    *out_store = store;
    return 0;
}

void pb_block_store_destroy(struct pb_block_store *store)
{
    if (store == NULL)
        return;
    pb_spool_destroy(store->spool);
    pb_block_pool_destroy(store->pool);
    free(store->buffer);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static struct pb_tiff_block *block_of(const struct pb_block_store *store, uint32_t level,
                                      uint64_t i)
{
    return &store->options.block[level][i];
}

/* NULL: the level has no run. */
static struct run *run_of(struct pb_block_store *store, uint32_t level)
{
    for (uint32_t r = 0; r < store->options.n_runs; r++)
        if (store->run[r].level == level)
            return &store->run[r];
    return NULL;
}

static bool is_placed(const struct pb_tiff_block *block)
{
    return (block->at & (IN_POOL | STAYS | PLACED)) == PLACED;
}

static bool is_announced(const struct pb_tiff_block *block)
{
    return block->at == UNPLACED || is_placed(block);
}

static void step(struct cursor *cursor, const struct pb_tiff_block *block)
{
    cursor->at += block->bytes + PB_TIFF_FRAME;
    cursor->block++;
}

/* Call it with the lock held. Advances over the known blocks, which gives announced ones their
 * places. */
static void advance(const struct pb_block_store *store, struct run *run)
{
    struct pb_tiff_block *block = store->options.block[run->level];
    while (run->next.block < store->options.n_blocks[run->level] &&
           block[run->next.block].bytes != 0) {
        struct pb_tiff_block *known = &block[run->next.block];
        if (known->at == UNPLACED)
            known->at = PLACED | run->next.at;
        step(&run->next, known);
    }
}

/* Call it with the lock held. From now on blocks are written to the file. */
static void start(struct pb_block_store *store)
{
    store->started = true;
    for (uint32_t r = 0; r < store->options.n_runs; r++)
        advance(store, &store->run[r]);
}

void pb_block_store_expect(struct pb_block_store *store, uint32_t level, uint64_t i, size_t bytes)
{
    struct pb_tiff_block *block = block_of(store, level, i);
    struct run *run = run_of(store, level);
    if (run == NULL)
        return;
    pthread_mutex_lock(&store->lock);
    if (block->bytes == 0 && block->at != COMING) {
        *block = (struct pb_tiff_block){bytes, UNPLACED};
        if (store->started)
            advance(store, run);
    }
    pthread_mutex_unlock(&store->lock);
}

/* Destination of a block. */
struct place {
    bool again;     /* no destination: the block was added before, or announced otherwise */
    bool now;       /* the file, at `at` */
    uint64_t at;    /* offset of the leader */
    uint32_t chunk; /* else memory from that chunk on, or PB_BLOCK_POOL_NONE: the spool */
};

/* Call it with the lock held. Returns true, with the offset of its leader, if the block is written
 * to the file at once, and marks it. */
static bool place_now(struct pb_block_store *store, struct run *run, uint64_t i,
                      struct pb_tiff_block *block, const struct pb_block_bytes *bytes,
                      uint64_t *out_at)
{
    const bool is_next = store->started && run != NULL && run->next.block == i;
    if (!is_next && !is_placed(block))
        return false;
    *out_at = is_next ? run->next.at : block->at & ~PLACED;
    *block = (struct pb_tiff_block){bytes->bytes, IN_FILE};
    if (is_next)
        advance(store, run);
    return true;
}

/* Selects the destination. */
static struct place find_place(struct pb_block_store *store, struct run *run, uint64_t i,
                               struct pb_tiff_block *block, const struct pb_block_bytes *bytes)
{
    struct place place = {.chunk = PB_BLOCK_POOL_NONE};
    pthread_mutex_lock(&store->lock);
    place.again = is_announced(block) ? block->bytes != bytes->bytes
                                      : block->bytes != 0 || block->at == COMING;
    if (!place.again) {
        place.now = place_now(store, run, i, block, bytes, &place.at);
        if (!place.now && !bytes->stays && (run != NULL || !store->started))
            place.chunk = pb_block_pool_take(store->pool, bytes->bytes);
        if (!place.now && !bytes->stays && place.chunk == PB_BLOCK_POOL_NONE && !store->started) {
            start(store);
            place.now = place_now(store, run, i, block, bytes, &place.at);
        }
        if (!place.now)
            block->at = COMING;
    }
    pthread_mutex_unlock(&store->lock);
    return place;
}

/* Keeps an early block. */
static int keep(struct pb_block_store *store, struct run *run, const struct place *place,
                struct pb_tiff_block *block, const struct pb_block_bytes *bytes, struct pb_err *err)
{
    uint64_t at = IN_POOL | place->chunk;
    int rc = 0;
    if (bytes->stays)
        at = STAYS | (uintptr_t)bytes->data;
    else if (place->chunk != PB_BLOCK_POOL_NONE)
        pb_block_pool_fill(store->pool, place->chunk, bytes->data, bytes->bytes);
    else
        rc = pb_spool_append(store->spool, bytes->data, bytes->bytes, err, &at);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&store->lock);
    *block = (struct pb_tiff_block){bytes->bytes, at};
    if (store->started && run != NULL)
        advance(store, run);
    pthread_mutex_unlock(&store->lock);
    return 0;
}

/* Finds a waiting block that can be moved now, and its offset; false: not found. */
static bool next_move(struct pb_block_store *store, struct run *run, struct cursor *out)
{
    const struct pb_tiff_block *block = store->options.block[run->level];
    pthread_mutex_lock(&store->lock);
    while (run->move.block < run->next.block &&
           (block[run->move.block].at == IN_FILE || is_placed(&block[run->move.block])))
        step(&run->move, &block[run->move.block]);
    bool found = run->move.block < run->next.block && block[run->move.block].at != COMING;
    *out = run->move;
    if (found)
        step(&run->move, &block[run->move.block]);
    pthread_mutex_unlock(&store->lock);
    return found;
}

static const char *stays_at(const struct pb_tiff_block *block)
{
    return (const char *)(uintptr_t)(block->at & ~STAYS);
}

/* Reads bytes of a block without its frame. */
static int read_body(const struct pb_block_store *store, const struct pb_tiff_block *block,
                     uint64_t from, void *data, size_t bytes, struct pb_err *err)
{
    if (block->at & IN_POOL)
        pb_block_pool_read(store->pool, (uint32_t)block->at, from, data, bytes);
    else if (block->at & STAYS)
        memcpy(data, stays_at(block) + from, bytes);
    else
        return pb_spool_read(store->spool, block->at + from, data, bytes, err);
    return 0;
}

size_t pb_block_store_at(void *user, uint32_t level, uint64_t i, uint64_t from,
                         const void **out_data)
{
    const struct pb_block_store *store = user;
    const struct pb_tiff_block *block = block_of(store, level, i);
    const uint64_t body = PB_TIFF_LEADER, trailer = body + block->bytes;
    size_t n = (size_t)((from < body      ? body
                         : from < trailer ? trailer
                                          : trailer + PB_TIFF_TRAILER) -
                        from);
    *out_data = NULL;
    if (from < body || from >= trailer)
        return n;
    if (block->at & IN_POOL)
        *out_data = pb_block_pool_at(store->pool, (uint32_t)block->at, from - body, n, &n);
    else if (block->at & STAYS)
        *out_data = stays_at(block) + (from - body);
    return n;
}

int pb_block_store_read(void *user, uint32_t level, uint64_t i, uint64_t from, void *data,
                        size_t bytes, struct pb_err *err)
{
    const struct pb_block_store *store = user;
    const struct pb_tiff_block *block = block_of(store, level, i);
    const uint64_t body = PB_TIFF_LEADER, trailer = body + block->bytes;
    char *to = data;
    int rc = 0;
    for (uint64_t at = from; rc == 0 && at < from + bytes;) {
        uint64_t end = at < body ? body : at < trailer ? trailer : trailer + PB_TIFF_TRAILER;
        size_t n = (size_t)((end < from + bytes ? end : from + bytes) - at);
        if (at < body)
            memcpy(to, (const char *)&block->bytes + at, n);
        else if (at < trailer)
            rc = read_body(store, block, at - body, to, n, err);
        else if (block->bytes < PB_TIFF_TRAILER) /* no codec makes such a block */
            memset(to, 0, n);
        else
            rc = read_body(store, block, at - body - PB_TIFF_TRAILER, to, n, err);
        to += n;
        at += n;
    }
    return rc;
}

static int move_block(struct pb_block_store *store, uint32_t level, const struct cursor *cursor,
                      char *buffer, struct pb_err *err)
{
    const struct pb_tiff_block *block = block_of(store, level, cursor->block);
    const uint64_t bytes = block->bytes + PB_TIFF_FRAME;
    int rc = 0;
    if (!(block->at & IN_POOL) && block->at & STAYS)
        return pb_tiff_place_block(store->options.file, cursor->at, stays_at(block), block->bytes,
                                   err);
    for (uint64_t done = 0; rc == 0 && done < bytes;) {
        size_t n = bytes - done < MOVE_BYTES ? (size_t)(bytes - done) : MOVE_BYTES;
        struct iovec part = {buffer, n};
        rc = pb_block_store_read(store, level, cursor->block, done, buffer, n, err);
        if (rc == 0)
            rc = pb_gap_file_write(store->options.file, cursor->at + done, &part, 1, err);
        done += n;
    }
    if (!(block->at & IN_POOL)) {
        pb_spool_drop(store->spool, block->at, block->bytes);
        return rc;
    }
    pthread_mutex_lock(&store->lock);
    pb_block_pool_give(store->pool, (uint32_t)block->at);
    pthread_mutex_unlock(&store->lock);
    return rc;
}

/* Moves up to `most` blocks of each run. */
static int move_some(struct pb_block_store *store, uint64_t most, uint32_t worker,
                     struct pb_err *err)
{
    char *buffer = store->buffer + (size_t)worker * MOVE_BYTES;
    struct cursor cursor;
    int rc = 0;
    for (uint32_t r = 0; r < store->options.n_runs; r++) {
        struct run *run = &store->run[r];
        for (uint64_t n = 0; rc == 0 && n < most && next_move(store, run, &cursor); n++)
            rc = move_block(store, run->level, &cursor, buffer, err);
    }
    return rc;
}

int pb_block_came_twice(uint32_t level, uint64_t i, struct pb_err *err)
{
    return pb_fail(err, PB_E_SYSTEM,
                   "block %llu of level %u was added twice, or in another size than announced",
                   (unsigned long long)i, level);
}

int pb_block_is_missing(uint32_t level, uint64_t i, struct pb_err *err)
{
    return pb_fail(err, PB_E_SYSTEM, "block %llu of level %u was never written",
                   (unsigned long long)i, level);
}

int pb_block_store_add(struct pb_block_store *store, uint32_t level, uint64_t i,
                       const struct pb_block_bytes *bytes, uint32_t worker, struct pb_err *err)
{
    struct pb_tiff_block *block = block_of(store, level, i);
    struct run *run = run_of(store, level);
    struct place place = find_place(store, run, i, block, bytes);
    if (place.again)
        return pb_block_came_twice(level, i, err);
    int rc = place.now ? pb_tiff_place_block(store->options.file, place.at, bytes->data,
                                             bytes->bytes, err)
                       : keep(store, run, &place, block, bytes, err);
    return rc != 0 ? rc : move_some(store, MOVES_EACH, worker, err);
}

/* Fails if a block was announced, but not added. */
static int check_added(const struct pb_block_store *store, uint32_t level, struct pb_err *err)
{
    for (uint64_t i = 0; i < store->options.n_blocks[level]; i++)
        if (is_announced(block_of(store, level, i)))
            return pb_block_is_missing(level, i, err);
    return 0;
}

int pb_block_store_settle(struct pb_block_store *store, struct pb_err *err, uint64_t *out_placed)
{
    int rc = 0;
    *out_placed = 0;
    for (uint32_t r = 0; r < store->options.n_runs && rc == 0; r++)
        rc = check_added(store, store->run[r].level, err);
    if (rc != 0 || !store->started)
        return rc;
    for (uint32_t r = 0; r < store->options.n_runs; r++)
        *out_placed |= UINT64_C(1) << store->run[r].level;
    return move_some(store, UINT64_MAX, 0, err);
}
