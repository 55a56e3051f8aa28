/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/io/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)
/* Least size of a chunk: buffers fill its huge pages without gaps. */
#define CHUNK_BYTES (8 * HUGE_BYTES)
#define PAGE_BYTES  ((size_t)4096)
#define HEAP_BYTES  ((size_t)64 << 10) /* smaller memory is taken from the heap */

struct chunk {
    struct chunk *next;
    char *base;
    size_t bytes, used, huge; /* huge: bytes at the beginning that may be huge pages */
    size_t parts;             /* parts that are not freed yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and its chunks */
static struct chunk *chunks;                             /* the newest first */

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Maps bytes, a multiple of HUGE_BYTES, at such a boundary. Returns NULL with errno. */
static char *map_huge(size_t bytes)
{
    const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *whole = mmap(NULL, bytes + HUGE_BYTES, access, flags, -1, 0);
    if (whole == MAP_FAILED)
        return NULL;
    const size_t before = round_up((uintptr_t)whole, HUGE_BYTES) - (uintptr_t)whole;
    if (before > 0)
        (void)munmap(whole, before);
    if (before < HUGE_BYTES)
        (void)munmap(whole + before + bytes, HUGE_BYTES - before);
    (void)madvise(whole + before, bytes, MADV_WIPEONFORK);
    return whole + before;
}

static struct chunk *add_chunk(size_t bytes)
{
    struct chunk *chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL)
        return NULL;
    chunk->bytes = bytes > CHUNK_BYTES ? round_up(bytes, HUGE_BYTES) : CHUNK_BYTES;
    chunk->base = map_huge(chunk->bytes);
    if (chunk->base == NULL) {
        free(chunk);
        return NULL;
    }
    chunk->next = chunks;
    chunks = chunk;
    return chunk;
}

/* Requests huge pages for the used part of the chunk. The last of them is requested only if at
 * least half of it is used, because a huge page takes its memory as a whole. */
static void advise(struct chunk *chunk)
{
    const size_t full = (chunk->used + HUGE_BYTES / 2) / HUGE_BYTES * HUGE_BYTES;
    if (full <= chunk->huge)
        return;
    (void)madvise(chunk->base + chunk->huge, full - chunk->huge, MADV_HUGEPAGE);
    chunk->huge = full;
}

void *pb_pages_alloc(size_t bytes)
{
    const size_t takes = round_up(bytes, PAGE_BYTES);
    struct chunk *chunk;
    void *memory = NULL;
    if (takes < bytes || takes > SIZE_MAX - 2 * HUGE_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    if (bytes < HEAP_BYTES) {
        memory = aligned_alloc(PAGE_BYTES, takes);
        return memory != NULL ? memset(memory, 0, takes) : NULL;
    }
    (void)pthread_mutex_lock(&lock);
    for (chunk = chunks; chunk != NULL && chunk->bytes - chunk->used < takes; chunk = chunk->next)
        ;
    if (chunk == NULL)
        chunk = add_chunk(takes);
    if (chunk != NULL) {
        memory = chunk->base + chunk->used;
        chunk->used += takes;
        chunk->parts++;
        advise(chunk);
    }
    (void)pthread_mutex_unlock(&lock);
    return memory;
}

void pb_pages_free(void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
    if (bytes < HEAP_BYTES) {
        free(memory);
        return;
    }
    (void)pthread_mutex_lock(&lock);
    struct chunk **link = &chunks;
    while ((uintptr_t)memory - (uintptr_t)(*link)->base >= (*link)->bytes)
        link = &(*link)->next;
    struct chunk *chunk = *link;
    if (--chunk->parts == 0) {
        *link = chunk->next;
        (void)munmap(chunk->base, chunk->bytes);
        free(chunk);
    } else if (bytes >= HUGE_BYTES) {
        (void)madvise(memory, round_up(bytes, PAGE_BYTES), MADV_DONTNEED);
    }
    (void)pthread_mutex_unlock(&lock);
}
