/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lines between a worker slot and its worker; worker.h has the protocol. */
#include "config/base/clock.h"
#include "config/base/json_writer.h"
#include "config/config.h"
#include "service/processes/worker_slot_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- commands -------------------------------------------------------------------------------*/

static bool send_line(struct pb_worker_slot *slot, struct pb_json *json)
{
    size_t bytes = 0;
    const char *text = pb_json_text(json, &bytes);
    bool sent = text != NULL && pb_worker_proc_send(slot->proc, text, bytes) == 0;
    pb_json_destroy(json);
    return sent;
}

static struct pb_json *command(const struct pb_worker_slot *slot, const char *name)
{
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", name);
    pb_json_string(json, "config", slot->owner->config->text);
    pb_json_string(json, "config_name", slot->owner->config->path);
    if (slot->owner->owner_why != NULL)
        pb_json_string(json, "owner_why", slot->owner->owner_why);
    return json;
}

void pb_worker_slot_probe(struct pb_worker_slot *slot)
{
    if (slot->state != PB_SLOT_IDLE)
        return;
    struct pb_json *json = command(slot, "probe");
    pb_json_end(json);
    if (!send_line(slot, json))
        (void)pb_slot_event(slot, PB_SLOT_ON_KILL);
}

static void say_owner(struct pb_json *json, const struct pb_worker_slot *slot,
                      const struct pb_run_how *how)
{
    const struct pb_worker_slot_owner *o = slot->owner;
    bool on_cpu = how->device != NULL && strcmp(how->device, "cpu") == 0;
    const char *owner = o->on_owner != NULL ? o->on_owner(o->user, slot->number, !on_cpu) : NULL;
    if (owner != NULL)
        pb_json_string(json, "owner", owner);
}

static void print_home(struct pb_json *json, const struct pb_run_home *home)
{
    pb_json_object(json, "home");
    pb_json_string(json, "node", home->node);
    pb_json_string(json, "address", home->address);
    pb_json_string(json, "socket", home->socket);
    pb_json_string(json, "room", home->room);
    pb_json_end(json);
}

static struct pb_json *run_command(const struct pb_worker_slot *slot, const struct pb_job *job,
                                   const struct pb_run_how *how)
{
    struct pb_json *json = command(slot, "run");
    say_owner(json, slot, how);
    pb_json_string(json, "job", job->id);
    if (job->epoch > 0)
        pb_json_int(json, "epoch", job->epoch);
    pb_json_string(json, "pipeline", job->pipeline);
    pb_json_string(json, "products", how->products);
    if (how->root != NULL && how->root[0] != '\0')
        pb_json_string(json, "root", how->root);
    pb_json_string(json, "scene", job->scene);
    pb_json_string(json, "name", job->name);
    const struct pb_scene_manifest *manifest = job->earlier != NULL ? &job->joined : &job->manifest;
    pb_scene_manifest_print(manifest, json, "manifest");
    if (job->identity[0] != '\0')
        pb_json_string(json, "identity", job->identity);
    if (job->identity[0] != '\0' && job->uid > 0 && job->uid != (int64_t)geteuid()) {
        char reader[24];
        (void)snprintf(reader, sizeof reader, "%lld", (long long)job->uid);
        pb_json_string(json, "reader", reader);
    }
    if (how->device != NULL)
        pb_json_string(json, "device", how->device);
    if (how->foreground)
        pb_json_string(json, "foreground", "yes");
    if (how->turn)
        pb_json_string(json, "turn", "yes");
    if (how->permit)
        pb_json_string(json, "permit", "yes");
    if (how->existing != NULL)
        pb_json_string(json, "existing", how->existing);
    if (how->unpack != NULL)
        pb_json_string(json, "unpack", how->unpack);
    if (how->known != NULL)
        pb_json_string(json, "known", how->known);
    if (job->again[0] != '\0')
        pb_json_string(json, "again", job->again);
    if (job->earlier != NULL)
        pb_json_raw(json, "earlier", job->earlier);
    if (job->archive[0] != '\0')
        pb_json_string(json, "part", "yes");
    if (how->home != NULL)
        print_home(json, how->home);
    if (how->guest > 0)
        pb_json_int(json, "guest", how->guest);
    return json;
}

/* A worker whose command cannot be written is ended; its end ends the run. */
static void send_or_end(struct pb_worker_slot *slot, struct pb_json *json)
{
    if (send_line(slot, json))
        return;
    slot->untold = true;
    pb_worker_proc_kill(slot->proc);
}

