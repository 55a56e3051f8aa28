/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LATENCY_H
#define PB_LATENCY_H
/* Latencies as they are measured, for exact percentiles at the end. Thread: one at a time. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct latency {
    uint32_t *us;
    size_t n, room;
};

static inline int64_t latency_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Processor time of this process, in ms. */
static inline int64_t latency_cpu_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline void latency_add(struct latency *l, int64_t us)
{
    if (l->n == l->room) {
        l->room = l->room ? l->room * 2 : 4096;
        l->us = realloc(l->us, l->room * sizeof *l->us);
        if (l->us == NULL)
            abort();
    }
    l->us[l->n++] = us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static inline int latency_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* "n":..,"p50":..,"p99":..,"max":.. in microseconds; nearest-rank percentiles. */
static inline void latency_print(struct latency *l)
{
    uint32_t p50 = 0, p99 = 0, most = 0;
    if (l->n > 0) {
        qsort(l->us, l->n, sizeof *l->us, latency_compare);
        p50 = l->us[(l->n * 50 + 99) / 100 - 1];
        p99 = l->us[(l->n * 99 + 99) / 100 - 1];
        most = l->us[l->n - 1];
    }
    printf("\"n\":%zu,\"p50\":%" PRIu32 ",\"p99\":%" PRIu32 ",\"max\":%" PRIu32, l->n, p50, p99,
           most);
}
#endif
