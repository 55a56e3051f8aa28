/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/cli/cli_run_owner.h"

#include "config/config.h"
#include "config/device_word.h"
#include "pipeline/device/device.h"
#include "service/device/owner.h"
#include "service/device/owner_client.h"
#include "service/processes/device_owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cli_run_owner {
    struct pb_device_owner *own; /* NULL if the service's owner is used */
    uv_timer_t soon;
    char device[16], path[PB_DEVICE_OWNER_PATH_BYTES], directory[64];
    int32_t share_percent;
    bool told;
    void (*ready)(void *user);
    void *user;
};

/* Argument of own_main, because a fork gets no arguments. */
static const struct cli_run_owner *the_owner;

static int own_main(void)
{
    return pb_owner_main(the_owner->device, the_owner->path, 1, the_owner->share_percent);
}

static void tell(struct cli_run_owner *owner)
{
    if (owner->told)
        return;
    owner->told = true;
    owner->ready(owner->user);
}

static void on_device(void *user, const char *device, const char *why)
{
    (void)device, (void)why; /* the worker reports them */
    tell(user);
}

static void on_soon(uv_timer_t *timer)
{
    tell(timer->data);
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    (void)user, (void)pid;
    if (level == PB_LOG_INFO) /* its own messages */
        (void)fprintf(stderr, "%s\n", text);
    else if (level != PB_LOG_NOTICE)
        (void)fprintf(stderr, "pushbroom: %s\n", text);
}

/* Starts an owner, with its socket in a directory that only this user can search. */
static bool start_own(struct cli_run_owner *owner, uv_loop_t *loop)
{
    const struct pb_device_owner_options options = {
        .loop = loop, .main = own_main, .on_device = on_device, .on_say = on_say, .user = owner};
    (void)strcpy(owner->directory, "/tmp/pushbroom-run-XXXXXX");
    if (mkdtemp(owner->directory) == NULL) {
        owner->directory[0] = '\0';
        return false;
    }
    (void)snprintf(owner->path, sizeof owner->path, "%s/device", owner->directory);
    owner->own = pb_device_owner_create(&options);
    if (owner->own == NULL)
        return false;
    the_owner = owner;
    pb_device_owner_set(owner->own, owner->device, owner->path, 1, owner->share_percent);
    return true;
}

/* Finds the owner of a service with the lowest load among those that this user may connect to. */
static bool find_running(const struct pb_config *config, char devices[PB_DEVICE_OWNERS_MAX][16],
                         int n, char out_path[PB_DEVICE_OWNER_PATH_BYTES])
{
    struct pb_owner_choice choice[PB_DEVICE_OWNERS_MAX] = {{.there = false}};
    char path[PB_DEVICE_OWNERS_MAX][PB_DEVICE_OWNER_PATH_BYTES];
    for (int i = 0; i < n; i++)
        choice[i].there = pb_device_owners_path(config, devices[i], 0, path[i]) &&
                          pb_owner_load_at(path[i], &choice[i].load);
    int best = pb_owner_choose(choice, n);
    if (best >= 0)
        (void)snprintf(out_path, PB_DEVICE_OWNER_PATH_BYTES, "%s", path[best]);
    return best >= 0;
}

static int wanted_gpus(const struct pb_config *config, const char *device,
                       char out[PB_DEVICE_OWNERS_MAX][16])
{
    struct pb_compute_config compute = config->compute;
    if (device != NULL)
        (void)pb_device_word(device, &compute);
    return pb_device_owners_wanted(&compute, pb_device_jobs(&config->service), NULL,
                                   pb_device_nodes_count(), out);
}

struct cli_run_owner *cli_run_owner_create(uv_loop_t *loop, const struct pb_config *config,
                                           const char *device, void (*ready)(void *user),
                                           void *user)
{
    char devices[PB_DEVICE_OWNERS_MAX][16];
    int n = wanted_gpus(config, device, devices);
    if (n == 0)
        return NULL;
    struct cli_run_owner *owner = calloc(1, sizeof *owner);
    if (owner == NULL)
        return NULL;
    (void)snprintf(owner->device, sizeof owner->device, "%s", devices[0]);
    owner->share_percent = config->compute.share_percent;
    owner->ready = ready;
    owner->user = user;
    (void)uv_timer_init(loop, &owner->soon);
    owner->soon.data = owner;
    if (!find_running(config, devices, n, owner->path) && !start_own(owner, loop))
        owner->path[0] = '\0';
    if (owner->own == NULL)
        (void)uv_timer_start(&owner->soon, on_soon, 0, 0);
    return owner;
}

const char *cli_run_owner_socket(const struct cli_run_owner *owner)
{
    if (owner == NULL || owner->path[0] == '\0')
        return NULL;
    return owner->own != NULL ? pb_device_owner_socket(owner->own) : owner->path;
}

const char *cli_run_owner_why(const struct cli_run_owner *owner)
{
    if (owner == NULL || cli_run_owner_socket(owner) != NULL)
        return NULL;
    return owner->own != NULL ? pb_device_owner_why(owner->own)
                              : "no directory could be made for the socket of its owner";
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void cli_run_owner_destroy(struct cli_run_owner *owner)
{
    if (owner == NULL)
        return;
    pb_device_owner_destroy(owner->own);
    if (owner->directory[0] != '\0') {
        (void)unlink(owner->path);
        (void)rmdir(owner->directory);
    }
    uv_close((uv_handle_t *)&owner->soon, on_close);
}
