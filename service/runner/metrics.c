/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Names follow Prometheus' rules: prefix pushbroom_, base units in the plural (_seconds, _bytes),
 * _total for counters, labels over which a sum makes sense. */
#include "service/runner/metrics.h"

#include "config/base/json_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double bucket_s[PB_METRICS_BUCKETS] = {0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200};

static void count_duration(struct pb_metrics *metrics, double seconds)
{
    size_t i = 0;
    while (i < PB_METRICS_BUCKETS && seconds > bucket_s[i])
        i++;
    metrics->duration_bucket[i]++;
    metrics->duration_sum_s += seconds;
}

static void count_reason(struct pb_metrics *metrics, const char *code)
{
    /* Codes come from one list; the last row counts all others. */
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

void pb_metrics_finished(struct pb_metrics *metrics, const struct pb_job *job)
{
    metrics->jobs[job->status]++;
    if (job->started_ms > 0 && job->finished_ms >= job->started_ms)
        count_duration(metrics, (double)(job->finished_ms - job->started_ms) / 1000);
    if (job->status != PB_JOB_SUCCESSFUL)
        count_reason(metrics, job->error.code);
    metrics->tiles += (uint64_t)job->tiles_done;
    metrics->bytes_read += (uint64_t)job->bytes_read;
    metrics->bytes_written += (uint64_t)job->bytes_written;
    struct pb_json_value *report = NULL;
    if (job->report == NULL ||
        pb_json_parse(job->report, strlen(job->report), PB_JSON_LINE_MAX, &report) != 0)
        return;
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

/* A label value: backslash, quote and newline are escaped. */
static void label(FILE *out, const char *text)
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

static void print_jobs(FILE *out, const struct pb_metrics *metrics)
{
    head(out, "jobs_total", "counter", "Jobs by the state they reached.");
    for (int i = 0; i < PB_JOB_STATUS_COUNT; i++)
        (void)fprintf(out, "pushbroom_jobs_total{state=\"%s\"} %" PRIu64 "\n",
                      pb_job_status_name((enum pb_job_status)i), metrics->jobs[i]);
    head(out, "job_duration_seconds", "histogram", "Time from start to end of jobs.");
    uint64_t sum = 0;
    for (size_t i = 0; i < PB_METRICS_BUCKETS; i++) {
        sum += metrics->duration_bucket[i];
        (void)fprintf(out, "pushbroom_job_duration_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                      bucket_s[i], sum);
    }
    sum += metrics->duration_bucket[PB_METRICS_BUCKETS];
    (void)fprintf(out,
                  "pushbroom_job_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64
                  "\npushbroom_job_duration_seconds_sum %.3f"
                  "\npushbroom_job_duration_seconds_count %" PRIu64 "\n",
                  sum, metrics->duration_sum_s, sum);
    head(out, "quarantined_total", "counter", "Jobs that ended without products, by error code.");
    for (size_t i = 0; i < PB_METRICS_REASONS && metrics->quarantined[i].n > 0; i++) {
        (void)fputs("pushbroom_quarantined_total{reason=\"", out);
        label(out, metrics->quarantined[i].code);
        (void)fprintf(out, "\"} %" PRIu64 "\n", metrics->quarantined[i].n);
    }
    head(out, "stage_duration_seconds_total", "counter",
         "Thread time of the stages of finished jobs, busy and parked.");
    for (size_t i = 0; i < PB_METRICS_STAGES && metrics->stage[i].name[0] != '\0'; i++) {
        for (int parked = 0; parked < 2; parked++) {
            (void)fputs("pushbroom_stage_duration_seconds_total{stage=\"", out);
            label(out, metrics->stage[i].name);
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
        label(out, all[i].name);
        (void)fprintf(out, "\"} %" PRId64 "\n", all[i].waiting);
    }
    head(out, "notify_oldest_seconds", "gauge", "Unix time of the oldest of them, 0: none.");
    for (int i = 0; i < n; i++) {
        (void)fputs("pushbroom_notify_oldest_seconds{target=\"", out);
        label(out, all[i].name);
        (void)fprintf(out, "\"} %.3f\n", (double)all[i].oldest_ms / 1000);
    }
    head(out, "notify_total", "counter", "Events that were delivered, given up, or expired.");
    for (int i = 0; i < 3 * n; i++) {
        const struct pb_subscriber_state *state = &all[i / 3];
        const int64_t ended[] = {state->delivered, state->given_up, state->expired};
        (void)fputs("pushbroom_notify_total{target=\"", out);
        label(out, state->name);
        (void)fprintf(out, "\",end=\"%s\"} %" PRId64 "\n", words[i % 3], ended[i % 3]);
    }
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
    head(out, "config_last_reload_success_timestamp_seconds", "gauge",
         "When the configuration in use was loaded, in Unix time.");
    (void)fprintf(out, "pushbroom_config_last_reload_success_timestamp_seconds %.3f\n",
                  (double)gauges->config_loaded_ms / 1000);
    print_jobs(out, metrics);
    gauge(out, "queue_depth", "Jobs that wait for a worker.", gauges->queue_depth);
    gauge(out, "jobs_running", "Jobs that run now.", gauges->running);
    gauge(out, "workers", "Worker processes.", gauges->workers);
    gauge(out, "inbox_waiting", "Files of the inbox that are not complete yet.",
          gauges->inbox_waiting);
    gauge(out, "inbox_ignored", "Files of the inbox that service.ignore leaves alone.",
          gauges->inbox_ignored);
    gauge(out, "inbox_alone",
          "Markers and checksum files of the inbox without the file that they "
          "speak of.",
          gauges->inbox_alone);
    gauge(out, "inbox_gathering", "Scenes of the inbox that wait for files.",
          gauges->inbox_gathering);
    gauge(out, "buffer_bytes", "Planned tile buffers of the last finished run.",
          (int64_t)gauges->planned_bytes);
    counter(out, "tiles_total", "Tiles of finished jobs.", metrics->tiles);
    counter(out, "bytes_read_total", "Decoded bytes of pixels read.", metrics->bytes_read);
    counter(out, "bytes_written_total", "Bytes of products written.", metrics->bytes_written);
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
