/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names follow Prometheus' rules: prefix pushbroom_, base units in the plural (_seconds, _bytes),
 * _total for counters, labels over which a sum makes sense. */
#include "service/runner/metrics.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "service/jobs/nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_MAX = 1 << 20 };

/* Limits in seconds; 0 ends a list. */
static const double duration_le[PB_METRICS_BUCKETS + 1] = {
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200};
static const double delivery_le[PB_METRICS_BUCKETS + 1] = {
    0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 1800, 3600, 10800, 43200, 86400, 604800};
static const double acquisition_le[PB_METRICS_BUCKETS + 1] = {
    300,   900,   1800,   3600,   5400,   7200,    10800,   21600,
    43200, 86400, 172800, 432000, 864000, 2592000, 7776000, 31536000};

static void observe(struct pb_metrics_histogram *histogram, const double *le, double seconds)
{
    size_t i = 0;
    while (le[i] > 0 && seconds > le[i])
        i++;
    histogram->bucket[i]++;
    histogram->sum_s += seconds;
}

/* Finds or adds the row of a pipeline. Rows are never removed: a pipeline that is no longer
 * configured keeps its counters. */
static struct pb_metrics_pipeline *row_of(struct pb_metrics *metrics, const char *pipeline)
{
    const char *name = pipeline[0] != '\0' ? pipeline : "none";
    size_t i = 0;
    while (i < metrics->n_pipelines && strcmp(metrics->pipeline[i].name, name) != 0)
        i++;
    if (i >= PB_METRICS_PIPELINES) {
        i = PB_METRICS_PIPELINES;
        name = "other";
    }
    if (i == metrics->n_pipelines) {
        (void)snprintf(metrics->pipeline[i].name, sizeof metrics->pipeline[i].name, "%s", name);
        metrics->n_pipelines++;
    }
    return &metrics->pipeline[i];
}

void pb_metrics_know(struct pb_metrics *metrics, const char *pipeline)
{
    (void)row_of(metrics, pipeline);
}

void pb_metrics_count(struct pb_metrics *metrics, const struct pb_job *job)
{
    row_of(metrics, job->pipeline)->jobs[job->status]++;
}

static void count_reason(struct pb_metrics *metrics, const char *code)
{
    /* Finds the code of err_codes.def; the last row counts all others. */
    size_t i = 0;
    while (i + 1 < PB_METRICS_REASONS && metrics->quarantined[i].n > 0 &&
           strcmp(metrics->quarantined[i].code, code) != 0)
        i++;
    if (metrics->quarantined[i].n++ == 0)
        (void)snprintf(metrics->quarantined[i].code, sizeof metrics->quarantined[i].code, "%s",
                       i + 1 < PB_METRICS_REASONS ? code : "other");
}

static void count_stage(struct pb_metrics *metrics, const struct pb_json_value *stage)
{
    int64_t busy_ms = 0, parked_ms = 0;
    const char *name = pb_json_get_text(stage, "name");
    if (name == NULL)
        return;
    (void)pb_json_get_int(stage, "busy_ms", &busy_ms);
    (void)pb_json_get_int(stage, "parked_ms", &parked_ms);
    for (size_t i = 0; i < PB_METRICS_STAGES; i++) {
        if (metrics->stage[i].name[0] == '\0')
            (void)snprintf(metrics->stage[i].name, sizeof metrics->stage[i].name, "%s", name);
        if (strcmp(metrics->stage[i].name, name) != 0)
            continue;
        metrics->stage[i].busy_s += (double)busy_ms / 1000;
        metrics->stage[i].parked_s += (double)parked_ms / 1000;
        return;
    }
}

void pb_metrics_device_retry(struct pb_metrics *metrics, enum pb_device_try which)
{
    uint64_t *const counters[] = {[PB_DEVICE_TRY_FRESH] = &metrics->device_retries_fresh,
                                  [PB_DEVICE_TRY_STREAM] = &metrics->device_retries_stream,
                                  [PB_DEVICE_TRY_CPU] = &metrics->device_retries_cpu};
    if (which > PB_DEVICE_TRY_FIRST && which < PB_DEVICE_TRY_OVER)
        (*counters[which])++;
}

/* Converts "2020-02-19T11:02:59.123Z" to milliseconds since 1970, without the fraction; 0: not
 * such a time. */
static int64_t acquired_ms(const struct pb_json_value *report)
{
    const char *text = pb_json_get_text(pb_json_get(report, "metadata", NULL), "datetime");
    int64_t seconds = 0;
    return text != NULL && pb_clock_read(text, &seconds) ? seconds * 1000 : 0;
}

/* Counts the age of the products of a job when they appeared. Jobs made again from the archive are
 * left out: their age is not a delay of deliveries. Jobs of archives of several scenes have no
 * products. */
