/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WEB_RING_H
#define PB_WEB_RING_H
/* History of the service for graphs: a ring of slots for each of an hour, a day and a week, filled
 * from its metrics, in memory only (170 kB). A slot has sums of what happened in its time, and the
 * time that the sums cover. Without samples a slot stays empty: a gap. Thread: any, unless
 * noted. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_WEB_SAMPLE_MS 10000 /* between samples */
#define PB_WEB_LIMITS    20    /* limits of a histogram; further ones are ignored */
#define PB_WEB_STAGES    4

enum pb_web_span { PB_WEB_HOUR, PB_WEB_DAY, PB_WEB_WEEK, PB_WEB_SPANS };

/* Metrics at one moment, summed over the pipelines: counters since the start of the service, and
 * two gauges. */
struct pb_web_sample {
    double start_s; /* when the service started, in Unix time */
    double done, failed, read_bytes, written_bytes, cpu_s;
    double waiting, running;
    struct {
        char name[16];
        double busy_s, parked_s;
    } stage[PB_WEB_STAGES];
    double limit_s[PB_WEB_LIMITS]; /* rising; the last is infinite */
    double delays[PB_WEB_LIMITS];  /* counts at or below each limit and above the one before */
    size_t n_limits;
};

struct pb_web_ring;

/* Reads service.metrics; metrics that are absent are 0. Pure. */
void pb_web_sample_read(const char *text, struct pb_web_sample *out);

/* cores: number of the machine's, to which CPU time is compared. NULL = out of memory. */
struct pb_web_ring *pb_web_ring_create(unsigned cores);
void pb_web_ring_destroy(struct pb_web_ring *ring); /* NULL is allowed */
/* Adds the rises since the sample before, unless that is too long ago: their time is unknown then.
 * Counters of another start count from 0. Thread: one at a time. */
void pb_web_ring_add(struct pb_web_ring *ring, int64_t wall_ms, int64_t mono_ms,
                     const struct pb_web_sample *sample);

/* Reads "hour", "day" or "week"; NULL = hour. */
bool pb_web_span_read(const char *text, enum pb_web_span *out);
/* The slots of a span up to now as JSON (web.md), malloc'd. NULL = out of memory. */
char *pb_web_ring_text(struct pb_web_ring *ring, enum pb_web_span span, int64_t wall_ms);
#endif
