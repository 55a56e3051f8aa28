/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Host pages are mapped directly by mmap, so that a finished run returns them to the system at
 * once. */
#include "pipeline/device/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int pb_mem_alloc(enum pb_mem_kind kind, size_t bytes, struct pb_err *err, void **out_memory)
{
    if (bytes == 0)
        bytes = 1;
    if (kind != PB_MEM_HOST) {
#ifdef PB_HAVE_CUDA
        return pb_mem_cuda_alloc(bytes, err, out_memory);
#else
        return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA, so no pinned buffers");
#endif
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return pb_fail(err, PB_E_MEMORY, "cannot get %zu bytes for tile buffers: %s", bytes,
                       strerror(errno));
    *out_memory = memory;
    return 0;
}

void pb_mem_free(enum pb_mem_kind kind, void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
#ifdef PB_HAVE_CUDA
    if (kind != PB_MEM_HOST) {
        pb_mem_cuda_free(memory);
        return;
    }
#else
    (void)kind;
#endif
    (void)munmap(memory, bytes ? bytes : 1);
}

#ifndef PB_HAVE_CUDA
int pb_mem_pin(void *memory, size_t bytes, struct pb_err *err)
{
    (void)memory, (void)bytes;
    return pb_fail(err, PB_E_DEVICE_MISSING, "this build has no CUDA, so no pinned buffers");
}

void pb_mem_unpin(void *memory)
{
    (void)memory;
}
#endif
