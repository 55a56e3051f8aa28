/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Costs of a hand-over between host threads, against the ring everybody writes first: a mutex and
 * two condition variables; and against wic without its spin (one round at most), to see the gain of
 * the spin. The rings run in turn in the same process, so that they see the same machine.
 *
 *   throughput     tickets a second and CPU time a ticket, for 1, 2 and 4 threads a side that do
 *                  nothing else
 *   back-pressure  the same with a ring of one slot: each ticket waits for the one before it
 *   delay          from just before publish to the return of wait, while consumers are parked (one
 *                  ticket every 200 us), for 1 and 4 consumers
 *   round trip     two rings, one thread each way
 *
 * Usage: bench_wic [scale]: 1 is about 10 seconds. A table, then one line of JSON. */
#include "wic/wic.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLOTS       16
#define PERIOD_NS   200000
#define REPEATS     5
#define THREADS_MAX 4

/* --- the two rings with one interface --- */

struct cond_ring {
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t filled, freed;
    uint64_t slots;
    uint64_t head, tail; /* tickets */
    bool full[SLOTS], closed;
    uint64_t stamp[SLOTS];
};

enum kind_of_ring { WIC, WIC_NO_SPIN, COND, RINGS };

static const char *const RING_NAMES[RINGS] = {"wic", "park", "cond"};

struct ring {
    struct wic_channel *channel; /* or else */
    struct cond_ring *cond;
};

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bench_wic: %s failed\n", what);
        exit(1);
    }
}

static struct ring ring_new(enum kind_of_ring kind, uint32_t slots)
{
    struct ring ring = {0};
    if (kind != COND) {
        struct wic_options options = {
            .slots = slots, .slot_bytes = 64, .spin_limit = kind == WIC ? 0 : 1};
        void *memory = aligned_alloc(4096, (wic_channel_bytes(&options) + 4095) / 4096 * 4096);
        must(memory != NULL && wic_channel_init(memory, &options, &ring.channel) == 0, "init");
        return ring;
    }
    ring.cond = calloc(1, sizeof(*ring.cond));
    must(ring.cond != NULL, "calloc");
    ring.cond->slots = slots;
    pthread_mutex_init(&ring.cond->lock, NULL);
    pthread_cond_init(&ring.cond->filled, NULL);
    pthread_cond_init(&ring.cond->freed, NULL);
    return ring;
}

static void ring_free(struct ring *ring)
{
    wic_channel_fini(ring->channel);
    free(ring->channel);
    free(ring->cond);
}

static void cond_put(struct cond_ring *ring, bool stamped, int64_t (*now)(void))
{
    pthread_mutex_lock(&ring->lock);
    while (ring->head - ring->tail == ring->slots || ring->full[ring->head % ring->slots]) {
        pthread_cond_wait(&ring->freed, &ring->lock);
    }
    uint64_t ticket = ring->head++;
    if (ring->head - ring->tail < ring->slots && !ring->full[ring->head % ring->slots]) {
        pthread_cond_signal(&ring->freed); /* freed out of order */
    }
    pthread_mutex_unlock(&ring->lock);
    ring->stamp[ticket % ring->slots] = stamped ? (uint64_t)now() : ticket;
    pthread_mutex_lock(&ring->lock);
    ring->full[ticket % ring->slots] = true;
    pthread_cond_signal(&ring->filled);
    pthread_mutex_unlock(&ring->lock);
}