static void count_ages(struct pb_metrics_pipeline *row, const struct pb_job *job,
                       const struct pb_json_value *report)
{
    const int64_t delivered_ms = job->delivered_ms > 0 ? job->delivered_ms : job->created_ms;
    const int64_t taken_ms = acquired_ms(report);
    if (job->status != PB_JOB_SUCCESSFUL || pb_job_is_left_out(job) || pb_job_has_scenes(job) ||
        job->again[0] != '\0')
        return;
    if (job->finished_ms >= delivered_ms)
        observe(&row->delivery, delivery_le, (double)(job->finished_ms - delivered_ms) / 1000);
    if (taken_ms > 0 && job->finished_ms >= taken_ms)
        observe(&row->acquisition, acquisition_le, (double)(job->finished_ms - taken_ms) / 1000);
}

void pb_metrics_finished(struct pb_metrics *metrics, const struct pb_job *job)
{
    struct pb_metrics_pipeline *row = row_of(metrics, job->pipeline);
    struct pb_json_value *report = NULL;
    row->jobs[job->status]++;
    if (job->started_ms > 0 && job->finished_ms >= job->started_ms && !pb_job_has_scenes(job))
        observe(&row->duration, duration_le, (double)(job->finished_ms - job->started_ms) / 1000);
    if (job->status != PB_JOB_SUCCESSFUL && !pb_job_is_scene(job)) /* the archive's job counts */
        count_reason(metrics, job->error.code);
    row->tiles += (uint64_t)job->tiles_done;
    row->bytes_read += (uint64_t)job->bytes_read;
    row->bytes_written += (uint64_t)job->bytes_written;
    if (job->report != NULL)
        (void)pb_json_parse(job->report, strlen(job->report), REPORT_MAX, &report);
    count_ages(row, job, report);
    const struct pb_json_value *stages = pb_json_get(report, "stages", NULL);
    for (size_t i = 0; i < pb_json_count(stages); i++)
        count_stage(metrics, pb_json_at(stages, i));
    pb_json_release(report);
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
    (void)fprintf(out, "# HELP pushbroom_%s %s\n# TYPE pushbroom_%s %s\n", name, help, name, type);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value)
{
    head(out, name, "counter", help);
    (void)fprintf(out, "pushbroom_%s %" PRIu64 "\n", name, value);
}

static void gauge(FILE *out, const char *name, const char *help, int64_t value)
{
    head(out, name, "gauge", help);
    (void)fprintf(out, "pushbroom_%s %" PRId64 "\n", name, value);
}

void pb_metrics_label(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            (void)fputc('\\', out);
        if (*text == '\n')
            (void)fputs("\\n", out);
        else
            (void)fputc(*text, out);
    }
}

static void pipeline_label(FILE *out, const char *name, const char *pipeline)
{
    (void)fprintf(out, "pushbroom_%s{pipeline=\"", name);
    pb_metrics_label(out, pipeline);
    (void)fputc('"', out);
}

/* offset: offset of the counter in struct pb_metrics_pipeline. */
static void print_counters(FILE *out, const struct pb_metrics *metrics, const char *name,
                           const char *help, size_t offset)
{
    head(out, name, "counter", help);
    for (size_t i = 0; i < metrics->n_pipelines; i++) {
        const char *row = (const char *)&metrics->pipeline[i];
        pipeline_label(out, name, metrics->pipeline[i].name);
        (void)fprintf(out, "} %" PRIu64 "\n", *(const uint64_t *)(const void *)(row + offset));
    }
}

static void print_histogram(FILE *out, const char *name, const char *pipeline,
                            const struct pb_metrics_histogram *histogram, const double *le)
{
    char part[64];
    uint64_t sum = 0;
    (void)snprintf(part, sizeof part, "%s_bucket", name);
    for (size_t i = 0; i <= PB_METRICS_BUCKETS; i++) {
        sum += histogram->bucket[i];
        pipeline_label(out, part, pipeline);
        if (le[i] > 0)
            (void)fprintf(out, ",le=\"%g\"} %" PRIu64 "\n", le[i], sum);
        else
            (void)fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", sum);
        if (le[i] <= 0)
            break;
    }
    (void)snprintf(part, sizeof part, "%s_sum", name);
    pipeline_label(out, part, pipeline);
    (void)fprintf(out, "} %.3f\n", histogram->sum_s);
    (void)snprintf(part, sizeof part, "%s_count", name);
    pipeline_label(out, part, pipeline);
    (void)fprintf(out, "} %" PRIu64 "\n", sum);
}

