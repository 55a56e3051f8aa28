/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_DECODE_BATCH_H
#define PB_DECODE_BATCH_H
/* Streams on a GPU for check_codecs.c: put one after the other into a batch, then decoded. A
 * failure ends the program. */
#include "kernels/codec/decode_device.h"
#include "tests/tools/tiff_blocks.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 512, GUARD = 64 }; /* streams; bytes after each block */
#define BATCH_BYTES ((size_t)256 << 20)

static inline void must(cudaError_t rc, const char *what)
{
    if (rc != cudaSuccess) {
        (void)fprintf(stderr, "check_codecs: %s: %s\n", what, cudaGetErrorString(rc));
        exit(1);
    }
}

static inline void *need(void *p)
{
    if (p == NULL) {
        (void)fprintf(stderr, "check_codecs: out of memory\n");
        exit(1);
    }
    return p;
}

struct batch {
    uint8_t *in, *out, *host;
    struct pb_decode_stream *streams; /* mapped */
    struct pb_decode_result *results;
    uint32_t *progress;
    size_t in_bytes, out_bytes;
    uint32_t n;
};

static inline size_t whole(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static inline void take(struct batch *b)
{
    must(cudaMalloc((void **)&b->in, BATCH_BYTES), "memory for streams");
    must(cudaMalloc((void **)&b->out, BATCH_BYTES), "memory for blocks");
    b->host = need(malloc(BATCH_BYTES));
    must(cudaMallocHost((void **)&b->streams, BATCH * sizeof *b->streams), "pinned memory");
    must(cudaMallocHost((void **)&b->results, BATCH * sizeof *b->results), "pinned memory");
    must(cudaMallocHost((void **)&b->progress, BATCH * sizeof *b->progress), "pinned memory");
}

static inline bool fits(const struct batch *b, const struct tiff_block *block)
{
    return b->n < BATCH && b->in_bytes + whole(block->n + 16) <= BATCH_BYTES &&
           b->out_bytes + whole(block->most) + GUARD <= BATCH_BYTES;
}

/* At an address of any alignment, like blocks in a file. */
static inline void put(struct batch *b, const struct tiff_block *block)
{
    struct pb_decode_stream *s = &b->streams[b->n];
    size_t at = b->in_bytes + (block->n + b->n) % 16;
    memcpy(b->host + at, block->bytes, block->n);
    *s = (struct pb_decode_stream){.in = b->in + at,
                                   .out = b->out + b->out_bytes,
                                   .in_bytes = block->n,
                                   .least = block->least,
                                   .most = block->most};
    b->results[b->n].status = PB_DECODE_UNDONE;
    b->in_bytes += whole(block->n + 16);
    b->out_bytes += whole(block->most) + GUARD;
    b->n++;
}

static inline void launch(const struct pb_decode_back *back, struct batch *b)
{
    struct pb_decode_batch batch = {
        .streams = b->streams, .results = b->results, .progress = b->progress, .n = b->n};
    if (back->launch(&batch, NULL) < 0) {
        (void)fprintf(stderr, "check_codecs: %s was not launched\n", back->name);
        exit(1);
    }
}
#endif
