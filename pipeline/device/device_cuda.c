/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/device.h"
#include "pipeline/device/cuda_err.h"
#include "pipeline/device/tuning.h"

#include "wic/device/link.h"
#include "wic/device/pause.h"
#include "wic/peer/peer.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Tests a device by allocating memory and running a command on it. */
static bool works(int index, char why[200])
{
    void *memory = NULL;
    cudaError_t rc = cudaSetDevice(index);
    if (rc == cudaSuccess)
        rc = cudaMalloc(&memory, 4096);
    if (rc == cudaSuccess)
        rc = cudaMemset(memory, 1, 4096);
    if (rc == cudaSuccess)
        rc = cudaDeviceSynchronize();
    if (memory != NULL)
        (void)cudaFree(memory);
    if (rc != cudaSuccess)
        (void)snprintf(why, 200, "CUDA device %d does not work: %s", index, cudaGetErrorString(rc));
    return rc == cudaSuccess;
}

void pb_device_describe(int32_t index, struct pb_device *d)
{
    struct cudaDeviceProp prop;
    memset(d, 0, sizeof *d);
    d->index = index;
    if (cudaGetDeviceProperties(&prop, index) != cudaSuccess) {
        (void)snprintf(d->why, sizeof d->why, "CUDA device %d does not answer", index);
        return;
    }
    (void)snprintf(d->name, sizeof d->name, "%.120s", prop.name);
    (void)snprintf(d->arch, sizeof d->arch, "sm_%d%d", prop.major, prop.minor);
    d->memory_bytes = prop.totalGlobalMem;
    d->multiprocessors = prop.multiProcessorCount;
    struct pb_device_traits traits = {0};
    if (pb_device_traits(index, &traits) == 0) {
        d->integrated = traits.integrated;
        d->time_limited = traits.time_limited;
        d->mps = traits.mps;
        d->managed = traits.managed;
    }
    d->usable = works(index, d->why);
    size_t free_bytes = 0, total = 0;
    if (d->usable && cudaMemGetInfo(&free_bytes, &total) == cudaSuccess)
        d->free_bytes = free_bytes;
}

int pb_device_count(char why[200])
{
    int n = 0;
    cudaError_t rc = cudaGetDeviceCount(&n);
    why[0] = '\0';
    if (rc != cudaSuccess || n == 0) {
        if (rc == cudaErrorInsufficientDriver)
            (void)snprintf(why, 200,
                           "no NVIDIA driver is loaded, or it is older than CUDA 13 needs");
        else
            (void)snprintf(why, 200, "no CUDA device was found: %s", cudaGetErrorString(rc));
        (void)cudaGetLastError();
        return 0;
    }
    return n;
}

void pb_device_driver(char out[PB_DEVICE_DRIVER_BYTES])
{
    int cuda = 0;
    FILE *f = fopen("/sys/module/nvidia/version", "re");
    out[0] = '\0';
    if (f != NULL && fgets(out, PB_DEVICE_DRIVER_BYTES, f) != NULL)
        out[strcspn(out, "\n")] = '\0';
    if (f != NULL)
        (void)fclose(f);
    if (out[0] == '\0' && cudaDriverGetVersion(&cuda) == cudaSuccess && cuda > 0)
        (void)snprintf(out, PB_DEVICE_DRIVER_BYTES, "CUDA %d.%d", cuda / 1000, cuda % 1000 / 10);
}

int pb_device_traits(int32_t index, struct pb_device_traits *out_traits)
{
    int integrated = 0, limited = 0, mps = 0, concurrent = 0;
    if (cudaDeviceGetAttribute(&integrated, cudaDevAttrIntegrated, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&limited, cudaDevAttrKernelExecTimeout, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, index) !=
            cudaSuccess)
        return -EIO;
    /* Drivers before 12.9 do not support this attribute. */
    if (cudaDeviceGetAttribute(&mps, cudaDevAttrMpsEnabled, index) != cudaSuccess)
        (void)cudaGetLastError();
    *out_traits = (struct pb_device_traits){.integrated = integrated != 0,
                                            .time_limited = limited != 0,
                                            .mps = mps != 0,
                                            .managed = concurrent != 0 && integrated == 0};
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess)
        return -EIO;
    out_traits->memory_bytes = properties.totalGlobalMem;
    int rc = wic_gpu_read(index, &out_traits->gpu);
    char driver[PB_DEVICE_DRIVER_BYTES];
    pb_device_driver(driver);
    if (rc == 0)
        pb_tuning_load(out_traits->gpu.name, driver, &out_traits->tuning);
    pb_device_pretend(out_traits);
    return rc;
}

