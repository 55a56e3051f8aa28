/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Chunks go through channels; what is told, and how far each party is, stands on a board under one
 * lock. An open way ends with a slot of 0 bytes, which wakes the receiver that waits for a chunk.
 * The board keeps the last outcomes: a sender waits before it writes over one that a party has not
 * read. */
#include "wic/pattern/exchange.h"
#include "wic/pattern/text.h"
#include "wic/wic.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OUTCOMES = 64 };

struct wic_exchange {
    const struct wic_pattern *pattern;
    struct wic_pattern_params params;
    uint64_t args[WIC_PATTERN_ARGS_MAX];
    struct wic_channel *way[WIC_PARTIES_MAX][WIC_PARTIES_MAX]; /* NULL: nothing goes there */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    bool aborted;
    uint64_t finished[WIC_PARTIES_MAX];   /* steps, by party */
    struct wic_outcome outcome[OUTCOMES]; /* the n-th that was told, at n % OUTCOMES */
    uint64_t told;
    uint64_t heard[WIC_PARTIES_MAX]; /* outcomes that a party has read, or told itself */
};

/* One party's walk. */
struct walk {
    struct wic_exchange *exchange;
    const struct wic_party *party;
    uint64_t place;        /* in the step that is received: chunks that have come */
    struct wic_slot *held; /* the chunk at place k, at k % params.slots */
    const void **data;     /* params.slots */
};

/* --- create and destroy ---------------------------------------------------------------------- */

static int make_way(struct wic_exchange *x, uint32_t from, uint32_t to)
{
    struct wic_options options = {.slots = x->params.slots, .slot_bytes = x->params.chunk_bytes};
    size_t bytes = (wic_channel_bytes(&options) + 63) / 64 * 64;
    void *memory = bytes == 0 ? NULL : aligned_alloc(64, bytes);
    if (memory == NULL) {
        return -ENOMEM;
    }
    int rc = wic_channel_init(memory, &options, &x->way[from][to]);
    if (rc != 0) {
        free(memory);
    }
    return rc;
}

static int make_ways(struct wic_exchange *x)
{
    int rc = 0;
    for (uint32_t from = 0; from < x->params.parties; from++) {
        for (uint32_t to = 0; to < x->params.parties && rc == 0; to++) {
            rc = x->params.chunks[from][to] != 0 ? make_way(x, from, to) : 0;
        }
    }
    return rc;
}

int wic_exchange_create(const struct wic_pattern *pattern, const struct wic_pattern_params *params,
                        struct wic_exchange **out_exchange, char *text, size_t text_bytes)
{
    struct wic_schedule trial; /* finds bad parameters before a party does */
    int rc = wic_schedule_init(&trial, pattern, params, text, text_bytes);
    if (rc != 0) {
        return rc;
    }
    wic_schedule_fini(&trial);
    struct wic_exchange *x = calloc(1, sizeof(*x));
    if (x == NULL) {
        return wic_fail(-ENOMEM, text, text_bytes, "out of memory for an exchange");
    }
    pthread_mutex_init(&x->lock, NULL);
    pthread_cond_init(&x->changed, NULL);
    x->pattern = pattern;
    x->params = *params;
    wic_pattern_defaults(pattern, x->args);
    if (params->args != NULL && pattern->arg_count > 0) {
        memcpy(x->args, params->args, pattern->arg_count * sizeof(x->args[0]));
    }
    x->params.args = x->args;
    rc = make_ways(x);
    if (rc != 0) {
        wic_exchange_destroy(x);
        return wic_fail(rc, text, text_bytes, "no channels for an exchange: %s", strerror(-rc));
    }
    *out_exchange = x;
    return 0;
}

void wic_exchange_abort(struct wic_exchange *x)
{
    pthread_mutex_lock(&x->lock);
    x->aborted = true;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    for (uint32_t from = 0; from < x->params.parties; from++) {
        for (uint32_t to = 0; to < x->params.parties; to++) {
            if (x->way[from][to] != NULL) {
                wic_abort(x->way[from][to]);
            }
        }
    }
}

