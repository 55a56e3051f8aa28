/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * NVML is part of the driver, not of the toolkit; therefore its few functions are declared here.
 * It counts this process too, by its id in the PID namespace of the host. */
#include "pipeline/device/others.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 64,
    LOOKS_MAX = 4,
    AGAIN_NS = 250000000,
    NVML_SIZE = 7 /* NVML_ERROR_INSUFFICIENT_SIZE */
};

struct nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

static struct {
    bool tried;
    int (*device_by_bus)(const char *bus, void **out_device);
    int (*processes)(void *device, unsigned *count, struct nvml_process *out);
} nvml;

/* Finds a function; ISO C does not convert its pointer. */
static void find(void *library, const char *name, void *out_function)
{
    void *found = dlsym(library, name);
    memcpy(out_function, &found, sizeof found);
}

static bool load(void)
{
    int (*init)(void) = NULL;
    if (nvml.tried)
        return nvml.processes != NULL;
    nvml.tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
    find(library, "nvmlInit_v2", &init);
    find(library, "nvmlDeviceGetHandleByPciBusId_v2", &nvml.device_by_bus);
    if (init == NULL || nvml.device_by_bus == NULL || init() != 0)
        return false;
    find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes);
    if (nvml.processes == NULL)
        find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &nvml.processes);
    return nvml.processes != NULL;
}

/* Returns false for a process that is not visible here, or that is exiting: its context may
 * disappear soon, because it outlives the process a little. */
static bool lives(unsigned pid)
{
    enum { EXITING = 4 }; /* PF_EXITING */
    char path[32], text[512];
    unsigned flags = EXITING;
    (void)snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const char *rest = fgets(text, sizeof text, file) != NULL ? strrchr(text, ')') : NULL;
    if (rest != NULL && sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
        flags = EXITING;
    (void)fclose(file);
    return (flags & EXITING) == 0;
}

/* Counts the processes other than this one; *out_pid: a live one, 0 = none known. */
static int look(void *device, int32_t *out_pid)
{
    struct nvml_process process[PROCESSES_MAX];
    unsigned n = PROCESSES_MAX, own = (unsigned)getpid();
    int rc = nvml.processes(device, &n, process);
    bool visible = false; /* this process, by its own id */
    *out_pid = 0;
    if (rc == NVML_SIZE)
        return PROCESSES_MAX;
    if (rc != 0 || n < 2)
        return 0;
    for (unsigned i = 0; i < n; i++)
        visible = visible || process[i].pid == own;
    for (unsigned i = 0; i < n && visible && *out_pid == 0; i++)
        if (process[i].pid != own && lives(process[i].pid))
            *out_pid = (int32_t)process[i].pid;
    return (int)n - 1;
}

int pb_device_others(int32_t index, int32_t *out_pid)
{
    const struct timespec nap = {.tv_nsec = AGAIN_NS};
    char bus[32];
    void *device = NULL;
    *out_pid = 0;
    if (!load() || cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess ||
        nvml.device_by_bus(bus, &device) != 0)
        return 0;
    int others = look(device, out_pid);
    for (int i = 0; i < LOOKS_MAX && others > 0 && *out_pid == 0; i++) {
        (void)nanosleep(&nap, NULL);
        others = look(device, out_pid);
    }
    return others;
}
