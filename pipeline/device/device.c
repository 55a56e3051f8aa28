/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/device.h"
#include "config/compute_config.h"
#include "pipeline/device/others.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PB_HAVE_CUDA
int pb_device_count(char why[200])
{
    (void)snprintf(why, 200, "this build of pushbroom has no CUDA");
    return 0;
}

void pb_device_describe(int32_t index, struct pb_device *device)
{
    memset(device, 0, sizeof *device);
    device->index = index;
}

void pb_device_link(int32_t index, size_t bytes, double *to_device, double *from_device)
{
    (void)index, (void)bytes;
    *to_device = *from_device = 0;
}

bool pb_device_peer(int32_t from, int32_t to, size_t bytes, double *copies)
{
    (void)from, (void)to, (void)bytes;
    *copies = 0;
    return false;
}

int pb_device_use(int32_t index, struct pb_err *err)
{
    return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA device %d", index);
}

void pb_device_driver(char out[PB_DEVICE_DRIVER_BYTES])
{
    out[0] = '\0';
}

bool pb_device_calls_wait(int32_t index)
{
    (void)index;
    return false;
}

int pb_device_traits(int32_t index, struct pb_device_traits *out_traits)
{
    (void)index, (void)out_traits;
    return -ENODEV;
}

int pb_device_others(int32_t index, int32_t *out_pid)
{
    (void)index;
    *out_pid = 0;
    return 0;
}

void pb_device_share(int32_t percent, struct pb_device_traits *traits)
{
    pb_device_limit(traits, percent);
}
#endif

void pb_device_limit(struct pb_device_traits *traits, int32_t percent)
{
    const uint32_t all = traits->gpu.multiprocessors;
    if (percent <= 0 || percent >= 100 || all == 0)
        return;
    const uint32_t part = all * (uint32_t)percent / 100;
    traits->all_multiprocessors = all;
    traits->gpu.multiprocessors = part > 0 ? part : 1;
}

void pb_device_pretend(struct pb_device_traits *traits)
{
    const char *said = getenv("PUSHBROOM_TEST_GPU");
    while (said != NULL && *said != '\0') {
        unsigned n = 0;
        size_t length = strcspn(said, ",");
        if (length == 10 && strncmp(said, "integrated", length) == 0)
            traits->integrated = true;
        else if (sscanf(said, "multiprocessors=%4u", &n) == 1 && n > 0)
            traits->gpu.multiprocessors = n;
        said += length + (said[length] == ',');
    }
}

int pb_device_list(struct pb_device *devices, int max, char why[200])
{
    int n = pb_device_count(why);
    for (int i = 0; i < n && i < max; i++)
        pb_device_describe(i, &devices[i]);
    return n < max ? n : max;
}

static atomic_bool left_behind;

void pb_device_leave_behind(void)
{
    atomic_store(&left_behind, true);
}

bool pb_device_left_behind(void)
{
    return atomic_load(&left_behind);
}

void pb_device_left_err(struct pb_err *err)
{
    struct pb_err first = *err;
    bool replaced = first.code == PB_E_DEVICE_LOST || first.code == PB_E_DEVICE_BUSY ||
                    first.code == PB_E_DEVICE_FAILED;
    if (!pb_device_left_behind() || replaced)
        return;
    *err = (struct pb_err){0};
    (void)pb_fail(err, PB_E_DEVICE_LOST,
                  "the GPU does not release a run that ended with %s: %.150s",
                  pb_code_id(first.code), first.msg);
}

uint32_t pb_device_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : (uint32_t)n;
}

uint32_t pb_device_threads(int32_t threads)
{
    return threads > 0 ? (uint32_t)threads : pb_device_cores();
}

void pb_device_cpu_name(char *out, size_t bytes)
{
    char line[256];
    (void)snprintf(out, bytes, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (f == NULL)
        return;
    while (fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        (void)snprintf(out, bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    fclose(f);
}

/* Returns the first usable device, or the required one; -1 = no device, with the reason. Later
 * devices are not tested, because that would create a context on each, which costs memory and
 * time. */
static int32_t pick(int32_t wanted, char why[200])
{
    int n = pb_device_count(why);
    if (n > 0 && wanted >= n)
        (void)snprintf(why, 200, "there is no CUDA device %d, only %d device%s", wanted, n,
                       n == 1 ? "" : "s");
    int end = wanted >= 0 && wanted < n ? wanted + 1 : n;
    for (int i = wanted >= 0 ? wanted : 0; i < end; i++) {
        struct pb_device device;
        pb_device_describe(i, &device);
        if (device.usable) {
            why[0] = '\0';
            return i;
        }
        (void)snprintf(why, 200, "%.190s", device.why);
    }
    return -1;
}

int pb_device_choose(const struct pb_compute_config *compute, int32_t *out_index, char why[200],
                     struct pb_err *err)
{
    why[0] = '\0';
    *out_index = -1;
    if (compute->device == PB_DEVICE_CPU)
        return 0;
    int32_t index = pick(compute->device_index, why);
    if (index < 0 && compute->device == PB_DEVICE_CUDA)
        return pb_fail(err, PB_E_DEVICE_MISSING, "compute.device requires a CUDA device, but %s",
                       why);
    *out_index = index;
    return 0;
}

/* --- nodes
 * ---------------------------------------------------------------------------------------- */

enum { MINORS = 64 };

static bool have_nodes(void)
{
#ifdef PB_HAVE_CUDA
    /* a PCIe card, the same before its nodes are made, Jetson (two generations), WSL */
    static const char *const paths[] = {"/dev/nvidiactl", "/proc/driver/nvidia/version",
                                        "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/dxg"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (access(paths[i], F_OK) == 0)
            return true;
    }
#endif
    return false;
}

int pb_device_nodes_count(void)
{
    int n = 0;
    if (!have_nodes())
        return 0;
    for (int i = 0; i < MINORS; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/dev/nvidia%d", i);
        n += access(path, F_OK) == 0;
    }
    return n > 0 ? n : 1;
}
