/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A chunk has a list of runs of visits that read it, from which its next use follows. Moves to the
 * device are queued in one queue, moves to the host in another one; a move in waits for the moves
 * out that make its room, by the counts of chunks moved so far: after `loaded` chunks have been
 * moved in, all but `room` of them must have been moved out. Moves are numbered batches, each with
 * an event of a ring; a later batch of a queue ends after an earlier one, therefore the event of a
 * batch that was used again stands for a later time, which is safe.
 *
 * Not chosen: page faults, which bring 6 to 9 GB/s where moves bring 49 (H200, PCIe 5); reading in
 * place over the link (50 GB/s), because chains read a pixel several times. */
#include "pipeline/run/whole/whole_pages.h"
#include "pipeline/run/whole/whole_device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define NEVER UINT64_MAX

enum { NO_RUN = -1, RING = PB_WHOLE_PAGE_EVENTS / 2 };

/* Visits that read a chunk one after the other. */
struct run {
    uint32_t first, last;
    int32_t next; /* NO_RUN: the last one of its chunk */
};

struct chunk {
    uint32_t held[PB_WHOLE_USERS];
    uint32_t stamp;     /* number of the last request that has counted it */
    uint32_t moved_in;  /* batch of its last move to the device; 0: none */
    uint32_t moved_out; /* ... and to the host */
    int32_t first_run, last_run;
    int32_t run; /* the first one that is not over */
    bool is_resident;
};

/* A chunk to be moved. */
struct mover {
    uint64_t next; /* visit that reads it next */
    uint32_t chunk;
};

struct pb_whole_pages {
    struct pb_whole_pages_options o;
    struct chunk *chunk;
    uint32_t n_chunks, room; /* most chunks on the device */
    struct run *run;
    int32_t n_runs, runs_room;
    struct mover *mover; /* n_chunks: those of the present move */

    pthread_mutex_t lock; /* protects all below, chunks and runs */
    pthread_cond_t released;
    uint32_t held[PB_WHOLE_USERS]; /* chunks with a holder */
    uint32_t visit, stamp;         /* visit: the next one */
    uint32_t open;                 /* visits in progress */
    bool is_starved;
    uint32_t resident, most_resident;
    uint64_t loaded, evicted; /* chunks, in all */
    uint32_t in_batch, out_batch;
    uint64_t evicted_by[RING]; /* `evicted` after the batch */
    bool is_aborted;
};

int pb_whole_pages_create(const struct pb_whole_pages_options *options, struct pb_err *err,
                          struct pb_whole_pages **out)
{
    struct pb_whole_pages *p = calloc(1, sizeof *p);
    if (p == NULL)
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    p->o = *options;
    p->n_chunks = (uint32_t)((options->bytes + options->chunk_bytes - 1) / options->chunk_bytes);
    p->room = options->most[PB_WHOLE_DECODING] + options->most[PB_WHOLE_COMPUTING];
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->released, NULL);
    p->chunk = calloc(p->n_chunks + 1, sizeof *p->chunk);
    p->mover = calloc(p->n_chunks + 1, sizeof *p->mover);
    if (p->chunk == NULL || p->mover == NULL) {
        pb_whole_pages_destroy(p);
        return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    }
    for (uint32_t c = 0; c < p->n_chunks; c++)
        p->chunk[c].first_run = p->chunk[c].last_run = p->chunk[c].run = NO_RUN;
    *out = p;
    return 0;
}

void pb_whole_pages_destroy(struct pb_whole_pages *p)
{
    if (p == NULL)
        return;
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->released);
    free(p->mover);
    free(p->chunk);
    free(p->run);
    free(p);
}

/* --- chunks of ranges ------------------------------------------------------------------------ */

struct walk {
    const struct pb_whole_range *range, *last; /* last: the end of the list */
    uint64_t chunk_bytes;
    uint32_t k; /* repetition of the range */
    uint32_t chunk, end;
};

