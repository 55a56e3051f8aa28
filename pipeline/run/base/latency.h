/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LATENCY_H
#define PB_LATENCY_H
/* Histogram of the times from the publication of lines to their values: four classes for each
 * power of two of nanoseconds. Thread: any. */
#include <stdatomic.h>
#include <stdint.h>

enum { PB_LATENCY_CLASSES = 256, PB_LATENCY_LIMITS = 16 };

/* Upper limits of the counts in struct pb_latency_counts, in ns, ascending. */
extern const uint64_t pb_latency_limit_ns[PB_LATENCY_LIMITS];

/* n[i]: count of times above limit i - 1, up to limit i; the last one: above all limits. */
struct pb_latency_counts {
    uint64_t n[PB_LATENCY_LIMITS + 1];
    uint64_t sum_ns;
};

struct pb_latency {
    _Atomic uint64_t n[PB_LATENCY_CLASSES];
    _Atomic uint64_t most_ns;
    _Atomic uint64_t within[PB_LATENCY_LIMITS + 1], sum_ns; /* as in struct pb_latency_counts */
};

/* Times of the values of a line in a tile. */
struct pb_latency_report {
    uint64_t n; /* count of times; 0: the other members are unset */
    /* Upper ends of the classes with half and with 99 % of the times, and the longest time. */
    uint64_t p50_ns, p99_ns, most_ns;
};

void pb_latency_add(struct pb_latency *latency, uint64_t ns);
/* The report of the times so far; out->n is their count. */
void pb_latency_get(const struct pb_latency *latency, struct pb_latency_report *out);
/* Copies the counts so far. */
void pb_latency_counts(const struct pb_latency *latency, struct pb_latency_counts *out);
#endif
