/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Writes the lines from a child to its parent, one JSON object in each. */
#include "service/worker/result_json.h"
#include "service/worker/worker_child_parts.h"
#include "service/worker/worker_lines.h"

#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "pipeline/io/io_watch.h"
#include "config/base/err_json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEARTBEAT_MS 2000

void pb_child_say(struct pb_child *worker, struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    if (text == NULL)
        _exit(1); /* the service treats it as a crash */
    if (!pb_line_send(worker->in.fd, text, bytes, NULL, 0))
        _exit(1); /* the parent has closed the socket */
    pb_json_destroy(json);
}

struct pb_json *pb_child_event(const struct pb_child *worker, const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "event", name);
    if (worker->command != NULL)
        pb_json_string(json, "job", pb_json_get_text(worker->command, "job"));
    return json;
}

/* The message contains no path, because the job has the name of its input already and the input
 * will be moved. */
static void say_bounds(struct pb_child *worker, struct pb_json *json)
{
    (void)pthread_mutex_lock(&worker->lock);
    if (worker->has_bounds)
        pb_result_print_bbox(json, worker->bounds);
    (void)pthread_mutex_unlock(&worker->lock);
}

void pb_child_say_failed(struct pb_child *worker, const struct pb_err *err)
{
    struct pb_json *json = pb_child_event(worker, "failed");
    struct pb_err said = *err;
    if (said.line == 0 && strcmp(said.file, worker->child->scene->path) == 0)
        said.file[0] = '\0';
    pb_err_json(json, "error", &said);
    const struct pb_archive_scenes *scenes = &worker->archive.scenes;
    if (err->code == PB_E_INPUT_SCENES)
        pb_json_array(json, "scenes");
    for (size_t i = 0; err->code == PB_E_INPUT_SCENES && i < scenes->n; i++)
        pb_json_string(json, NULL, scenes->name[i]);
    if (err->code == PB_E_INPUT_SCENES)
        pb_json_end(json);
    say_bounds(worker, json);
    pb_json_end(json);
    pb_child_say(worker, json);
}

/* Sends the query of the job's thread; nothing if the job was cancelled meanwhile. */
void pb_child_say_question(struct pb_child *worker)
{
    const char *word = pb_worker_ask_word(&worker->ask);
    if (word == NULL)
        return;
    struct pb_json *json = pb_child_event(worker, word);
    pb_worker_ask_print(&worker->ask, json);
    pb_json_end(json);
    pb_child_say(worker, json);
}

void pb_child_say_device(struct pb_child *worker, const char *device, const char *why)
{
    struct pb_json *json = pb_child_event(worker, "device");
    pb_json_string(json, "device", device);
    pb_json_string(json, "why", why);
    pb_json_end(json);
    pb_child_say(worker, json);
}

static bool is_later(const struct pb_latency_counts *now, const struct pb_latency_counts *said)
{
    bool later = false;
    for (int i = 0; i <= PB_LATENCY_LIMITS; i++) {
        if (now->n[i] < said->n[i])
            return false;
        later = later || now->n[i] > said->n[i];
    }
    return later && now->sum_ns >= said->sum_ns;
}

static void print_latency(struct pb_json *json, const struct pb_latency_counts *counts)
{
    pb_json_array(json, "latency");
    for (int i = 0; i <= PB_LATENCY_LIMITS; i++)
        pb_json_int(json, NULL, (int64_t)counts->n[i]);
    pb_json_int(json, NULL, (int64_t)counts->sum_ns);
    pb_json_end(json);
}