static struct walk walk_of(const struct pb_whole_pages *p, const struct pb_whole_ranges *of)
{
    return (struct walk){of->range, of->range + of->n, p->o.chunk_bytes, 0, 0, 0};
}

/* Finds the next chunk; one that several ranges share is found several times. */
static bool next_chunk(struct walk *w, uint32_t *out)
{
    while (w->chunk == w->end) {
        if (w->range == w->last)
            return false;
        if (w->k == w->range->n || w->range->bytes == 0) {
            w->range++;
            w->k = 0;
            continue;
        }
        const uint64_t at = w->range->at + w->k++ * w->range->step;
        w->chunk = (uint32_t)(at / w->chunk_bytes);
        w->end = (uint32_t)((at + w->range->bytes - 1) / w->chunk_bytes) + 1;
    }
    *out = w->chunk++;
    return true;
}

/* --- uses ------------------------------------------------------------------------------------ */

static int note(struct pb_whole_pages *p, struct chunk *chunk, uint32_t visit)
{
    if (chunk->last_run != NO_RUN && p->run[chunk->last_run].last + 1 >= visit) {
        p->run[chunk->last_run].last = visit;
        return 0;
    }
    if (p->n_runs == p->runs_room) {
        const int32_t room = p->runs_room > 0 ? 2 * p->runs_room : 1024;
        struct run *more = room > 0 ? realloc(p->run, (size_t)room * sizeof *more) : NULL;
        if (more == NULL)
            return -ENOMEM;
        p->run = more;
        p->runs_room = room;
    }
    p->run[p->n_runs] = (struct run){visit, visit, NO_RUN};
    if (chunk->last_run != NO_RUN)
        p->run[chunk->last_run].next = p->n_runs;
    else
        chunk->first_run = chunk->run = p->n_runs;
    chunk->last_run = p->n_runs++;
    return 0;
}

int pb_whole_pages_note(struct pb_whole_pages *p, uint32_t visit, const struct pb_whole_ranges *of,
                        struct pb_err *err)
{
    struct walk walk = walk_of(p, of);
    for (uint32_t c; next_chunk(&walk, &c);)
        if (note(p, &p->chunk[c], visit) < 0)
            return pb_fail(err, PB_E_MEMORY, "out of memory for the executor");
    return 0;
}

void pb_whole_pages_visit(struct pb_whole_pages *p, uint32_t visit)
{
    pthread_mutex_lock(&p->lock);
    for (uint32_t c = 0; c < p->n_chunks && visit < p->visit; c++) /* again from the first one */
        p->chunk[c].run = p->chunk[c].first_run;
    p->visit = visit + 1;
    p->open++;
    pthread_mutex_unlock(&p->lock);
}

void pb_whole_pages_leave(struct pb_whole_pages *p)
{
    pthread_mutex_lock(&p->lock);
    p->open--;
    pthread_cond_broadcast(&p->released);
    pthread_mutex_unlock(&p->lock);
}

void pb_whole_pages_starve(struct pb_whole_pages *p, bool is_starved)
{
    pthread_mutex_lock(&p->lock);
    p->is_starved = is_starved;
    pthread_cond_broadcast(&p->released);
    pthread_mutex_unlock(&p->lock);
}

/* Visit that reads the chunk next. */
static uint64_t next_use(struct pb_whole_pages *p, struct chunk *chunk)
{
    while (chunk->run != NO_RUN && p->run[chunk->run].last < p->visit)
        chunk->run = p->run[chunk->run].next;
    if (chunk->run == NO_RUN)
        return p->o.repeats && chunk->first_run != NO_RUN
                   ? (uint64_t)p->o.visits + p->run[chunk->first_run].first
                   : NEVER;
    return p->run[chunk->run].first > p->visit ? p->run[chunk->run].first : p->visit;
}

/* --- moves ----------------------------------------------------------------------------------- */

