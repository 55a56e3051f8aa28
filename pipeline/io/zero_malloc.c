/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * All heap memory of this process is zero when allocated. Decoders below GDAL (libtiff, libjpeg,
 * libwebp, LERC) use malloc, some leave parts of a buffer unwritten if a stream is damaged, and
 * a worker runs many jobs: such a part could contain data of another job. Clearing the buffers
 * passed to GDAL is not sufficient, because the pixels pass through the libraries' own buffers.
 * mallopt(M_PERTURB) is not sufficient either: glibc's cache of small chunks bypasses it.
 *
 * Therefore these functions replace the C library's, for all libraries of the process; they use
 * its allocator, and calloc and free are unchanged. Fresh pages are not cleared twice. In the
 * steady state of a run nothing is allocated, therefore it costs nothing there. A sanitizer has
 * its own allocator, which is used instead of the C library's. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PB_FOREIGN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PB_FOREIGN_MALLOC 1
#endif
#endif

typedef int pb_zero_malloc; /* ISO C forbids an empty file */

#ifndef PB_FOREIGN_MALLOC
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_memalign(size_t alignment, size_t bytes); /* glibc's own, exported */

/* A tail call when optimised, so that tools see malloc's caller. */
void *malloc(size_t bytes)
{
    return calloc(1, bytes);
}

void *realloc(void *old, size_t bytes)
{
    if (old == NULL)
        return calloc(1, bytes);
    if (bytes == 0) {
        free(old);
        return NULL;
    }
    size_t had = malloc_usable_size(old);
    if (bytes <= had && bytes >= had / 2)
        return old;
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        return NULL;
    memcpy(memory, old, had < bytes ? had : bytes);
    free(old);
    return memory;
}

void *memalign(size_t alignment, size_t bytes)
{
    void *memory = __libc_memalign(alignment, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    int before = errno;
    void *memory = memalign(alignment, bytes);
    errno = before;
    if (memory == NULL)
        return ENOMEM;
    *out = memory;
    return 0;
}
#endif