/* Prints a histogram for each pipeline that has a value. */
static void print_histograms(FILE *out, const struct pb_metrics *metrics, const char *name,
                             const char *help, size_t offset, const double *le)
{
    head(out, name, "histogram", help);
    for (size_t i = 0; i < metrics->n_pipelines; i++) {
        const struct pb_metrics_pipeline *row = &metrics->pipeline[i];
        const struct pb_metrics_histogram *histogram = (const void *)((const char *)row + offset);
        uint64_t n = 0;
        for (size_t k = 0; k <= PB_METRICS_BUCKETS; k++)
            n += histogram->bucket[k];
        if (n > 0)
            print_histogram(out, name, row->name, histogram, le);
    }
}

static void print_pipelines(FILE *out, const struct pb_metrics *metrics)
{
    head(out, "jobs_total", "counter", "Jobs by the state they reached.");
    for (size_t i = 0; i < metrics->n_pipelines; i++)
        for (int k = 0; k < PB_JOB_STATUS_COUNT; k++) {
            pipeline_label(out, "jobs_total", metrics->pipeline[i].name);
            (void)fprintf(out, ",state=\"%s\"} %" PRIu64 "\n",
                          pb_job_status_name((enum pb_job_status)k), metrics->pipeline[i].jobs[k]);
        }
#define OF(member) offsetof(struct pb_metrics_pipeline, member)
    print_histograms(out, metrics, "job_duration_seconds", "Time from start to end of jobs.",
                     OF(duration), duration_le);
    print_histograms(out, metrics, "delivery_to_product_seconds",
                     "Time from the arrival of the last file of a scene to its products.",
                     OF(delivery), delivery_le);
    print_histograms(out, metrics, "acquisition_to_product_seconds",
                     "Time from the acquisition that the metadata name to the products.",
                     OF(acquisition), acquisition_le);
    print_counters(out, metrics, "tiles_total", "Tiles of finished jobs.", OF(tiles));
    print_counters(out, metrics, "bytes_read_total", "Decoded bytes of pixels read.",
                   OF(bytes_read));
    print_counters(out, metrics, "bytes_written_total", "Bytes of products written.",
                   OF(bytes_written));
#undef OF
}

static void print_reasons(FILE *out, const struct pb_metrics *metrics)
{
    head(out, "quarantined_total", "counter", "Jobs that ended without products, by error code.");
    for (size_t i = 0; i < PB_METRICS_REASONS && metrics->quarantined[i].n > 0; i++) {
        (void)fputs("pushbroom_quarantined_total{reason=\"", out);
        pb_metrics_label(out, metrics->quarantined[i].code);
        (void)fprintf(out, "\"} %" PRIu64 "\n", metrics->quarantined[i].n);
    }
    head(out, "stage_duration_seconds_total", "counter",
         "Thread time of the stages of finished jobs, busy and parked.");
    for (size_t i = 0; i < PB_METRICS_STAGES && metrics->stage[i].name[0] != '\0'; i++) {
        for (int parked = 0; parked < 2; parked++) {
            (void)fputs("pushbroom_stage_duration_seconds_total{stage=\"", out);
            pb_metrics_label(out, metrics->stage[i].name);
            (void)fprintf(out, "\",mode=\"%s\"} %.3f\n", parked ? "parked" : "busy",
                          parked ? metrics->stage[i].parked_s : metrics->stage[i].busy_s);
        }
    }
}

static void print_subscribers(FILE *out, const struct pb_subscriber_state *all, int n)
{
    static const char *const words[] = {"delivered", "given_up", "expired"};
    head(out, "notify_waiting", "gauge", "Events that wait to be delivered, by entry of notify.");
    for (int i = 0; i < n; i++) {
        (void)fputs("pushbroom_notify_waiting{target=\"", out);
        pb_metrics_label(out, all[i].name);
        (void)fprintf(out, "\"} %" PRId64 "\n", all[i].waiting);
    }
    head(out, "notify_oldest_seconds", "gauge", "Unix time of the oldest of them, 0: none.");
    for (int i = 0; i < n; i++) {
        (void)fputs("pushbroom_notify_oldest_seconds{target=\"", out);
        pb_metrics_label(out, all[i].name);
        (void)fprintf(out, "\"} %.3f\n", (double)all[i].oldest_ms / 1000);
    }
    head(out, "notify_total", "counter", "Events that were delivered, given up, or expired.");
    for (int i = 0; i < 3 * n; i++) {
        const struct pb_subscriber_state *state = &all[i / 3];
        const int64_t ended[] = {state->delivered, state->given_up, state->expired};
        (void)fputs("pushbroom_notify_total{target=\"", out);
        pb_metrics_label(out, state->name);
        (void)fprintf(out, "\",end=\"%s\"} %" PRId64 "\n", words[i % 3], ended[i % 3]);
    }
}

