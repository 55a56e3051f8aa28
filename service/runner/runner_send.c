/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * What a worker slot says to its worker; worker.h has the words. */
#include "config/base/json_writer.h"
#include "config/base/clock.h"
#include "service/runner/worker_slot.h"

static void send_line(struct pb_worker_slot *slot, struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    /* A worker that was not told its work is ended, and its end says the rest. */
    if (text == NULL || pb_worker_proc_send(slot->proc, text, bytes) != 0) {
        slot->untold = slot->busy;
        pb_worker_proc_kill(slot->proc);
    }
    pb_json_destroy(json);
}

static struct pb_json *command(struct pb_worker_slot *slot, const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", name);
    pb_json_string(json, "config", slot->runner->config->text);
    pb_json_string(json, "config_name", slot->runner->config->path);
    return json;
}

void pb_worker_slot_ask_device(struct pb_worker_slot *slot)
{
    struct pb_json *json = command(slot, "probe");
    pb_json_end(json);
    send_line(slot, json);
}

void pb_worker_slot_send_run(struct pb_worker_slot *slot)
{
    const struct pb_job *job = &slot->job;
    struct pb_json *json = command(slot, "run");
    pb_json_string(json, "job", job->id);
    pb_json_string(json, "pipeline", job->pipeline);
    pb_json_string(json, "input", job->input);
    pb_json_string(json, "products", slot->runner->options.dirs->products);
    pb_json_string(json, "scene", job->scene);
    pb_json_string(json, "name", job->name);
    if (job->identity[0] != '\0')
        pb_json_string(json, "identity", job->identity);
    if (slot->device_try == PB_DEVICE_TRY_CPU || pb_express_on_cpu(slot))
        pb_json_string(json, "device", "cpu");
    if (slot->device_try == PB_DEVICE_TRY_STREAM)
        pb_json_string(json, "stream_why", job->device_why);
    pb_json_end(json);
    slot->moved_ms = pb_clock_mono_ms();
    pb_worker_lines_begin(&slot->lines, job, slot->runner->options.dirs->products);
    send_line(slot, json);
}