static void say_progress(struct pb_child *worker, bool at_once)
{
    struct pb_run_progress now = worker->said;
    int64_t quiet_ms = pb_clock_mono_ms() - worker->said_ms;
    (void)pthread_mutex_lock(&worker->lock);
    if (worker->run != NULL)
        pb_run_progress(worker->run, &now);
    else if (worker->is_over)
        now = worker->last;
    (void)pthread_mutex_unlock(&worker->lock);
    const struct pb_run_progress *said = &worker->said;
    const bool has_latency = is_later(&now.latency, &said->latency);
    if (!has_latency) /* no new times, or another pass has begun */
        now.latency = said->latency;
    int64_t unpacked = (int64_t)atomic_load(&worker->archive.bytes);
    bool unpacking = atomic_load(&worker->archive.is_unpacking);
    bool moved = unpacked != worker->said_unpacked || now.stage != said->stage ||
                 now.tiles_done != said->tiles_done || now.bytes_read != said->bytes_read ||
                 now.bytes_written != said->bytes_written;
    moved = moved || has_latency;
    int64_t least_ms = at_once                    ? 0
                       : now.stage != said->stage ? 0
                       : moved                    ? PB_CHILD_PROGRESS_MS
                                                  : HEARTBEAT_MS;
    if (quiet_ms < least_ms || (at_once && !has_latency))
        return;
    worker->said = now;
    worker->said_unpacked = unpacked;
    worker->said_ms += quiet_ms;
    struct pb_json *json = pb_child_event(worker, "progress");
    pb_json_string(json, "stage", unpacking ? "unpack" : pb_phase_name(now.stage));
    pb_json_int(json, "tiles_done", now.tiles_done);
    pb_json_int(json, "tiles_total", now.tiles_total);
    pb_json_int(json, "bytes_read", (int64_t)now.bytes_read);
    pb_json_int(json, "bytes_written", (int64_t)now.bytes_written);
    pb_json_int(json, "elapsed_ms", now.elapsed_ms);
    pb_json_string(json, "device", worker->device);
    pb_json_int(json, "io_ms", pb_io_stuck_ms());
    if (now.waits)
        pb_json_bool(json, "waits", true);
    if (has_latency)
        print_latency(json, &now.latency);
    if (unpacked > 0)
        pb_json_int(json, "bytes_checked", unpacked);
    say_bounds(worker, json);
    pb_json_end(json);
    pb_child_say(worker, json);
}

void pb_child_say_progress(struct pb_child *worker)
{
    say_progress(worker, false);
}

void pb_child_say_last(struct pb_child *worker)
{
    say_progress(worker, true);
}

/* --- alerts --- */

static void print_alert(struct pb_json *json, const struct pb_job_alert *alert)
{
    pb_json_object(json, NULL);
    pb_json_string(json, "name", alert->name);
    pb_json_string(json, "band", alert->band);
    pb_json_int(json, "number", alert->number);
    pb_json_int(json, "pixels", alert->pixels);
    pb_json_int(json, "line", alert->line);
    pb_json_int(json, "sample", alert->sample);
    pb_json_int(json, "acquired_ns", alert->acquired_ns);
    pb_json_float(json, "value", alert->value);
    if (alert->has_place) {
        pb_json_number(json, "lon", alert->lon);
        pb_json_number(json, "lat", alert->lat);
    }
    pb_json_end(json);
}

/* The rate of lines is limited by the parent (worker_lines.h). */
int pb_child_say_alerts(struct pb_child *worker)
{
    const int64_t quiet_ms = pb_clock_mono_ms() - worker->alerts_ms;
    (void)pthread_mutex_lock(&worker->lock);
    const uint32_t n = worker->n_alerts - worker->alerts_said;
    (void)pthread_mutex_unlock(&worker->lock);
    if (n == 0)
        return -1;
    if (quiet_ms < PB_CHILD_ALERTS_MS)
        return (int)(PB_CHILD_ALERTS_MS - quiet_ms);
    struct pb_json *json = pb_child_event(worker, "alerts");
    pb_json_array(json, "alerts");
    for (uint32_t i = 0; i < n && i < PB_WORKER_ALERTS_MAX; i++)
        print_alert(json, &worker->alert[worker->alerts_said++]);
    pb_json_end(json);
    pb_json_end(json);
    pb_child_say(worker, json);
    worker->alerts_ms += quiet_ms;
    return n > PB_WORKER_ALERTS_MAX ? PB_CHILD_ALERTS_MS : -1;
}