void pb_slot_send_run(struct pb_worker_slot *slot)
{
    const struct pb_job *job = &slot->job;
    bool told = slot->next[0] != '\0' && strcmp(slot->next, job->id) == 0;
    bool on_cpu = slot->device_try == PB_DEVICE_TRY_CPU;
    struct pb_run_how how = {.products = slot->how.products,
                             .root = slot->how.root,
                             .device = on_cpu                        ? "cpu"
                                       : slot->how.device[0] != '\0' ? slot->how.device
                                                                     : NULL,
                             .foreground = slot->how.foreground,
                             .turn = slot->how.turn,
                             .permit = slot->how.permit,
                             .known = slot->known,
                             .existing = slot->how.existing[0] != '\0' ? slot->how.existing : NULL,
                             .unpack = slot->how.unpack[0] != '\0' ? slot->how.unpack : NULL,
                             .home = slot->how.home.node[0] != '\0' ? &slot->how.home : NULL,
                             .guest = slot->how.guest};
    slot->known = NULL; /* an earlier run on another device has made the comparison already */
    slot->next[0] = '\0';
    slot->waits = false;
    slot->latency = (struct pb_latency_counts){.sum_ns = 0};
    slot->permit_ms = 0;
    slot->moved_ms = pb_clock_mono_ms();
    pb_worker_lines_begin(&slot->lines, job, slot->how.products, slot->how.path, slot->how.turn);
    slot->lines.permit = slot->how.permit;
    if (told)
        return;
    struct pb_json *json = run_command(slot, job, &how);
    if (slot->device_try == PB_DEVICE_TRY_STREAM)
        pb_json_string(json, "stream_why", job->device_why);
    pb_json_end(json);
    send_or_end(slot, json);
}

void pb_worker_slot_tell_next(struct pb_worker_slot *slot, const struct pb_job *job,
                              const struct pb_run_how *how)
{
    if (slot->state != PB_SLOT_RUNNING || slot->next[0] != '\0')
        return;
    struct pb_json *json = run_command(slot, job, how);
    pb_json_end(json);
    if (send_line(slot, json))
        (void)snprintf(slot->next, sizeof slot->next, "%s", job->id);
}

void pb_worker_slot_turn(struct pb_worker_slot *slot)
{
    if (slot->state != PB_SLOT_RUNNING || !slot->waits)
        return;
    slot->waits = false;
    slot->began_ms = slot->moved_ms = pb_clock_mono_ms();
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "turn");
    pb_json_string(json, "job", slot->job.id);
    pb_json_end(json);
    send_or_end(slot, json);
}

void pb_worker_slot_permit(struct pb_worker_slot *slot, bool granted)
{
    if (!pb_worker_slot_wants_permit(slot))
        return;
    slot->moved_ms = pb_clock_mono_ms();
    slot->began_ms += slot->moved_ms - slot->permit_ms;
    slot->permit_ms = 0;
    struct pb_json *json = pb_json_create(false);
    pb_json_object(json, NULL);
    pb_json_string(json, "cmd", "permit");
    pb_json_string(json, "job", slot->job.id);
    pb_json_bool(json, "granted", granted);
    pb_json_end(json);
    send_or_end(slot, json);
}

/* --- events ---------------------------------------------------------------------------------*/

static int percent(const struct pb_job *job)
{
    if (job->tiles_total <= 0)
        return 0;
    int64_t done = job->tiles_done < job->tiles_total ? job->tiles_done : job->tiles_total;
    return (int)(done * 99 / job->tiles_total); /* 100 is reported when the products are in place */
}

void pb_slot_take_bbox(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    struct pb_job *job = &slot->job;
    if (line->bbox[0] != '\0' && (job->bbox == NULL || strcmp(job->bbox, line->bbox) != 0))
        (void)pb_job_set(&job->bbox, line->bbox); /* without memory there is no footprint */
}

/* Reports the increase of the latencies since the last event. */
static void take_latency(struct pb_worker_slot *slot, const struct pb_latency_counts *now)
{
    const struct pb_worker_slot_owner *owner = slot->owner;
    struct pb_latency_counts more = {.sum_ns = now->sum_ns - slot->latency.sum_ns};
    uint64_t n = 0;
    for (int i = 0; i <= PB_LATENCY_LIMITS; i++) {
        more.n[i] = now->n[i] - slot->latency.n[i];
        n += more.n[i];
    }
    slot->latency = *now;
    if (n > 0 && owner->on_latency != NULL)
        owner->on_latency(owner->user, slot->number, &slot->job, &more);
}

