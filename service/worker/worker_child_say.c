/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Writes the lines from a child to its parent, one JSON object in each. */
#include "service/worker/result_json.h"
#include "service/worker/worker_child_parts.h"

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

void pb_child_say_progress(struct pb_child *worker)
{
    struct pb_run_progress now = worker->said;
    int64_t quiet_ms = pb_clock_mono_ms() - worker->said_ms;
    (void)pthread_mutex_lock(&worker->lock);
    if (worker->run != NULL)
        pb_run_progress(worker->run, &now);
    (void)pthread_mutex_unlock(&worker->lock);
    const struct pb_run_progress *said = &worker->said;
    int64_t unpacked = (int64_t)atomic_load(&worker->archive.bytes);
    bool unpacking = atomic_load(&worker->archive.is_unpacking);
    bool moved = unpacked != worker->said_unpacked || now.stage != said->stage ||
                 now.tiles_done != said->tiles_done || now.bytes_read != said->bytes_read ||
                 now.bytes_written != said->bytes_written;
    int64_t least_ms = now.stage != said->stage ? 0 : moved ? PB_CHILD_PROGRESS_MS : HEARTBEAT_MS;
    if (quiet_ms < least_ms)
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
    if (unpacked > 0)
        pb_json_int(json, "bytes_checked", unpacked);
    say_bounds(worker, json);
    pb_json_end(json);
    pb_child_say(worker, json);
}
