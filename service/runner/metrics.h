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
#include <stdio.h>

#define PB_METRICS_BUCKETS 16 /* maximum number of buckets of a histogram */
/* pipelines with a row of their own; the last row counts all others */
#define PB_METRICS_PIPELINES 64
#define PB_METRICS_REASONS   40
#define PB_METRICS_STAGES    4

/* Counts of values at or below each limit and of those above all, in the order of the limits. */
struct pb_metrics_histogram {
    uint64_t bucket[PB_METRICS_BUCKETS + 1];
    double sum_s;
};

/* Counters of the jobs of one pipeline. */
struct pb_metrics_pipeline {
    char name[PB_JOB_NAME_BYTES];
    uint64_t jobs[PB_JOB_STATUS_COUNT]; /* count of jobs that ended in this state, or were accepted
                                           or started */
    uint64_t tiles, bytes_read, bytes_written;
    struct pb_metrics_histogram duration, delivery, acquisition;
};

struct pb_metrics {
    struct pb_metrics_pipeline pipeline[PB_METRICS_PIPELINES + 1];
    size_t n_pipelines;
    uint64_t worker_starts, worker_deaths;
    uint64_t setbacks; /* runs that a fault of the machine ended */
    /* refused connections of other nodes; runs of other nodes that a time limit ended here */
    uint64_t guests_refused, guests_late;
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

struct pb_nodes;

/* Values at the moment of the request. */
struct pb_metrics_gauges {
    int64_t queue_depth, running, workers;
    int64_t inbox_waiting, inbox_ignored, inbox_alone, inbox_gathering;
    int64_t inbox_refused, inbox_foreign;
    int64_t start_wall_ms;
    int64_t config_loaded_ms;     /* wall clock of the last load that succeeded */
    bool config_refused;          /* the last reload failed */
    bool draining;                /* no job and no file is taken, because a client requested that */
    const struct pb_nodes *nodes; /* nodes of the last report; NULL: not shared */
    uint64_t planned_bytes;       /* tile buffers of the last reported run */
    const struct pb_troubles *troubles;
};

/* Gives a configured pipeline its row, so that its counters are printed from 0. */
void pb_metrics_know(struct pb_metrics *metrics, const char *pipeline);
/* Call when a job was accepted or started: counts its status. */
void pb_metrics_count(struct pb_metrics *metrics, const struct pb_job *job);
/* Counts a run that starts again; `which`: the new try. */
void pb_metrics_device_retry(struct pb_metrics *metrics, enum pb_device_try which);
/* Call when a job reached its final state: counts it and the facts of its report. */
void pb_metrics_finished(struct pb_metrics *metrics, const struct pb_job *job);
/* Writes a label value: backslash, quote and newline are escaped. Thread: any. */
void pb_metrics_label(FILE *out, const char *text);
/* Returns malloc'd text, owned by the caller; NULL = out of memory. */
char *pb_metrics_print(const struct pb_metrics *metrics, const struct pb_metrics_gauges *gauges);
/* Prints the lines about n entries of notify; malloc'd as well. Thread: any. */
char *pb_metrics_print_subscribers(const struct pb_subscriber_state *subscribers, int n);
#endif