static void take_progress(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    struct pb_job *job = &slot->job;
    const struct pb_worker_numbers *now = &line->numbers;
    const bool waits = now->waits && slot->how.live;
    bool moved = strcmp(job->stage, line->stage) != 0 || job->tiles_done != now->tiles_done ||
                 job->bytes_read != now->bytes_read || job->bytes_written != now->bytes_written ||
                 slot->bytes_checked != now->bytes_checked || waits;
    (void)snprintf(job->stage, sizeof job->stage, "%s", line->stage);
    if (line->device[0] != '\0')
        (void)snprintf(job->device, sizeof job->device, "%s", line->device);
    job->tiles_total = now->tiles_total;
    job->tiles_done = now->tiles_done;
    job->bytes_read = now->bytes_read;
    job->bytes_written = now->bytes_written;
    slot->bytes_checked = now->bytes_checked;
    slot->io_since_ms = now->io_ms > 0 ? pb_clock_mono_ms() - now->io_ms : 0;
    job->elapsed_ms = now->elapsed_ms;
    job->progress = percent(job);
    pb_slot_take_bbox(slot, line);
    if (waits)
        slot->began_ms = pb_clock_mono_ms();
    if (moved) {
        slot->moved_ms = pb_clock_mono_ms();
        job->updated_ms = pb_clock_wall_ms();
    }
    take_latency(slot, &now->latency);
    slot->owner->on_news(slot->owner->user, slot->number, job, false);
}

static enum pb_slot_event failure(const struct pb_worker_slot *slot, const char *code)
{
    if (slot->how.guest > 0) /* the run uses no device here, and its connection is used up */
        return PB_SLOT_ON_FAILED;
    if (pb_device_try_next(slot->device_try, code) != PB_DEVICE_TRY_OVER)
        return PB_SLOT_ON_DEVICE;
    return pb_worker_is_spent(code) ? PB_SLOT_ON_LOST : PB_SLOT_ON_FAILED;
}

/* Ends a worker that breaks the protocol, and its job's run. */
static void refuse(struct pb_worker_slot *slot, const char *why)
{
    pb_slot_say(slot, pb_worker_proc_pid(slot->proc), PB_LOG_ERROR,
                "breaks the protocol (%s); it is ended", why);
    slot->lines.refused = true;
    slot->asked = PB_ENDING_BREACH;
    (void)pb_slot_event(slot, PB_SLOT_ON_BREACH);
}

static void take_line(struct pb_worker_slot *slot, const struct pb_worker_line *line)
{
    const struct pb_worker_slot_owner *owner = slot->owner;
    slot->line = line;
    switch (line->event) {
    case PB_WORKER_SAYS_DEVICE:
        owner->on_device(owner->user, line->device, line->why);
        break;
    case PB_WORKER_SAYS_PROGRESS:
        take_progress(slot, line);
        break;
    case PB_WORKER_SAYS_ALERTS:
        if (owner->on_alerts != NULL)
            owner->on_alerts(owner->user, slot->number, &slot->job, line->alerts, line->n_alerts);
        break;
    case PB_WORKER_SAYS_TURN:
        slot->waits = slot->state == PB_SLOT_RUNNING;
        if (slot->waits)
            owner->on_turn(owner->user, slot->number, line->tiles, line->memory_bytes);
        break;
    case PB_WORKER_SAYS_PERMIT: /* a run that is being ended gets no answer */
        slot->permit_ms = pb_clock_mono_ms();
        if (pb_worker_slot_wants_permit(slot))
            owner->on_permit(owner->user, slot->number);
        break;
    case PB_WORKER_SAYS_PLACE: /* a breach, because this event has no directory */
    case PB_WORKER_SAYS_INPUTS:
        break;
    case PB_WORKER_SAYS_DONE:
        (void)pb_slot_event(slot, PB_SLOT_ON_DONE);
        break;
    case PB_WORKER_SAYS_FAILED:
        (void)pb_slot_event(slot, failure(slot, line->error.code));
        break;
    }
    slot->line = NULL;
}

void pb_slot_on_line(void *user, const char *text, size_t bytes)
{
    struct pb_worker_slot *slot = user;
    struct pb_worker_line line;
    char why[PB_WORKER_WHY_BYTES];
    if (slot->state == PB_SLOT_RENEWING || slot->state == PB_SLOT_LEAVING || slot->lines.refused)
        return; /* the worker does not have this job any more, or it is being killed */
    if (!pb_worker_lines_admit(&slot->lines, bytes, pb_clock_mono_ms())) {
        refuse(slot, "too many lines at once");
        return;
    }
    int rc = pb_worker_lines_take(&slot->lines, text, bytes, why, &line);
    if (rc < 0)
        refuse(slot, rc == -EPROTO ? why : "out of memory");
    if (rc != 0)
        return;
    take_line(slot, &line);
    pb_worker_line_fini(&line);
}
