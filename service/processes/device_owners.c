/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/processes/device_owners.h"

#include "config/config.h"
#include "pipeline/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    struct pb_device_owners *all;
    struct pb_device_owner *owner; /* NULL = not created yet */
    char found[64];
    int64_t jobs;
};

struct pb_device_owners {
    struct pb_device_owners_options options;
    struct member member[PB_DEVICE_OWNERS_MAX];
    int n;
    char why[128];
};

/* --- choice of devices ------------------------------------------------------------------------ */

static int split(const char *list, char out[PB_DEVICE_OWNERS_MAX][16])
{
    int n = 0;
    while (*list != '\0' && n < PB_DEVICE_OWNERS_MAX) {
        size_t length = strcspn(list, ",");
        (void)snprintf(out[n++], 16, "%.*s", (int)length, list);
        list += length + (list[length] == ',');
    }
    return n;
}

int pb_device_owners_wanted(const struct pb_compute_config *compute, int32_t parallel_jobs,
                            const char *forced, int gpus, char out[PB_DEVICE_OWNERS_MAX][16])
{
    if (forced != NULL)
        return split(forced, out);
    if (compute->device == PB_DEVICE_CPU || gpus == 0)
        return 0;
    if (compute->device_index >= 0) {
        (void)snprintf(out[0], 16, "%d", compute->device_index);
        return 1;
    }
    int n = gpus < parallel_jobs ? gpus : parallel_jobs;
    n = n < PB_DEVICE_OWNERS_MAX ? n : PB_DEVICE_OWNERS_MAX;
    for (int i = 0; i < n; i++)
        (void)snprintf(out[i], 16, "%d", i);
    return n;
}

bool pb_device_owners_path(const struct pb_config *config, const char *device, int n,
                           char out[PB_DEVICE_OWNER_PATH_BYTES])
{
    char number[16] = "";
    if (n > 0)
        (void)snprintf(number, sizeof number, ".%d", n);
    int length = snprintf(out, PB_DEVICE_OWNER_PATH_BYTES, "%s.%s%s%s", config->service.socket,
                          strcmp(device, "cpu") == 0 ? "" : "cuda", device, number);
    return length > 0 && length < PB_DEVICE_OWNER_PATH_BYTES;
}

/* --- reports of the owners -------------------------------------------------------------------- */

static void tell(struct pb_device_owners *owners)
{
    char devices[64] = "";
    for (int i = 0; i < owners->n; i++) {
        const struct member *m = &owners->member[i];
        size_t length = strlen(devices);
        if (pb_device_owner_socket(m->owner) != NULL)
            (void)snprintf(devices + length, sizeof devices - length, "%s%s",
                           length > 0 ? ", " : "", m->found);
    }
    const char *why = pb_device_owners_why(owners);
    owners->options.on_device(owners->options.user, devices, why != NULL ? why : "");
}

static void on_device(void *user, const char *device, const char *why)
{
    struct member *m = user;
    (void)why;
    (void)snprintf(m->found, sizeof m->found, "%s", device);
    if (!pb_device_owners_is_coming(m->all))
        tell(m->all);
}

static void on_say(void *user, int pid, enum pb_log_level level, const char *text)
{
    const struct member *m = user;
    m->all->options.on_say(m->all->options.user, pid, level, text);
}

/* --- the processes -------------------------------------------------------------------------- */

static bool make_member(struct pb_device_owners *owners, struct member *m)
{
    const struct pb_device_owner_options options = {.loop = owners->options.loop,
                                                    .program = owners->options.program,
                                                    .on_device = on_device,
                                                    .on_say = on_say,
                                                    .user = m};
    m->all = owners;
    m->owner = m->owner != NULL ? m->owner : pb_device_owner_create(&options);
    return m->owner != NULL;
}

static void fail(struct pb_device_owners *owners, const char *why)
{
    (void)snprintf(owners->why, sizeof owners->why, "%s", why);
    owners->options.on_say(owners->options.user, 0, PB_LOG_ERROR, owners->why);
}

/* Counts the devices before the i-th that are the same device. */
static int same_before(char devices[PB_DEVICE_OWNERS_MAX][16], int i)
{
    int n = 0;
    for (int k = 0; k < i; k++)
        n += strcmp(devices[k], devices[i]) == 0;
    return n;
}

bool pb_device_owners_follow(struct pb_device_owners *owners, const struct pb_config *config,
                             const char *forced)
{
    char devices[PB_DEVICE_OWNERS_MAX][16], path[PB_DEVICE_OWNER_PATH_BYTES];
    int wanted = pb_device_owners_wanted(&config->compute, pb_device_jobs(&config->service), forced,
                                         pb_device_nodes_count(), devices);
    int before = owners->n;
    owners->why[0] = '\0';
    owners->n = 0;
    for (int i = 0; i < wanted; i++) {
        if (!pb_device_owners_path(config, devices[i], same_before(devices, i), path))
            fail(owners,
                 "service.socket is too long a name: that of the device's owner would be longer");
        else if (!make_member(owners, &owners->member[i]))
            fail(owners, "there is no memory for the device's owner");
        else
            owners->n = i + 1;
        if (owners->n != i + 1)
            break;
        pb_device_owner_set(owners->member[i].owner, devices[i], path,
                            pb_device_jobs(&config->service), config->compute.share_percent);
    }
    for (int i = owners->n; i < before; i++)
        pb_device_owner_set(owners->member[i].owner, NULL, NULL, 0, 0);
    return owners->n > 0;
}

bool pb_device_owners_exist(const struct pb_device_owners *owners)
{
    return owners->n > 0;
}

bool pb_device_owners_is_coming(const struct pb_device_owners *owners)
{
    bool coming = false;
    for (int i = 0; i < owners->n; i++)
        coming = coming || pb_device_owner_is_coming(owners->member[i].owner);
    return coming;
}

const char *pb_device_owners_why(const struct pb_device_owners *owners)
{
    const char *why = owners->why[0] != '\0' ? owners->why : NULL;
    for (int i = 0; i < owners->n; i++) {
        const char *said = pb_device_owner_why(owners->member[i].owner);
        if (said == NULL)
            return NULL;
        why = why != NULL ? why : said;
    }
    return why;
}

/* --- jobs ----------------------------------------------------------------------------------- */

const char *pb_device_owners_take(struct pb_device_owners *owners, int *out_owner)
{
    struct pb_owner_choice choice[PB_DEVICE_OWNERS_MAX];
    for (int i = 0; i < owners->n; i++) {
        const struct member *m = &owners->member[i];
        choice[i] = (struct pb_owner_choice){.there = pb_device_owner_socket(m->owner) != NULL,
                                             .jobs = m->jobs,
                                             .load = pb_device_owner_load(m->owner)};
    }
    int best = pb_owner_choose(choice, owners->n);
    *out_owner = best;
    if (best < 0)
        return NULL;
    owners->member[best].jobs++;
    return pb_device_owner_socket(owners->member[best].owner);
}

void pb_device_owners_give(struct pb_device_owners *owners, int *owner)
{
    if (*owner >= 0)
        owners->member[*owner].jobs--;
    *owner = -1;
}

struct pb_device_owners *pb_device_owners_create(const struct pb_device_owners_options *options)
{
    struct pb_device_owners *owners = calloc(1, sizeof *owners);
    if (owners != NULL)
        owners->options = *options;
    return owners;
}

void pb_device_owners_destroy(struct pb_device_owners *owners)
{
    if (owners == NULL)
        return;
    for (int i = 0; i < PB_DEVICE_OWNERS_MAX; i++)
        pb_device_owner_destroy(owners->member[i].owner);
    free(owners);
}
