/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#ifndef PB_HAVE_CUDA
int pb_device_list(struct pb_device *devices, int max, char why[200])
{
    (void)devices;
    (void)max;
    (void)snprintf(why, 200, "this build of pushbroom has no CUDA");
    return 0;
}

void pb_device_link(int32_t index, double *to_device, double *from_device)
{
    (void)index;
    *to_device = *from_device = 0;
}
#endif

uint32_t pb_device_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : (uint32_t)n;
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

/* First usable device, or the one demanded; -1 = none, with why. */
static int32_t pick(int32_t wanted, char why[200])
{
    struct pb_device devices[16];
    int n = pb_device_list(devices, 16, why);
    if (n == 0)
        return -1;
    if (wanted >= n) {
        (void)snprintf(why, 200, "there is no CUDA device %d, only %d device%s", wanted, n,
                       n == 1 ? "" : "s");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (wanted >= 0 && i != wanted)
            continue;
        if (devices[i].usable) {
            why[0] = '\0';
            return i;
        }
        (void)snprintf(why, 200, "%.190s", devices[i].why);
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
        return pb_fail(err, PB_E_DEVICE_MISSING, "compute.device asks for a CUDA device, but %s",
                       why);
    *out_index = index;
    return 0;
}
