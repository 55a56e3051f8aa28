/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * A GPU is lost for real: a kernel stores to an address that is not there. It must be called
 * device.lost, stay lost to this process, and work again, with all of its memory, in a fresh one.
 *
 *   check_lost              0 as it must be; 1 not; 77 no GPU or built without CUDA */
#include <stdio.h>
#ifndef PB_HAVE_CUDA

int main(void)
{
    (void)fprintf(stderr, "skipped: built without CUDA\n");
    return 77;
}
#else
#include "pipeline/device/cuda_err.h"

#include <unistd.h>

#include <stdlib.h>
#include <string.h>

#define HELD_BYTES  ((size_t)1 << 30)
#define SLACK_BYTES ((size_t)128 << 20) /* for what else the device does */

static const char ptx[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                          ".visible .entry stray() {\n"
                          "  .reg .b64 %a;\n  .reg .b32 %v;\n"
                          "  mov.u64 %a, 64;\n  mov.u32 %v, 1;\n  st.global.u32 [%a], %v;\n"
                          "  ret;\n}\n";

static int fail(const char *what, const char *why)
{
    printf("FAIL %s: %s\n", what, why);
    return 1;
}

static cudaError_t stray_store(void)
{
    cudaLibrary_t library = NULL;
    cudaKernel_t kernel = NULL;
    cudaError_t rc = cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0);
    if (rc == cudaSuccess)
        rc = cudaLibraryGetKernel(&kernel, library, "stray");
    if (rc == cudaSuccess)
        rc =
            cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL);
    return rc == cudaSuccess ? cudaDeviceSynchronize() : rc;
}

static int lose(void)
{
    void *held = NULL, *more = NULL;
    size_t before = 0, total = 0;
    struct pb_err err = {0}, later = {0};
    char free_bytes[32];
    if (cudaFree(NULL) != cudaSuccess || cudaMemGetInfo(&before, &total) != cudaSuccess)
        return 77;
    if (cudaMalloc(&held, HELD_BYTES) != cudaSuccess)
        return fail("memory", "cannot get any");
    (void)pb_cuda_err(&err, stray_store(), "storing where nothing is");
    if (err.code != PB_E_DEVICE_LOST)
        return fail("a stray store", err.msg);
    (void)pb_cuda_err(&later, cudaMalloc(&more, 4096), "going on");
    if (later.code != PB_E_DEVICE_LOST)
        return fail("what follows in this process", later.code ? later.msg : "works");
    printf("ok   lost: %s\n", err.msg);
    (void)snprintf(free_bytes, sizeof free_bytes, "%zu", before);
    (void)fflush(stdout);
    (void)execl("/proc/self/exe", "check_lost", "again", free_bytes, (char *)NULL);
    return fail("exec", "returned");
}

/* before: free bytes before the GPU was lost. */
static int go_on(size_t before)
{
    void *memory = NULL;
    size_t now = 0, total = 0;
    struct pb_err err = {0};
    int rc = pb_cuda_err(&err, cudaFree(NULL), "starting");
    rc = rc ? rc : pb_cuda_err(&err, cudaMemGetInfo(&now, &total), "asking for memory");
    rc = rc ? rc : pb_cuda_err(&err, cudaMalloc(&memory, HELD_BYTES), "allocating");
    rc = rc ? rc : pb_cuda_err(&err, cudaMemset(memory, 1, HELD_BYTES), "writing");
    rc = rc ? rc : pb_cuda_err(&err, cudaDeviceSynchronize(), "waiting");
    if (rc != 0)
        return fail("the fresh process", err.msg);
    if (now + SLACK_BYTES < before)
        return fail("the fresh process", "the lost context's memory is not back");
    printf("ok   the fresh process computes; %zu MiB were free, %zu MiB are\n", before >> 20,
           now >> 20);
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 2 && strcmp(argv[1], "again") == 0 ? go_on(strtoull(argv[2], NULL, 10)) : lose();
}
#endif
