/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FAKE_LINK_H
#define TEST_FAKE_LINK_H
/* wic/device/link.h answered by a thread in the place of a GPU's kernel, for the test of the device
 * proxy. It does tiles out of order and misbehaves as its script requires. Breaches of the contract
 * of link.h by the device proxy are counted in fake.wrong. The linker takes these functions before
 * those of libwic. Result of a tile: each byte of its input plus the ninth of its user bytes. */
#include "wic/device/link.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAKE_RING 32u
#define FAKE_USER 16u

struct fake_script {
    int create_rc, report_rc;
    int busy;            /* how many starts find the device full */
    long busy_ns;        /* and how long each takes to find out */
    uint64_t die_at;     /* tiles done, in all launches, after which the kernel fails; 0: never */
    uint64_t silent_at;  /* tiles after which each launch ends without a heartbeat; 0: none */
    bool silent_at_once; /* no launch does anything */
    unsigned returning;  /* the input of a done tile is back, and lost, after this many looks */
    bool stalls;         /* sleeps and yields at random, on both sides */
    atomic_bool stuck;   /* does nothing, but leaves on abort */
    bool deaf;           /* and does not even do that; join reports it at once */
};

struct fake_entry {
    _Atomic uint64_t posted, done; /* tile + 1 */
    unsigned looks;                /* looks of the device proxy since it is done */
    struct wic_link_tile tile;
    unsigned char user[FAKE_USER];
};

struct wic_link {
    struct wic_link_options options;
    struct fake_entry ring[FAKE_RING];
    uint64_t in_first, out_first;
    uint64_t next_post, next_done; /* tickets of the device proxy in this launch */
    _Atomic uint64_t end;
    atomic_int running; /* 1, 0, -EIO */
    bool joinable;
    pthread_t thread;
};

static struct {
    struct fake_script script;
    struct wic_link link;
    atomic_uint wrong, starts, beats, links, redone;
    atomic_uint share, halves; /* set for the next start; starts with half */
    _Atomic uint64_t worked;   /* tiles, in all launches */
} fake;

static inline void fake_expect(bool good)
{
    if (!good) {
        fake.wrong++;
    }
}

static inline void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
}

/* Now and then a yield, seldom a sleep. */
static inline void fake_stall(void)
{
    static _Thread_local unsigned state;
    static atomic_uint seed;
    if (!fake.script.stalls) {
        return;
    }
    if (state == 0) {
        state = 2 * atomic_fetch_add(&seed, 77777) + 1;
    }
    state = state * 1664525u + 1013904223u;
    unsigned what = state >> 8;
    if (what % 64 == 0) {
        nanosleep(&(struct timespec){.tv_nsec = (what >> 8) % 50000}, NULL);
    } else if (what % 8 == 0) {
        sched_yield();
    }
}

/* --- the kernel --- */

static inline struct fake_entry *fake_entry_of(struct wic_link *link, uint64_t tile)
{
    return &link->ring[tile % FAKE_RING];
}

static inline void fake_work(struct wic_link *link, struct fake_entry *entry)
{
    const struct wic_link_options *o = &link->options;
    const struct wic_link_tile *t = &entry->tile;
    const unsigned char *in =
        (const unsigned char *)o->in + (link->in_first + t->number) % o->in_slots * o->in_stride;
    unsigned char *out =
        (unsigned char *)o->out + (link->out_first + t->number) % o->out_slots * o->out_stride;
    for (size_t k = 0; k < t->units; k++) {
        out[k] = (unsigned char)(in[k] + entry->user[8]);
    }
    fake.worked++;
    fake_stall();
    atomic_store(&entry->done, t->number + 1);
}

/* The newest of the tiles that are posted and not done; the first of a launch is the oldest, so
 * that no launch is in vain. */
static inline struct fake_entry *fake_choose(struct wic_link *link, uint64_t finished)
{
    if (finished == 0) {
        struct fake_entry *oldest = fake_entry_of(link, 0);
        return atomic_load(&oldest->posted) == 1 ? oldest : NULL;
    }
    for (uint64_t ahead = FAKE_RING; ahead-- > 0;) {
        struct fake_entry *entry = fake_entry_of(link, finished + ahead);
        if (atomic_load(&entry->posted) == finished + ahead + 1 &&
            atomic_load(&entry->done) != finished + ahead + 1) {
            return entry;
        }
    }
    return NULL;
}

static inline bool fake_goes_on(struct wic_link *link, uint64_t finished, uint64_t worked)
{
    uint64_t end = atomic_load(&link->end);
    bool silent = fake.script.silent_at_once ||
                  (fake.script.silent_at > 0 && worked >= fake.script.silent_at);
    return end != WIC_LINK_ABORT && finished < end && !silent;
}

static inline void *fake_kernel(void *argument)
{
    struct wic_link *link = argument;
    int left = 0;
    uint64_t before = fake.worked;
    for (uint64_t finished = 0; fake_goes_on(link, finished, fake.worked - before);) {
        struct fake_entry *entry =
            atomic_load(&fake.script.stuck) ? NULL : fake_choose(link, finished);
        if (entry == NULL) {
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
            continue;
        }
        if (fake.script.die_at > 0 && fake.worked >= fake.script.die_at) {
            left = -EIO;
            break;
        }
        fake_work(link, entry);
        /* After each tile: a done one is handed over at once, and its entry is filled again. */
        while (atomic_load(&fake_entry_of(link, finished)->done) == finished + 1) {
            finished++;
        }
    }
    atomic_store(&link->running, left);
    return NULL;
}