static uint32_t in_event(const struct pb_whole_pages *p, uint32_t batch)
{
    return p->o.first_event + batch % RING;
}

static uint32_t out_event(const struct pb_whole_pages *p, uint32_t batch)
{
    return p->o.first_event + RING + batch % RING;
}

static bool is_held(const struct chunk *chunk)
{
    return chunk->held[PB_WHOLE_DECODING] > 0 || chunk->held[PB_WHOLE_COMPUTING] > 0;
}

static int by_next(const void *a, const void *b)
{
    const struct mover *x = a, *y = b;
    if (x->next != y->next)
        return x->next > y->next ? -1 : 1;
    return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

static int by_chunk(const void *a, const void *b)
{
    const struct mover *x = a, *y = b;
    return x->chunk < y->chunk ? -1 : x->chunk > y->chunk;
}

/* Queues the moves of the first n movers: one for chunks that are adjacent. */
static int move(struct pb_whole_pages *p, uint32_t n, bool to_device, struct pb_err *err)
{
    int rc = 0;
    qsort(p->mover, n, sizeof *p->mover, by_chunk);
    for (uint32_t i = 0, end; i < n && rc == 0; i = end) {
        for (end = i + 1; end < n && p->mover[end].chunk == p->mover[end - 1].chunk + 1;)
            end++;
        const uint64_t at = p->mover[i].chunk * p->o.chunk_bytes;
        const uint64_t bytes = (end - i) * p->o.chunk_bytes, left = p->o.bytes - at;
        rc = p->o.ops->move(p->o.device, to_device ? p->o.in : p->o.out, p->o.planes + at,
                            (size_t)(bytes < left ? bytes : left), to_device, err);
    }
    return rc;
}

/* Lists the chunks without a holder that are used after a visit (0: all), the last used first.
 * Chunks of the present request are not listed. */
static uint32_t list_victims(struct pb_whole_pages *p, uint64_t after)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < p->n_chunks; c++) {
        struct chunk *chunk = &p->chunk[c];
        if (!chunk->is_resident || is_held(chunk) || chunk->stamp == p->stamp)
            continue;
        const uint64_t next = next_use(p, chunk);
        if (next > after || after == 0)
            p->mover[n++] = (struct mover){next, c};
    }
    qsort(p->mover, n, sizeof *p->mover, by_next);
    return n;
}

/* Moves the first n movers to the host, after their moves to the device. */
static int evict(struct pb_whole_pages *p, uint32_t n, struct pb_err *err)
{
    const uint32_t batch = ++p->out_batch;
    uint32_t last_in = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct chunk *chunk = &p->chunk[p->mover[i].chunk];
        chunk->is_resident = false;
        chunk->moved_out = batch;
        last_in = chunk->moved_in > last_in ? chunk->moved_in : last_in;
    }
    p->resident -= n;
    p->evicted += n;
    p->evicted_by[batch % RING] = p->evicted;
    int rc = p->o.ops->after(p->o.device, p->o.out, in_event(p, last_in), err);
    rc = rc ? rc : move(p, n, false, err);
    return rc ? rc : p->o.ops->mark(p->o.device, p->o.out, out_event(p, batch), err);
}

/* First batch of moves to the host after which n chunks more may be moved to the device; 0: there
 * is room without any. */
static uint32_t batch_of_room(const struct pb_whole_pages *p, uint32_t n)
{
    uint32_t batch = p->out_batch;
    if (p->loaded + n <= p->room)
        return 0;
    const uint64_t least = p->loaded + n - p->room;
    while (batch > 1 && p->out_batch - batch + 2 < RING &&
           p->evicted_by[(batch - 1) % RING] >= least)
        batch--;
    return batch;
}