void wic_exchange_destroy(struct wic_exchange *x)
{
    if (x == NULL) {
        return;
    }
    for (uint32_t from = 0; from < x->params.parties; from++) {
        for (uint32_t to = 0; to < x->params.parties; to++) {
            if (x->way[from][to] != NULL) {
                wic_channel_fini(x->way[from][to]);
                free(x->way[from][to]);
            }
        }
    }
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

/* --- chunks ---------------------------------------------------------------------------------- */

static int send_chunk(struct walk *w, const struct wic_step *step, uint64_t chunk)
{
    struct wic_channel *way = w->exchange->way[step->from][step->to];
    struct wic_slot slot;
    int rc = wic_acquire(way, WIC_FOREVER, &slot);
    if (rc != 0) {
        return rc;
    }
    int sent = w->party->send(w->party->context, step, chunk, slot.data);
    if (sent < 0) {
        return sent;
    }
    rc = wic_publish(way, &slot, sent == 0 ? step->chunk_bytes : 0);
    return rc != 0 ? rc : sent;
}

/* The chunk at place k of a step of which `count` have come, or will ever. */
static int work(struct walk *w, const struct wic_step *step, uint64_t k, uint64_t count)
{
    uint64_t low, high;
    wic_step_window(step, count, k, &low, &high);
    for (uint64_t i = low; i <= high; i++) {
        w->data[i - low] = w->held[i % w->exchange->params.slots].data;
    }
    struct wic_neighbours with = {w->data, (uint32_t)(high - low + 1), (uint32_t)(k - low)};
    return w->party->receive(w->party->context, step, wic_step_chunk(step, k), &with);
}

/* Works on the chunks from place `k` to before `end`, of a step of which `count` have come. The
 * slot of a chunk goes back when the last one that needs it is done. */
static int work_on(struct walk *w, const struct wic_step *step, uint64_t k, uint64_t end,
                   uint64_t count)
{
    struct wic_channel *way = w->exchange->way[step->from][step->to];
    int rc = 0;
    for (; k < end && rc == 0; k++) {
        rc = work(w, step, k, count);
        if (rc == 0 && k >= step->reach) {
            rc = wic_release(way, &w->held[(k - step->reach) % w->exchange->params.slots]);
        }
    }
    return rc;
}

/* All chunks of the step have come: works on the last ones and gives all slots back. */
static int end_step(struct walk *w, const struct wic_step *step)
{
    struct wic_channel *way = w->exchange->way[step->from][step->to];
    uint64_t count = w->place;
    uint64_t done = count < step->reach ? 0 : count - step->reach;
    int rc = work_on(w, step, done, count, count);
    for (uint64_t k = done; k < count && rc == 0; k++) {
        rc = wic_release(way, &w->held[k % w->exchange->params.slots]);
    }
    w->place = 0;
    return rc;
}

static int receive_chunk(struct walk *w, const struct wic_step *step)
{
    struct wic_channel *way = w->exchange->way[step->from][step->to];
    struct wic_slot *slot = &w->held[w->place % w->exchange->params.slots];
    int rc = wic_wait(way, WIC_FOREVER, slot);
    if (rc != 0) {
        return rc;
    }
    if (slot->bytes == 0) {
        rc = wic_release(way, slot);
        rc = rc != 0 ? rc : end_step(w, step);
        return rc != 0 ? rc : 1;
    }
    if (slot->bytes != step->chunk_bytes) {
        return -EPROTO;
    }
    w->place++;
    if (w->place > step->reach) { /* the one whose last neighbour this is */
        rc = work_on(w, step, w->place - 1 - step->reach, w->place - step->reach, w->place);
    }
    return rc == 0 && w->place == step->count ? end_step(w, step) : rc;
}

static int move(void *context, const struct wic_step *step, uint64_t chunk)
{
    struct walk *w = context;
    return step->from == w->party->number ? send_chunk(w, step, chunk) : receive_chunk(w, step);
}

/* --- the board ------------------------------------------------------------------------------- */

static uint64_t least_heard(const struct wic_exchange *x)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t party = 0; party < x->params.parties; party++) {
        least = x->heard[party] < least ? x->heard[party] : least;
    }
    return least;
}

