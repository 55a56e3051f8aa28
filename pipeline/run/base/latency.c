/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/base/latency.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

const uint64_t pb_latency_limit_ns[PB_LATENCY_LIMITS] = {
    10 * US, 30 * US, 60 * US, 100 * US, 200 * US, 500 * US, 1 * MS,    2 * MS,
    5 * MS,  10 * MS, 20 * MS, 50 * MS,  100 * MS, 500 * MS, 2000 * MS, 10000 * MS};

/* Class of a time: its highest bit and the two bits below. */
static unsigned class_of(uint64_t ns)
{
    const unsigned high = ns < 4 ? 2 : 63 - (unsigned)__builtin_clzll(ns);
    return ns < 4 ? (unsigned)ns : 4 * (high - 1) + (unsigned)(ns >> (high - 2) & 3);
}

/* Smallest time of the next class. */
static uint64_t end_of(unsigned class)
{
    const unsigned next = class + 1, high = next / 4 + 1;
    return next < 4 ? next : (UINT64_C(4) + next % 4) << (high - 2);
}

void pb_latency_add(struct pb_latency *latency, uint64_t ns)
{
    uint64_t most = atomic_load_explicit(&latency->most_ns, memory_order_relaxed);
    unsigned i = 0;
    while (i < PB_LATENCY_LIMITS && ns > pb_latency_limit_ns[i])
        i++;
    atomic_fetch_add_explicit(&latency->within[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&latency->sum_ns, ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&latency->n[class_of(ns)], 1, memory_order_relaxed);
    while (ns > most &&
           !atomic_compare_exchange_weak_explicit(&latency->most_ns, &most, ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Upper end of the class with that share of the n times. */
static uint64_t percentile(const struct pb_latency *latency, uint64_t n, unsigned percent)
{
    uint64_t seen = 0;
    unsigned i = 0;
    for (; i < PB_LATENCY_CLASSES; i++) {
        seen += atomic_load_explicit(&latency->n[i], memory_order_relaxed);
        if (seen * 100 >= n * percent)
            break;
    }
    return end_of(i);
}

void pb_latency_get(const struct pb_latency *latency, struct pb_latency_report *out)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < PB_LATENCY_CLASSES; i++)
        n += atomic_load_explicit(&latency->n[i], memory_order_relaxed);
    *out = (struct pb_latency_report){.n = n};
    if (n == 0)
        return;
    out->p50_ns = percentile(latency, n, 50);
    out->p99_ns = percentile(latency, n, 99);
    out->most_ns = atomic_load_explicit(&latency->most_ns, memory_order_relaxed);
}

void pb_latency_counts(const struct pb_latency *latency, struct pb_latency_counts *out)
{
    for (unsigned i = 0; i <= PB_LATENCY_LIMITS; i++)
        out->n[i] = atomic_load_explicit(&latency->within[i], memory_order_relaxed);
    out->sum_ns = atomic_load_explicit(&latency->sum_ns, memory_order_relaxed);
}