/* Moves the absent chunks of the ranges to the device. Room for them is there, or queued to be. */
static int load(struct pb_whole_pages *p, const struct pb_whole_ranges *of, struct pb_err *err)
{
    const uint32_t batch = ++p->in_batch;
    struct walk walk = walk_of(p, of);
    uint32_t n = 0, last_out = 0;
    int rc = 0;
    for (uint32_t c; next_chunk(&walk, &c);) {
        struct chunk *chunk = &p->chunk[c];
        if (chunk->is_resident)
            continue;
        chunk->is_resident = true;
        chunk->moved_in = batch;
        last_out = chunk->moved_out > last_out ? chunk->moved_out : last_out;
        p->mover[n++] = (struct mover){0, c};
    }
    const uint32_t of_room = batch_of_room(p, n);
    last_out = of_room > last_out ? of_room : last_out;
    p->loaded += n;
    p->resident += n;
    p->most_resident = p->resident > p->most_resident ? p->resident : p->most_resident;
    if (last_out > 0)
        rc = p->o.ops->after(p->o.device, p->o.in, out_event(p, last_out), err);
    rc = rc ? rc : move(p, n, true, err);
    return rc ? rc : p->o.ops->mark(p->o.device, p->o.in, in_event(p, batch), err);
}

/* Count of chunks that have to be evicted before n_absent are loaded. */
static uint32_t missing_room(const struct pb_whole_pages *p, uint32_t n_absent)
{
    return p->resident + n_absent > p->room ? p->resident + n_absent - p->room : 0;
}

/* --- holds ----------------------------------------------------------------------------------- */

/* Count of the chunks of the ranges that are absent; stamps each. *out_new: count of those that the
 * user does not hold. */
static uint32_t count(struct pb_whole_pages *p, enum pb_whole_user user,
                      const struct pb_whole_ranges *of, uint32_t *out_new)
{
    struct walk walk = walk_of(p, of);
    uint32_t absent = 0;
    p->stamp++;
    *out_new = 0;
    for (uint32_t c; next_chunk(&walk, &c);) {
        struct chunk *chunk = &p->chunk[c];
        if (chunk->stamp == p->stamp)
            continue;
        chunk->stamp = p->stamp;
        absent += !chunk->is_resident;
        *out_new += chunk->held[user] == 0;
    }
    return absent;
}

/* True if chunks that a visit of this round still reads would have to be evicted to decode, and
 * visits that need nothing more to be decoded will free others. The request is counted. */
static bool is_early(struct pb_whole_pages *p, enum pb_whole_user user, uint32_t absent)
{
    const uint32_t victims = missing_room(p, absent);
    if (user != PB_WHOLE_DECODING || victims == 0 || (p->is_starved && p->open == 0))
        return false;
    return list_victims(p, 0) < victims || p->mover[victims - 1].next < p->o.visits;
}

/* Waits until the user may hold the chunks of the ranges. Returns their count that are absent, or a
 * negative errno. */
static int await_room(struct pb_whole_pages *p, enum pb_whole_user user,
                      const struct pb_whole_ranges *of, bool wait)
{
    for (;;) {
        uint32_t more;
        const uint32_t absent = count(p, user, of, &more);
        if (p->is_aborted)
            return -ECANCELED;
        const bool fits = p->held[user] + more <= p->o.most[user];
        if (fits && !is_early(p, user, absent))
            return (int)absent;
        if (!wait)
            return -EAGAIN;
        if (!fits && p->held[user] == 0)
            return -ENOMEM;
        pthread_cond_wait(&p->released, &p->lock);
    }
}

/* Lets the queue wait for the last move of the chunks to the device. */
static int join(struct pb_whole_pages *p, const struct pb_whole_ranges *of, uint32_t queue,
                struct pb_err *err)
{
    struct walk walk = walk_of(p, of);
    uint32_t batch = 0;
    for (uint32_t c; next_chunk(&walk, &c);)
        batch = p->chunk[c].moved_in > batch ? p->chunk[c].moved_in : batch;
    return batch > 0 ? p->o.ops->after(p->o.device, queue, in_event(p, batch), err) : 0;
}