static int post_outcome(struct wic_exchange *x, uint32_t party, const struct wic_outcome *outcome)
{
    pthread_mutex_lock(&x->lock);
    while (!x->aborted && x->told - least_heard(x) >= OUTCOMES) {
        pthread_cond_wait(&x->changed, &x->lock);
    }
    x->outcome[x->told++ % OUTCOMES] = *outcome;
    x->heard[party]++;
    int rc = x->aborted ? -ECANCELED : 0;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return rc;
}

static int read_outcome(struct wic_exchange *x, uint32_t party, struct wic_outcome *out)
{
    pthread_mutex_lock(&x->lock);
    while (!x->aborted && x->heard[party] == x->told) {
        pthread_cond_wait(&x->changed, &x->lock);
    }
    int rc = x->aborted ? -ECANCELED : 0;
    *out = x->outcome[x->heard[party] % OUTCOMES];
    x->heard[party] += rc == 0;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return rc;
}

static int tell(void *context, const struct wic_step *step, struct wic_outcome *outcome)
{
    struct walk *w = context;
    const struct wic_party *party = w->party;
    uint64_t count = outcome->count;
    if (step->from == party->number) {
        outcome->value =
            party->value == NULL ? 0 : party->value(party->context, step, outcome->count);
        return post_outcome(w->exchange, party->number, outcome);
    }
    int rc = read_outcome(w->exchange, party->number, outcome);
    return rc == 0 && step->to == party->number && outcome->count != count ? -EPROTO : rc;
}

static int await(void *context, const struct wic_step *step)
{
    struct wic_exchange *x = ((struct walk *)context)->exchange;
    pthread_mutex_lock(&x->lock);
    while (!x->aborted && x->finished[step->after_party] < step->after_steps) {
        pthread_cond_wait(&x->changed, &x->lock);
    }
    int rc = x->aborted ? -ECANCELED : 0;
    pthread_mutex_unlock(&x->lock);
    return rc;
}

static int finished(void *context, uint64_t steps)
{
    const struct walk *w = context;
    struct wic_exchange *x = w->exchange;
    pthread_mutex_lock(&x->lock);
    x->finished[w->party->number] = steps;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return 0;
}

/* --- run ------------------------------------------------------------------------------------- */

static int walk_all(struct walk *w, char *text, size_t text_bytes)
{
    struct wic_exchange *x = w->exchange;
    struct wic_replay replay = {w->party->number, move, tell, await, finished, w};
    struct wic_schedule schedule;
    w->held = calloc(x->params.slots, sizeof(*w->held));
    w->data = calloc(x->params.slots, sizeof(*w->data));
    int rc = w->held == NULL || w->data == NULL
                 ? wic_fail(-ENOMEM, text, text_bytes, "out of memory for a party")
                 : wic_schedule_init(&schedule, x->pattern, &x->params, text, text_bytes);
    if (rc == 0) {
        rc = wic_replay_schedule(&schedule, &replay, text, text_bytes);
        wic_schedule_fini(&schedule);
    }
    free(w->held);
    free(w->data);
    return rc;
}

int wic_exchange_run(struct wic_exchange *x, const struct wic_party *party, char *text,
                     size_t text_bytes)
{
    struct walk walk = {.exchange = x, .party = party};
    if (party->number >= x->params.parties) {
        return wic_fail(-EINVAL, text, text_bytes, "there is no party %u", party->number);
    }
    int rc = walk_all(&walk, text, text_bytes);
    if (rc != 0) {
        wic_exchange_abort(x);
    }
    return rc;
}