static double rate(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                   cudaEvent_t a, cudaEvent_t b)
{
    float ms = 0;
    (void)cudaMemcpyAsync(to, from, bytes, kind, 0); /* warms up */
    (void)cudaEventRecord(a, 0);
    (void)cudaMemcpyAsync(to, from, bytes, kind, 0);
    (void)cudaEventRecord(b, 0);
    if (cudaEventSynchronize(b) != cudaSuccess || cudaEventElapsedTime(&ms, a, b) != cudaSuccess ||
        ms <= 0)
        return 0;
    return (double)bytes / ((double)ms / 1e3);
}

void pb_device_link(int32_t index, size_t bytes, double *to_device, double *from_device)
{
    void *host = NULL, *device = NULL;
    cudaEvent_t a = NULL, b = NULL;
    *to_device = *from_device = 0;
    if (cudaSetDevice(index) == cudaSuccess &&
        cudaHostAlloc(&host, bytes, cudaHostAllocDefault) == cudaSuccess &&
        cudaMalloc(&device, bytes) == cudaSuccess && cudaEventCreate(&a) == cudaSuccess &&
        cudaEventCreate(&b) == cudaSuccess) {
        *to_device = rate(device, host, bytes, cudaMemcpyHostToDevice, a, b);
        *from_device = rate(host, device, bytes, cudaMemcpyDeviceToHost, a, b);
    }
    if (a)
        (void)cudaEventDestroy(a);
    if (b)
        (void)cudaEventDestroy(b);
    (void)cudaFree(device);
    (void)cudaFreeHost(host);
}

bool pb_device_peer(int32_t from, int32_t to, size_t bytes, double *copies)
{
    const int devices[] = {from, to};
    void *here = NULL, *there = NULL;
    cudaEvent_t a = NULL, b = NULL;
    const bool reaches = wic_peer_access(devices, 2) == 0; /* copies are direct from now on */
    *copies = 0;
    if (cudaSetDevice(to) == cudaSuccess && cudaMalloc(&there, bytes) == cudaSuccess &&
        cudaSetDevice(from) == cudaSuccess && cudaMalloc(&here, bytes) == cudaSuccess &&
        cudaEventCreate(&a) == cudaSuccess && cudaEventCreate(&b) == cudaSuccess)
        *copies = rate(there, here, bytes, cudaMemcpyDefault, a, b);
    if (a)
        (void)cudaEventDestroy(a);
    if (b)
        (void)cudaEventDestroy(b);
    (void)cudaFree(here);
    (void)cudaFree(there);
    return reaches;
}

bool pb_device_calls_wait(int32_t index)
{
    return cudaSetDevice(index) == cudaSuccess && wic_gpu_calls_wait() == 1;
}

/* --- the part of the device for this process -------------------------------------------------- */

static struct wic_part *_Atomic part; /* never freed: streams may be in it until the process ends */

void pb_device_share(int32_t percent, struct pb_device_traits *traits)
{
    struct wic_part *made = atomic_load(&part);
    pb_device_limit(traits, percent);
    if (traits->all_multiprocessors == 0)
        return;
    if (made == NULL && wic_part_create(traits->gpu.multiprocessors, &made) != 0) {
        (void)snprintf(traits->share_why, sizeof traits->share_why, "%s", wic_link_why());
        return;
    }
    atomic_store(&part, made);
    traits->gpu.multiprocessors = wic_part_multiprocessors(made);
}

struct wic_share pb_device_wic_share(void)
{
    struct wic_part *const made = atomic_load(&part);
    return made == NULL ? (struct wic_share){0}
                        : (struct wic_share){.way = WIC_SHARE_GREEN, .part = made};
}

int pb_device_stream(int priority, struct CUstream_st **out_stream, struct pb_err *err)
{
    struct wic_part *const made = atomic_load(&part);
    if (made == NULL)
        return pb_cuda_err(
            err, cudaStreamCreateWithPriority(out_stream, cudaStreamNonBlocking, priority),
            "creating a stream");
    return pb_cuda_rc(err, wic_part_stream(made, false, priority, out_stream), "creating a stream");
}
