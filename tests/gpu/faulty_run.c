/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * `pushbroom` with CUDA calls that fail when a test wants them to: the linker replaces the calls
 * listed below by the functions here (--wrap), all else is the product's. The fault is in
 * $CUDA_FAULT:
 *
 *   N:CODE       the N-th call of the process returns this cudaError_t and does nothing
 *   N:CODE:lost  and so do all calls after it, as when the context is gone
 *   N:hang       from the N-th call on the GPU ends nothing: queries return "not ready" for
 *                ever, and calls that wait for the GPU do not return
 *   hog:SECONDS  before the resident kernel is launched, another takes all shared memory of the
 *                GPU for this time
 *   list         no call fails, and the name of each is written
 *
 * Queries that return "not ready" do not count, because their number is random. After the fault,
 * the name of the call is written to stderr, "CUDA_FAULT name", because the process that computes
 * may open no file.
 */
#include "tests/gpu/faulty_hog.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    unsigned long at; /* 0: never */
    cudaError_t code;
    bool lost, hang, list;
    double hog_seconds;
} fault;
static atomic_ulong calls;
static atomic_bool struck, hogged;
static _Thread_local cudaError_t last; /* result of cudaGetLastError after a failed call */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_fault(void)
{
    const char *text = getenv("CUDA_FAULT");
    char *end = NULL;
    if (text == NULL)
        return;
    if (strncmp(text, "hog:", 4) == 0) {
        fault.hog_seconds = atof(text + 4);
        return;
    }
    if (strcmp(text, "list") == 0) {
        fault.list = true;
        return;
    }
    fault.at = strtoul(text, &end, 10);
    fault.hang = strcmp(end, ":hang") == 0;
    fault.lost = strstr(end, ":lost") != NULL;
    fault.code = (cudaError_t)(*end == ':' ? atoi(end + 1) : 0);
    if (!fault.hang && fault.code == cudaSuccess) {
        (void)fprintf(stderr, "CUDA_FAULT=%s is not understood\n", text);
        _exit(70);
    }
}

static void say(const char *name)
{
    char line[100];
    int n = snprintf(line, sizeof line, "CUDA_FAULT %s\n", name);
    if (write(STDERR_FILENO, line, (size_t)n) != n)
        _exit(70);
}

/* Counts a call. True: it is to fail, or hang. */
static bool strikes(const char *name)
{
    (void)pthread_once(&once, read_fault);
    unsigned long n = atomic_fetch_add(&calls, 1) + 1;
    if (n == fault.at || fault.list)
        say(name);
    if (n == fault.at)
        atomic_store(&struck, true);
    return fault.at > 0 && (n == fault.at || (n > fault.at && (fault.lost || fault.hang)));
}

static bool hangs(void)
{
    return fault.hang && atomic_load(&struck);
}

static cudaError_t fail(void)
{
    last = fault.code;
    return fault.code;
}

/* CALL: may fail, continues while the GPU hangs. WAIT: waits for the GPU. QUERY: does not wait. */
#define CALL(name, parameters, arguments)                                                          \
    cudaError_t __real_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters                                                           \
    {                                                                                              \
        return strikes(#name) && !fault.hang ? fail() : __real_##name arguments;                   \
    }
#define WAIT(name, parameters, arguments)                                                          \
    cudaError_t __real_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters                                                           \
    {                                                                                              \
        bool now = strikes(#name);                                                                 \
        while (hangs())                                                                            \
            (void)pause();                                                                         \
        return now ? fail() : __real_##name arguments;                                             \
    }
#define QUERY(name, parameters, arguments)                                                         \
    cudaError_t __real_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters;                                                          \
    cudaError_t __wrap_##name parameters                                                           \
    {                                                                                              \
        cudaError_t rc = hangs() ? cudaErrorNotReady : __real_##name arguments;                    \
        if (rc == cudaErrorNotReady || !strikes(#name))                                            \
            return rc;                                                                             \
        return fault.hang ? cudaErrorNotReady : fail();                                            \
    }

CALL(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr what, int device),
     (value, what, device))
CALL(cudaEventCreate, (cudaEvent_t * event), (event))
CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), (event, flags))
CALL(cudaEventDestroy, (cudaEvent_t event), (event))
CALL(cudaEventElapsedTime, (float *ms, cudaEvent_t from, cudaEvent_t to), (ms, from, to))
CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
CALL(cudaFuncGetAttributes, (struct cudaFuncAttributes * out, const void *f), (out, f))
CALL(cudaFuncSetAttribute, (const void *f, enum cudaFuncAttribute what, int value),
     (f, what, value))
CALL(cudaGetDevice, (int *device), (device))
CALL(cudaGetDeviceCount, (int *count), (count))
CALL(cudaGetDeviceProperties, (struct cudaDeviceProp * out, int device), (out, device))
CALL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))
CALL(cudaHostGetDevicePointer, (void **out, void *memory, unsigned flags), (out, memory, flags))
CALL(cudaHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
CALL(cudaHostRegister, (void *memory, size_t bytes, unsigned flags), (memory, bytes, flags))
CALL(cudaMalloc, (void **memory, size_t bytes), (memory, bytes))
CALL(cudaMallocManaged, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags))
CALL(cudaMemAdvise,
     (const void *memory, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation at),
     (memory, bytes, advice, at))