static int hold(struct pb_whole_pages *p, enum pb_whole_user user, const struct pb_whole_ranges *of,
                bool wait, struct pb_err *err)
{
    const int absent = await_room(p, user, of, wait);
    int rc = 0;
    if (absent == -ENOMEM) {
        uint32_t chunks;
        (void)count(p, user, of, &chunks);
        return pb_fail(err, PB_E_PLAN_MEMORY,
                       "the planes of %s take %u chunks of the GPU's memory, and they may take %u: "
                       "raise compute.device_memory",
                       user == PB_WHOLE_DECODING ? "a group of blocks" : "a tile", chunks,
                       p->o.most[user]);
    }
    if (absent < 0)
        return absent;
    const uint32_t victims = missing_room(p, (uint32_t)absent);
    if (victims > 0 && list_victims(p, 0) < victims)
        return pb_fail(err, PB_E_SYSTEM, "planes on the GPU were held and not released");
    if (victims > 0)
        rc = evict(p, victims, err);
    if (absent > 0)
        rc = rc ? rc : load(p, of, err);
    struct walk walk = walk_of(p, of);
    for (uint32_t c; next_chunk(&walk, &c);)
        p->held[user] += p->chunk[c].held[user]++ == 0;
    p->is_starved = p->is_starved && user != PB_WHOLE_DECODING;
    return rc;
}

int pb_whole_pages_hold(struct pb_whole_pages *p, enum pb_whole_user user,
                        const struct pb_whole_ranges *of, uint32_t queue, bool wait,
                        struct pb_err *err)
{
    pthread_mutex_lock(&p->lock);
    int rc = hold(p, user, of, wait, err);
    rc = rc ? rc : join(p, of, queue, err);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

void pb_whole_pages_release(struct pb_whole_pages *p, enum pb_whole_user user,
                            const struct pb_whole_ranges *of)
{
    struct walk walk = walk_of(p, of);
    pthread_mutex_lock(&p->lock);
    for (uint32_t c; next_chunk(&walk, &c);)
        p->held[user] -= --p->chunk[c].held[user] == 0;
    pthread_cond_broadcast(&p->released);
    pthread_mutex_unlock(&p->lock);
}

/* True if all chunks of the ranges have been on the device. */
static bool were_there(const struct pb_whole_pages *p, const struct pb_whole_ranges *of)
{
    struct walk walk = walk_of(p, of);
    for (uint32_t c; next_chunk(&walk, &c);)
        if (p->chunk[c].moved_in == 0)
            return false;
    return true;
}

int pb_whole_pages_ahead(struct pb_whole_pages *p, uint64_t visit, const struct pb_whole_ranges *of,
                         struct pb_err *err)
{
    uint32_t more;
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    const uint32_t absent = count(p, PB_WHOLE_COMPUTING, of, &more);
    const uint32_t victims = missing_room(p, absent);
    const bool fits =
        absent > 0 && were_there(p, of) && (victims == 0 || list_victims(p, visit) >= victims);
    if (fits && victims > 0)
        rc = evict(p, victims, err);
    if (fits && rc == 0)
        rc = load(p, of, err);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

void pb_whole_pages_abort(struct pb_whole_pages *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_aborted = true;
    pthread_cond_broadcast(&p->released);
    pthread_mutex_unlock(&p->lock);
}

struct pb_whole_pages_report pb_whole_pages_report(struct pb_whole_pages *p)
{
    struct pb_whole_pages_report report;
    pthread_mutex_lock(&p->lock);
    report = (struct pb_whole_pages_report){.to_device_bytes = p->loaded * p->o.chunk_bytes,
                                            .to_host_bytes = p->evicted * p->o.chunk_bytes,
                                            .most_bytes = p->most_resident * p->o.chunk_bytes};
    pthread_mutex_unlock(&p->lock);
    return report;
}
