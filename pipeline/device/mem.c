/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/device/mem.h"

#include "pipeline/io/pages.h"

#include <errno.h>
#include <string.h>

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
    void *memory = pb_pages_alloc(bytes);
    if (memory == NULL)
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
    pb_pages_free(memory, bytes ? bytes : 1);
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