/* Prints what each node does, the same on all nodes. */
static void print_nodes(FILE *out, const struct pb_nodes *nodes)
{
    if (nodes == NULL || nodes->n == 0)
        return;
    head(out, "node_reports", "gauge",
         "1 if the node reports to the job store, 0 if its lease is over or it ended.");
    for (size_t i = 0; i < nodes->n; i++)
        (void)fprintf(out, "pushbroom_node_reports{node=\"%s\"} %d\n", nodes->at[i].name,
                      nodes->at[i].is_alive);
    head(out, "node_draining", "gauge", "1 if the node reports that it drains, else 0.");
    for (size_t i = 0; i < nodes->n; i++)
        (void)fprintf(out, "pushbroom_node_draining{node=\"%s\"} %d\n", nodes->at[i].name,
                      nodes->at[i].is_alive && nodes->at[i].drains);
}

static char *end_text(FILE *out, char **text)
{
    bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return *text;
    free(*text);
    return NULL;
}

char *pb_metrics_print(const struct pb_metrics *metrics, const struct pb_metrics_gauges *gauges)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    head(out, "build_info", "gauge", "Version of the running service.");
    (void)fprintf(out, "pushbroom_build_info{version=\"%s\"} 1\n", PB_VERSION);
    head(out, "start_time_seconds", "gauge", "When the service started, in Unix time.");
    (void)fprintf(out, "pushbroom_start_time_seconds %.3f\n", (double)gauges->start_wall_ms / 1000);
    gauge(out, "config_last_reload_successful",
          "1 if the last reload of the configuration succeeded, else 0.", !gauges->config_refused);
    gauge(out, "draining", "1 while no job and no file is taken (pushbroom drain), else 0.",
          gauges->draining);
    print_nodes(out, gauges->nodes);
    head(out, "config_last_reload_success_timestamp_seconds", "gauge",
         "When the configuration in use was loaded, in Unix time.");
    (void)fprintf(out, "pushbroom_config_last_reload_success_timestamp_seconds %.3f\n",
                  (double)gauges->config_loaded_ms / 1000);
    print_pipelines(out, metrics);
    print_reasons(out, metrics);
    gauge(out, "queue_depth", "Jobs that wait for a worker.", gauges->queue_depth);
    gauge(out, "jobs_running", "Jobs that run now.", gauges->running);
    gauge(out, "workers", "Worker processes.", gauges->workers);
    gauge(out, "inbox_waiting", "Files of the inbox that are not complete yet.",
          gauges->inbox_waiting);
    gauge(out, "inbox_ignored", "Files of the inbox that service.ignore leaves alone.",
          gauges->inbox_ignored);
    gauge(out, "inbox_alone",
          "Markers and checksum files of the inbox without the file that they belong to.",
          gauges->inbox_alone);
    gauge(out, "inbox_gathering", "Scenes of the inbox that wait for files.",
          gauges->inbox_gathering);
    gauge(out, "inbox_refused",
          "Entries of the inbox that the service cannot take: permissions, links, limits.",
          gauges->inbox_refused);
    gauge(out, "inbox_foreign", "Entries of the inbox that no pipeline fits, and that stay.",
          gauges->inbox_foreign);
    gauge(out, "buffer_bytes", "Planned tile buffers of the last finished run.",
          (int64_t)gauges->planned_bytes);
    counter(out, "fetch_refused_total",
            "Connections of other nodes that were refused: too many, or silent.",
            metrics->guests_refused);
    counter(out, "fetch_late_total",
            "Runs of other nodes that were ended here without progress or after limits.job_time.",
            metrics->guests_late);
    counter(out, "worker_starts_total", "Worker processes started.", metrics->worker_starts);
    counter(out, "worker_deaths_total", "Worker processes that died in a job.",
            metrics->worker_deaths);
    counter(out, "setbacks_total", "Runs that a fault of the machine ended, and that are repeated.",
            metrics->setbacks);
    head(out, "device_retries_total", "counter", "Runs started again because a device failed.");
    (void)fprintf(out,
                  "pushbroom_device_retries_total{on=\"fresh\"} %" PRIu64
                  "\npushbroom_device_retries_total{on=\"stream\"} %" PRIu64
                  "\npushbroom_device_retries_total{on=\"cpu\"} %" PRIu64 "\n",
                  metrics->device_retries_fresh, metrics->device_retries_stream,
                  metrics->device_retries_cpu);
    pb_troubles_metrics(gauges->troubles, out);
    return end_text(out, &text);
}

char *pb_metrics_print_subscribers(const struct pb_subscriber_state *subscribers, int n)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    if (n > 0)
        print_subscribers(out, subscribers, n);
    return end_text(out, &text);
}
