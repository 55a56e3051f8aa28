/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/device_owner.h"

#include "config/base/clock.h"
#include "config/base/json_reader.h"
#include "service/processes/worker_proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_WAIT_MS  1000
#define MOST_WAIT_MS   30000
#define LONG_LIFE_MS   60000
#define OPEN_MS        30000 /* time for a driver to open its device */
#define LINE_MAX_BYTES 4096

struct pb_device_owner {
    struct pb_device_owner_options options;
    uv_timer_t again;
    struct pb_worker_proc *proc;
    char device[16], path[PB_DEVICE_OWNER_PATH_BYTES], sessions[16], share[16];
    const char *arguments[10];
    bool told;    /* it has reported its device */
    bool missing; /* true if it found no device */
    char why[256];
    int64_t set_ms, started_ms, wait_ms;
    struct pb_owner_load load;
};

static void say(const struct pb_device_owner *owner, enum pb_log_level level, const char *text)
{
    int pid = owner->proc != NULL ? pb_worker_proc_pid(owner->proc) : 0;
    owner->options.on_say(owner->options.user, pid, level, text);
}

/* --- lines of the process --------------------------------------------------------------------- */

static void on_line(void *user, const char *text, size_t bytes)
{
    struct pb_device_owner *owner = user;
    struct pb_json_value *line = NULL;
    const char *device = NULL, *why = NULL;
    if (pb_json_parse(text, bytes, LINE_MAX_BYTES, &line) == 0) {
        device = pb_json_get_text(line, "device");
        why = pb_json_get_text(line, "why");
        (void)pb_owner_load_take(line, &owner->load);
    }
    if (device != NULL) {
        owner->told = true;
        owner->missing = device[0] == '\0';
        (void)snprintf(owner->why, sizeof owner->why, "%s", why != NULL ? why : "");
        owner->options.on_device(owner->options.user, device, why != NULL ? why : "");
    }
    pb_json_release(line);
}

static void on_proc_say(void *user, enum pb_log_level level, const char *text)
{
    say(user, level, text);
}

static void start(struct pb_device_owner *owner);

/* Also ends the time that a driver has to open its device. */
static void on_again(uv_timer_t *timer)
{
    struct pb_device_owner *owner = timer->data;
    if (owner->proc != NULL && !owner->told) {
        owner->told = owner->missing = true;
        (void)strcpy(owner->why, "the driver did not open it within 30 s");
        owner->options.on_device(owner->options.user, "", owner->why);
        pb_worker_proc_kill(owner->proc);
    }
    if (owner->proc == NULL && owner->device[0] != '\0')
        start(owner);
}

static void start_later(struct pb_device_owner *owner)
{
    int64_t lived_ms = pb_clock_mono_ms() - owner->started_ms;
    int64_t wait_ms = lived_ms >= LONG_LIFE_MS ? 0 : owner->wait_ms;
    owner->wait_ms = wait_ms == 0 ? FIRST_WAIT_MS : 2 * wait_ms;
    if (owner->wait_ms > MOST_WAIT_MS)
        owner->wait_ms = MOST_WAIT_MS;
    (void)uv_timer_start(&owner->again, on_again, (uint64_t)wait_ms, 0);
}

static void on_end(void *user, const char *how)
{
    struct pb_device_owner *owner = user;
    char text[200];
    (void)snprintf(text, sizeof text, "the process that owns device %s ended with %s%s",
                   owner->device, how, owner->missing ? "" : "; it is replaced");
    say(owner, owner->missing ? PB_LOG_NOTICE : PB_LOG_WARNING, text);
    pb_worker_proc_destroy(owner->proc);
    owner->proc = NULL;
    owner->load = (struct pb_owner_load){0};
    if (!owner->missing)
        start_later(owner);
}

/* --- the process ---------------------------------------------------------------------------- */

static void start(struct pb_device_owner *owner)
{
    const struct pb_worker_proc_handlers handlers = {on_line, on_end, on_proc_say, owner};
    const struct pb_worker_program program = {
        .path = owner->options.program, .main = owner->options.main, .arguments = owner->arguments};
    struct pb_err err = {0};
    owner->started_ms = pb_clock_mono_ms();
    if (pb_worker_proc_start(owner->options.loop, &program, &handlers, &err, &owner->proc) == 0) {
        (void)uv_timer_start(&owner->again, on_again, OPEN_MS, 0);
        return;
    }
    owner->proc = NULL;
    say(owner, PB_LOG_ERROR, err.msg);
    start_later(owner);
}

static void stop(struct pb_device_owner *owner)
{
    pb_worker_proc_destroy(owner->proc);
    owner->proc = NULL;
    owner->device[0] = '\0';
    owner->missing = false;
    owner->load = (struct pb_owner_load){0};
    (void)uv_timer_stop(&owner->again);
}

void pb_device_owner_set(struct pb_device_owner *owner, const char *device, const char *path,
                         int32_t sessions, int32_t share_percent)
{
    char text[sizeof owner->sessions], share[sizeof owner->share];
    (void)snprintf(text, sizeof text, "%d", sessions);
    (void)snprintf(share, sizeof share, "%d", share_percent);
    if (device == NULL) {
        stop(owner);
        return;
    }
    bool same = strcmp(owner->device, device) == 0 && strcmp(owner->path, path) == 0 &&
                strcmp(owner->sessions, text) == 0 && strcmp(owner->share, share) == 0;
    if (same && !owner->missing)
        return;
    stop(owner);
    (void)snprintf(owner->device, sizeof owner->device, "%s", device);
    (void)snprintf(owner->path, sizeof owner->path, "%s", path);
    (void)snprintf(owner->sessions, sizeof owner->sessions, "%s", text);
    (void)snprintf(owner->share, sizeof owner->share, "%s", share);
    owner->missing = owner->told = false;
    owner->wait_ms = 0;
    owner->set_ms = pb_clock_mono_ms();
    start(owner);
}

bool pb_device_owner_is_coming(const struct pb_device_owner *owner)
{
    return owner->device[0] != '\0' && !owner->told && pb_clock_mono_ms() - owner->set_ms < OPEN_MS;
}

const char *pb_device_owner_socket(const struct pb_device_owner *owner)
{
    return owner->device[0] != '\0' && !owner->missing ? owner->path : NULL;
}

const char *pb_device_owner_why(const struct pb_device_owner *owner)
{
    return owner->missing ? owner->why : NULL;
}

struct pb_owner_load pb_device_owner_load(const struct pb_device_owner *owner)
{
    return owner->load;
}

struct pb_device_owner *pb_device_owner_create(const struct pb_device_owner_options *options)
{
    struct pb_device_owner *owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return NULL;
    owner->options = *options;
    (void)uv_timer_init(options->loop, &owner->again);
    owner->again.data = owner;
    const char *const arguments[] = {"--device",  owner->device, "--socket",
                                     owner->path, "--sessions",  owner->sessions,
                                     "--share",   owner->share,  NULL};
    memcpy(owner->arguments, arguments, sizeof arguments);
    return owner;
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void pb_device_owner_destroy(struct pb_device_owner *owner)
{
    if (owner == NULL)
        return;
    stop(owner);
    uv_close((uv_handle_t *)&owner->again, on_close);
}