static bool cond_get(struct cond_ring *ring, uint64_t *out_stamp, int64_t *out_when,
                     int64_t (*now)(void))
{
    pthread_mutex_lock(&ring->lock);
    while (!ring->full[ring->tail % ring->slots] || ring->tail == ring->head) {
        if (ring->closed && ring->tail == ring->head) {
            pthread_mutex_unlock(&ring->lock);
            return false;
        }
        pthread_cond_wait(&ring->filled, &ring->lock);
    }
    uint64_t ticket = ring->tail++;
    if (ring->tail != ring->head && ring->full[ring->tail % ring->slots]) {
        pthread_cond_signal(&ring->filled); /* published out of order */
    }
    if (ring->closed) {
        pthread_cond_broadcast(&ring->filled);
    }
    pthread_mutex_unlock(&ring->lock);
    *out_when = now != NULL ? now() : 0;
    *out_stamp = ring->stamp[ticket % ring->slots];
    pthread_mutex_lock(&ring->lock);
    ring->full[ticket % ring->slots] = false;
    pthread_cond_signal(&ring->freed);
    pthread_mutex_unlock(&ring->lock);
    return true;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One ticket in, with the time if wanted. */
static void ring_put(struct ring *ring, bool stamped)
{
    if (ring->cond != NULL) {
        cond_put(ring->cond, stamped, now_ns);
        return;
    }
    struct wic_slot slot;
    must(wic_acquire(ring->channel, WIC_FOREVER, &slot) == 0, "wic_acquire");
    *(uint64_t *)slot.data = stamped ? (uint64_t)now_ns() : slot.ticket;
    must(wic_publish(ring->channel, &slot, sizeof(uint64_t)) == 0, "wic_publish");
}

/* One ticket out; false at the end. out_when: time of its arrival, if stamped. */
static bool ring_get(struct ring *ring, bool stamped, uint64_t *out_stamp, int64_t *out_when)
{
    if (ring->cond != NULL) {
        return cond_get(ring->cond, out_stamp, out_when, stamped ? now_ns : NULL);
    }
    struct wic_slot slot;
    int rc = wic_wait(ring->channel, WIC_FOREVER, &slot);
    if (rc == -EPIPE) {
        return false;
    }
    must(rc == 0, "wic_wait");
    *out_when = stamped ? now_ns() : 0;
    *out_stamp = *(uint64_t *)slot.data;
    must(wic_release(ring->channel, &slot) == 0, "wic_release");
    return true;
}

static void ring_close(struct ring *ring)
{
    if (ring->cond == NULL) {
        wic_close(ring->channel);
        return;
    }
    pthread_mutex_lock(&ring->cond->lock);
    ring->cond->closed = true;
    pthread_cond_broadcast(&ring->cond->filled);
    pthread_mutex_unlock(&ring->cond->lock);
}

/* --- one run --- */

struct run {
    struct ring there, back; /* back: round trip only */
    long tickets;            /* a producer */
    bool paced;
    int64_t *delays; /* delays of all consumers, filled through at */
    atomic_long at;
};

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void *produce(void *argument)
{
    struct run *run = argument;
    int64_t due = now_ns();
    for (long i = 0; i < run->tickets; i++) {
        if (run->paced) {
            due += PERIOD_NS;
            struct timespec until = {due / 1000000000, due % 1000000000};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        ring_put(&run->there, run->paced);
    }
    return NULL;
}

static void *consume(void *argument)
{
    struct run *run = argument;
    uint64_t stamp;
    int64_t when;
    while (ring_get(&run->there, run->paced, &stamp, &when)) {
        if (run->paced) {
            run->delays[atomic_fetch_add(&run->at, 1)] = when - (int64_t)stamp;
        }
    }
    return NULL;
}

static void *echo(void *argument)
{
    struct run *run = argument;
    uint64_t stamp;
    int64_t when;
    while (ring_get(&run->there, false, &stamp, &when)) {
        ring_put(&run->back, false);
    }
    return NULL;
}

enum kind { THROUGHPUT, DELAY, ROUND_TRIP };

struct scene {
    const char *name;
    enum kind kind;
    int producers, consumers;
    uint32_t slots;
    long tickets; /* at scale 1 */
};

static const struct scene SCENES[] = {
    {"throughput 1x1", THROUGHPUT, 1, 1, SLOTS, 400000},
    {"throughput 2x2", THROUGHPUT, 2, 2, SLOTS, 200000},
    {"throughput 4x4", THROUGHPUT, 4, 4, SLOTS, 200000},
    {"back-pressure", THROUGHPUT, 1, 1, 1, 100000},
    {"delay 1x1", DELAY, 1, 1, SLOTS, 1000},
    {"delay 1x4", DELAY, 1, 4, SLOTS, 1000},
    {"round trip", ROUND_TRIP, 1, 1, SLOTS, 20000},
};

struct result {
    double per_s, cpu_ns_each;
    double p50_us, p99_us;
};

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void percentiles(struct result *result, int64_t *delays, long count)
{
    qsort(delays, (size_t)count, sizeof(*delays), by_size);
    result->p50_us = (double)delays[count / 2] / 1e3;
    result->p99_us = (double)delays[count * 99 / 100] / 1e3;
}

static struct result run_ring(enum kind_of_ring ring, const struct scene *scene, long tickets)
{
    int producers = scene->producers, consumers = scene->consumers;
    bool paced = scene->kind == DELAY;
    struct run run = {
        .there = ring_new(ring, scene->slots), .tickets = tickets / producers, .paced = paced};
    pthread_t threads[2 * THREADS_MAX];
    long count = run.tickets * producers;
    run.delays = calloc((size_t)count, sizeof(*run.delays));
    must(run.delays != NULL, "calloc");
    int64_t cpu = cpu_ns(), start = now_ns();
    for (int i = 0; i < producers + consumers; i++) {
        must(pthread_create(&threads[i], NULL, i < producers ? produce : consume, &run) == 0,
             "thread");
    }
    for (int i = 0; i < producers; i++) {
        pthread_join(threads[i], NULL);
    }
    ring_close(&run.there);
    for (int i = producers; i < producers + consumers; i++) {
        pthread_join(threads[i], NULL);
    }
    struct result result = {.per_s = (double)count * 1e9 / (double)(now_ns() - start),
                            .cpu_ns_each = (double)(cpu_ns() - cpu) / (double)count};
    if (paced) {
        percentiles(&result, run.delays, count);
    }
    free(run.delays);
    ring_free(&run.there);
    return result;
}

static struct result run_round_trips(enum kind_of_ring ring, long tickets)
{
    struct run run = {.there = ring_new(ring, SLOTS), .back = ring_new(ring, SLOTS)};
    pthread_t thread;
    int64_t *delays = calloc((size_t)tickets, sizeof(*delays));
    must(delays != NULL && pthread_create(&thread, NULL, echo, &run) == 0, "thread");
    int64_t cpu = cpu_ns(), start = now_ns();
    for (long i = 0; i < tickets; i++) {
        uint64_t stamp;
        int64_t when, before = now_ns();
        ring_put(&run.there, false);
        ring_get(&run.back, false, &stamp, &when);
        delays[i] = now_ns() - before;
    }
    struct result result = {.per_s = (double)tickets * 1e9 / (double)(now_ns() - start),
                            .cpu_ns_each = (double)(cpu_ns() - cpu) / (double)tickets};
    ring_close(&run.there);
    pthread_join(thread, NULL);
    percentiles(&result, delays, tickets);
    free(delays);
    ring_free(&run.there);
    ring_free(&run.back);
    return result;
}

/* --- the report --- */

static struct result run_scene(const struct scene *scene, enum kind_of_ring ring, double scale)
{
    long tickets = (long)((double)scene->tickets * scale);
    tickets = tickets < 100 ? 100 : tickets;
    if (scene->kind == ROUND_TRIP) {
        return run_round_trips(ring, tickets);
    }
    return run_ring(ring, scene, tickets);
}

static int by_rate(const void *a, const void *b)
{
    double x = ((const struct result *)a)->per_s, y = ((const struct result *)b)->per_s;
    return (x > y) - (x < y);
}

static int by_p50(const void *a, const void *b)
{
    double x = ((const struct result *)a)->p50_us, y = ((const struct result *)b)->p50_us;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double scale = argc > 1 ? strtod(argv[1], NULL) : 1;
    must(scale > 0 && scale <= 1000, "scale (0 < scale <= 1000)");
    size_t scenes = sizeof(SCENES) / sizeof(SCENES[0]);
    struct result median[sizeof(SCENES) / sizeof(SCENES[0])][RINGS];
    printf("%ld cores, %d slots, median of %d runs\n", sysconf(_SC_NPROCESSORS_ONLN), SLOTS,
           REPEATS);
    printf("%-16s %-6s %12s %12s %9s %9s\n", "", "ring", "tickets/s", "CPU ns each", "p50 us",
           "p99 us");
    for (size_t s = 0; s < scenes; s++) {
        struct result results[RINGS][REPEATS];
        for (int i = 0; i < RINGS * REPEATS; i++) {
            int r = i % RINGS;
            results[r][i / RINGS] = run_scene(&SCENES[s], (enum kind_of_ring)r, scale);
        }
        for (int r = 0; r < RINGS; r++) {
            qsort(results[r], REPEATS, sizeof(results[r][0]),
                  SCENES[s].kind == THROUGHPUT ? by_rate : by_p50);
            struct result *m = &median[s][r];
            *m = results[r][REPEATS / 2];
            printf("%-16s %-6s %12.0f %12.0f", SCENES[s].name, RING_NAMES[r], m->per_s,
                   m->cpu_ns_each);
            if (SCENES[s].kind == THROUGHPUT) {
                printf(" %9s %9s\n", "-", "-");
            } else {
                printf(" %9.1f %9.1f\n", m->p50_us, m->p99_us);
            }
        }
        fflush(stdout);
    }
    printf("{\"bench\":\"wic\",\"cores\":%ld,\"slots\":%d,\"results\":[",
           sysconf(_SC_NPROCESSORS_ONLN), SLOTS);
    for (size_t i = 0; i < RINGS * scenes; i++) {
        const struct result *m = &median[i / RINGS][i % RINGS];
        printf("%s{\"scene\":\"%s\",\"ring\":\"%s\",\"per_s\":%.0f,\"cpu_ns_each\":%.0f,"
               "\"p50_us\":%.2f,\"p99_us\":%.2f}",
               i == 0 ? "" : ",", SCENES[i / RINGS].name, RING_NAMES[i % RINGS], m->per_s,
               m->cpu_ns_each, m->p50_us, m->p99_us);
    }
    printf("]}\n");
    return 0;
}