CALL(cudaMemPrefetchAsync,
     (const void *memory, size_t bytes, struct cudaMemLocation at, unsigned flags,
      cudaStream_t stream),
     (memory, bytes, at, flags, stream))
CALL(cudaMemGetInfo, (size_t * available, size_t *total), (available, total))
CALL(cudaMemcpy2DAsync,
     (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t rows,
      enum cudaMemcpyKind kind, cudaStream_t stream),
     (to, to_pitch, from, from_pitch, width, rows, kind, stream))
CALL(cudaMemcpyAsync,
     (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
     (to, from, bytes, kind, stream))
CALL(cudaMemsetAsync, (void *memory, int value, size_t bytes, cudaStream_t stream),
     (memory, value, bytes, stream))
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, const void *f, int threads, size_t shared), (blocks, f, threads, shared))
CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *memory),
     (out, memory))
CALL(cudaSetDevice, (int device), (device))
CALL(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority),
     (stream, flags, priority))
CALL(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags))
CALL(cudaStreamDestroy, (cudaStream_t stream), (stream))
CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
     (stream, event, flags))
CALL(__cudaLaunchKernel,
     (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
      cudaStream_t stream),
     (kernel, grid, block, arguments, shared, stream))
WAIT(cudaDeviceSynchronize, (void), ())
WAIT(cudaEventSynchronize, (cudaEvent_t event), (event))
WAIT(cudaFree, (void *memory), (memory))
WAIT(cudaFreeHost, (void *memory), (memory))
WAIT(cudaHostUnregister, (void *memory), (memory))
WAIT(cudaMemcpy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
     (to, from, bytes, kind))
WAIT(cudaMemset, (void *memory, int value, size_t bytes), (memory, value, bytes))
WAIT(cudaStreamSynchronize, (cudaStream_t stream), (stream))
QUERY(cudaEventQuery, (cudaEvent_t event), (event))
QUERY(cudaStreamQuery, (cudaStream_t stream), (stream))

/* --- those with a part of their own --- */

/* Several of these run at a time, and each is to have its kernel. */
int __wrap_pb_device_others(int32_t index, int32_t *out_pid);
int __wrap_pb_device_others(int32_t index, int32_t *out_pid)
{
    (void)index;
    *out_pid = 0;
    return 0;
}

cudaError_t __real_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void);
cudaError_t __wrap_cudaGetLastError(void)
{
    cudaError_t said = last, real = __real_cudaGetLastError();
    last = atomic_load(&struck) && fault.lost ? fault.code : cudaSuccess;
    return said != cudaSuccess ? said : real;
}

cudaError_t __real_cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream);
cudaError_t __wrap_cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream);
cudaError_t __wrap_cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream)
{
    if (strikes("cudaLaunchKernel") && !fault.hang)
        return fail();
    if (fault.hog_seconds > 0 && !atomic_exchange(&hogged, true)) {
        say("hog");
        faulty_hog(fault.hog_seconds);
    }
    return __real_cudaLaunchKernel(f, grid, block, arguments, shared, stream);
}

static CUresult (*write_value)(CUstream, CUdeviceptr, cuuint64_t, unsigned);

static CUresult counted_write_value(CUstream stream, CUdeviceptr at, cuuint64_t value,
                                    unsigned flags)
{
    if (strikes("cuStreamWriteValue64") && !fault.hang)
        return CUDA_ERROR_UNKNOWN;
    return write_value(stream, at, value, flags);
}

cudaError_t __real_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                    unsigned version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *found);
cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                    unsigned version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *found);
cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char *symbol, void **out,
                                                    unsigned version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *found)
{
    if (strikes("cudaGetDriverEntryPointByVersion") && !fault.hang)
        return fail();
    cudaError_t rc = __real_cudaGetDriverEntryPointByVersion(symbol, out, version, flags, found);
    if (rc == cudaSuccess && *out != NULL && strcmp(symbol, "cuStreamWriteValue64") == 0) {
        CUresult (*counted)(CUstream, CUdeviceptr, cuuint64_t, unsigned) = counted_write_value;
        memcpy(&write_value, out, sizeof write_value);
        memcpy(out, &counted, sizeof counted);
    }
    return rc;
}
