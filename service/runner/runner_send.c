/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a place says to its worker; worker.h has the words. */
#include "config/base/json_writer.h"
#include "config/base/clock.h"
#include "service/runner/runner_place.h"

static void send_line(struct pb_place *place, struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    /* A worker that was not told its work is ended, and its end says the rest. */
    if (text == NULL || pb_worker_proc_send(place->proc, text, bytes) != 0) {
        place->untold = place->busy;
        pb_worker_proc_kill(place->proc);
    }
    pb_json_destroy(json);
}

static struct pb_json *command(struct pb_place *place, const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", name);
    pb_json_string(json, "config", place->runner->config->text);
    pb_json_string(json, "config_name", place->runner->config->path);
    return json;
}

void pb_place_ask_device(struct pb_place *place)
{
    struct pb_json *json = command(place, "probe");
    pb_json_end(json);
    send_line(place, json);
}

void pb_place_send_run(struct pb_place *place)
{
    const struct pb_job *job = &place->job;
    struct pb_json *json = command(place, "run");
    pb_json_string(json, "job", job->id);
    pb_json_string(json, "pipeline", job->pipeline);
    pb_json_string(json, "input", job->input);
    pb_json_string(json, "products", place->runner->options.dirs->products);
    pb_json_string(json, "scene", job->scene);
    pb_json_string(json, "name", job->name);
    if (job->identity[0] != '\0')
        pb_json_string(json, "identity", job->identity);
    if (place->device_try == PB_DEVICE_TRY_CPU || pb_express_on_cpu(place))
        pb_json_string(json, "device", "cpu");
    if (place->device_try == PB_DEVICE_TRY_STREAM)
        pb_json_string(json, "stream_why", job->device_why);
    pb_json_end(json);
    place->moved_ms = pb_clock_mono_ms();
    pb_worker_lines_begin(&place->lines, job, place->runner->options.dirs->products);
    send_line(place, json);
}
