/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_METRICS_H
#define PB_METRICS_H
/* Counters since the start of the service, printed in Prometheus' text format. Labels are few and
 * bounded: no job ids, no file names. Plain memory. Thread: loop. */
#include "service/processes/device_retry.h"
#include "service/jobs/journal.h"
#include "service/base/troubles.h"

#include <stddef.h>
#include <stdint.h>

#define PB_METRICS_BUCKETS 10
#define PB_METRICS_REASONS 40
#define PB_METRICS_STAGES  4

struct pb_metrics {
    uint64_t jobs[PB_JOB_STATUS_COUNT]; /* that ended so, or were accepted / started */
    uint64_t duration_bucket[PB_METRICS_BUCKETS + 1];
    double duration_sum_s;
    uint64_t tiles, bytes_read, bytes_written;
    uint64_t worker_starts, worker_deaths;
    uint64_t setbacks; /* runs that a fault of the machine ended */
    uint64_t device_retries_fresh, device_retries_stream, device_retries_cpu;
    struct {
        char code[48];
        uint64_t n;
    } quarantined[PB_METRICS_REASONS];
    struct {
        char name[16];
        double busy_s, parked_s;
    } stage[PB_METRICS_STAGES];
};

/* Values at the moment of the request. */
struct pb_metrics_gauges {
    int64_t queue_depth, running, workers;
    int64_t inbox_waiting, inbox_ignored, inbox_alone, inbox_gathering;
    int64_t start_wall_ms;
    int64_t config_loaded_ms; /* wall clock of the last load that succeeded */
    bool config_refused;      /* the last reload failed */
    uint64_t planned_bytes;   /* tile buffers of the last reported run */
    const struct pb_troubles *troubles;
};

/* A run starts again, as `which` says. */
void pb_metrics_device_retry(struct pb_metrics *metrics, enum pb_device_try which);
/* A job reached its final state: counts it and what its report says. */
void pb_metrics_finished(struct pb_metrics *metrics, const struct pb_job *job);
/* malloc'd text, the caller's; NULL = out of memory. */
char *pb_metrics_print(const struct pb_metrics *metrics, const struct pb_metrics_gauges *gauges);
/* The lines about the entries of notify, n of them; likewise. Thread: any. */
char *pb_metrics_print_subscribers(const struct pb_subscriber_state *subscribers, int n);
#endif