/* --- wic/device/link.h --- */

int wic_link_create(const struct wic_link_options *options, struct wic_link **out_link)
{
    if (fake.script.create_rc != 0) {
        return fake.script.create_rc;
    }
    fake.link.options = *options;
    fake_expect(options->in_slots <= FAKE_RING && options->out_slots <= FAKE_RING);
    fake_expect(options->plan.user_bytes <= FAKE_USER);
    fake.links++;
    *out_link = &fake.link;
    return 0;
}

/* A deaf kernel is released here, after the answer that it was still running. */
int wic_link_destroy(struct wic_link *link)
{
    fake.links--;
    if (fake.script.deaf && link->joinable) {
        fake.script.deaf = false;
        atomic_store(&link->end, WIC_LINK_ABORT);
        pthread_join(link->thread, NULL);
        link->joinable = false;
        return -ETIMEDOUT;
    }
    fake_expect(!link->joinable && atomic_load(&link->running) != 1);
    return 0;
}

void wic_link_shaped(const struct wic_link *link, struct wic_shaped *out_shaped)
{
    *out_shaped =
        (struct wic_shaped){link->options.share.way, 1, link->options.plan.blocks, {'\0'}};
}

void wic_link_share(struct wic_link *link, uint32_t share)
{
    fake_expect(!link->joinable && share > 0 && share <= WIC_SHARE_WHOLE);
    atomic_store(&fake.share, share);
}

int wic_link_start(struct wic_link *link, uint64_t in_first, uint64_t out_first)
{
    fake.starts++;
    fake.halves += atomic_load(&fake.share) == WIC_SHARE_WHOLE / 2;
    fake_expect(!link->joinable && atomic_load(&link->running) == 0);
    if (fake.script.busy > 0) {
        fake.script.busy--;
        nanosleep(&(struct timespec){.tv_nsec = fake.script.busy_ns}, NULL);
        return -EBUSY;
    }
    for (unsigned i = 0; i < FAKE_RING; i++) {
        atomic_store(&link->ring[i].posted, 0);
        atomic_store(&link->ring[i].done, 0);
    }
    link->in_first = in_first;
    link->out_first = out_first;
    link->next_post = link->next_done = 0;
    atomic_store(&link->end, WIC_LINK_OPEN);
    atomic_store(&link->running, 1);
    link->joinable = pthread_create(&link->thread, NULL, fake_kernel, link) == 0;
    return link->joinable ? 0 : -EIO;
}

int wic_link_join(struct wic_link *link, int64_t timeout_ns)
{
    if (fake.script.deaf) {
        return -ETIMEDOUT;
    }
    for (int64_t waited = 0; atomic_load(&link->running) == 1; waited += 100000) {
        if (waited > timeout_ns) {
            return -ETIMEDOUT;
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    fake_expect(link->joinable);
    if (link->joinable) {
        pthread_join(link->thread, NULL);
        link->joinable = false;
    }
    return atomic_load(&link->running);
}

int wic_link_running(struct wic_link *link)
{
    fake_stall();
    return atomic_load(&link->running);
}

int wic_link_post(struct wic_link *link, const struct wic_link_tile *tile)
{
    struct fake_entry *entry = fake_entry_of(link, tile->number);
    fake_expect(tile->number == link->next_post && tile->number - link->next_done < FAKE_RING);
    link->next_post++;
    entry->tile = *tile;
    entry->looks = 0;
    memcpy(entry->user, tile->user, link->options.plan.user_bytes);
    fake_stall();
    atomic_store(&entry->posted, tile->number + 1);
    return 0;
}

bool wic_link_done(struct wic_link *link, uint64_t tile)
{
    fake_expect(tile < link->next_post && tile >= link->next_done);
    link->next_done = tile;
    fake_stall();
    struct fake_entry *entry = fake_entry_of(link, tile);
    if (atomic_load(&entry->done) != tile + 1) {
        return false;
    }
    if (fake.script.returning > 0 && entry->looks == 0) {
        const struct wic_link_options *o = &link->options;
        memset((unsigned char *)o->in + (link->in_first + tile) % o->in_slots * o->in_stride, 0x5a,
               o->in_stride);
    }
    return entry->looks++ >= fake.script.returning;
}

bool wic_link_computed(struct wic_link *link, uint64_t tile)
{
    return atomic_load(&fake_entry_of(link, tile)->done) == tile + 1;
}

void wic_link_beat(struct wic_link *link)
{
    (void)link;
    fake.beats++;
}

void wic_link_close(struct wic_link *link, uint64_t tiles)
{
    uint64_t open = WIC_LINK_OPEN;
    fake_expect(tiles == link->next_post);
    if (!fake.script.deaf) {
        atomic_compare_exchange_strong(&link->end, &open, tiles);
    }
}

void wic_link_abort(struct wic_link *link)
{
    if (fake.script.deaf) {
        return;
    }
    atomic_store(&link->end, WIC_LINK_ABORT);
}

int wic_link_report(struct wic_link *link, struct wic_link_state *out_state)
{
    fake_expect(!link->joinable);
    memset(out_state, 0, sizeof(*out_state));
    out_state->started = 1;
    out_state->starved_ns = 1; /* so that the device proxy's sum is the number of launches */
    return fake.script.report_rc;
}

int wic_gpu_read(int device, struct wic_gpu *out_gpu)
{
    *out_gpu = (struct wic_gpu){"fake", 90 + device, 4, 233472, 232448};
    return 0;
}
#endif
