/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_codecs [--mutate N] [--seed S] [--speed] FILE... Decodes every block of TIFF files on the
 * GPU, by every back end of its codec, and compares with the host's decoder: the accepted streams
 * and the bytes. --mutate N: then N damaged blocks of each codec. --speed: then GB/s of decoded
 * bytes of the first file's whole blocks, 100, 500 and 2000 streams at a time. Exits 1 at a
 * difference: a stream that the GPU alone accepts, or bytes that differ, or an undamaged one that
 * it refuses. */
#include <stdio.h>

#ifndef PB_HAVE_CUDA
int main(void)
{
    (void)puts("skipped: this build has no CUDA");
    return 77;
}
#else
#include "pipeline/codec/decode.h"
#include "tests/gpu/decode_batch.h"
#include "tests/tools/mutate.h"

enum { BLOCKS_MOST = 20000, TIMES = 5, FILL = 0xa5 };

static void decode(const struct pb_decode_back *back, struct batch *b)
{
    must(cudaMemcpy(b->in, b->host, b->in_bytes, cudaMemcpyHostToDevice), "upload");
    must(cudaMemset(b->out, FILL, b->out_bytes), "fill");
    launch(back, b);
    must(cudaDeviceSynchronize(), back->name);
}

/* --- comparison with the host's decoder
 * ----------------------------------------------------------- */

struct tally {
    unsigned long decoded, refused, by_gpu_alone, wrong;
};

struct host_decoder {
    void *context[PB_DEVICE_CODECS];
    uint8_t *out;
};

static const struct pb_decode *decoder_of(enum pb_device_codec codec)
{
    return codec == PB_DEVICE_LZW ? &pb_decode_lzw : &pb_decode_deflate;
}

static bool host_decodes(struct host_decoder *host, const struct tiff_block *block)
{
    const char *why = NULL;
    if (block->codec == PB_DEVICE_STORED) {
        if (block->n < block->least)
            return false;
        memcpy(host->out, block->bytes, block->n < block->most ? block->n : block->most);
        return true;
    }
    const struct pb_decode *decode = decoder_of(block->codec);
    if (host->context[block->codec] == NULL && decode->create(&host->context[block->codec]) < 0)
        (void)need(NULL);
    return decode->run(host->context[block->codec], block->bytes, block->n, host->out, block->least,
                       block->most, &why) == 0;
}

/* Compares the GPU's result of stream i of the batch, which is in b->host. */
static void compare(struct batch *b, uint32_t i, size_t at, const struct tiff_block *block,
                    struct host_decoder *host, bool intact, struct tally *tally)
{
    const struct pb_decode_result *result = &b->results[i];
    bool good = host_decodes(host, block), same = true;
    for (size_t k = block->most; k < whole(block->most) + GUARD; k++)
        same = same && b->host[at + k] == FILL;
    if (result->status == PB_DECODED)
        same = same && good && result->bytes >= block->least && result->bytes <= block->most &&
               b->progress[i] == result->bytes &&
               memcmp(b->host + at, host->out, result->bytes) == 0;
    else
        same = same && result->status <= PB_DECODE_HOST &&
               !(good && intact && result->status != PB_DECODE_HOST);
    tally->decoded += result->status == PB_DECODED;
    tally->refused += result->status != PB_DECODED;
    tally->by_gpu_alone += result->status != PB_DECODED && good;
    if (!same && tally->wrong++ < 5)
        (void)printf(
            "  stream %u: status %u, %u bytes; the host %s it (%u bytes stored, %u to %u)\n", i,
            result->status, result->bytes, good ? "decodes" : "refuses", block->n, block->least,
            block->most);
}

static void check_batch(const struct pb_decode_back *back, struct batch *b,
                        const struct tiff_block *blocks, struct host_decoder *host, bool intact,
                        struct tally *tally)
{
    size_t at = 0;
    if (b->n == 0)
        return;
    decode(back, b);
    must(cudaMemcpy(b->host, b->out, b->out_bytes, cudaMemcpyDeviceToHost), "download");
    for (uint32_t i = 0; i < b->n; i++) {
        compare(b, i, at, &blocks[i], host, intact, tally);
        at += whole(blocks[i].most) + GUARD;
    }
    b->n = 0;
    b->in_bytes = b->out_bytes = 0;
}

/* Streams that get a request to end, and streams without time. */
static bool check_ways_out(const struct pb_decode_back *back, const struct tiff_blocks *all,
                           struct batch *b)
{
    uint32_t wrong = 0, n = 0, *abort;
    must(cudaMallocHost((void **)&abort, sizeof *abort), "pinned memory");
    for (int late = 0; late < 2 && back->codec != PB_DEVICE_STORED; late++) {
        *abort = late == 0;
        for (size_t i = 0; i < all->n; i++)
            if (all->block[i].codec == back->codec && fits(b, &all->block[i]))
                put(b, &all->block[i]);
        must(cudaMemcpy(b->in, b->host, b->in_bytes, cudaMemcpyHostToDevice), "upload");
        const struct pb_decode_batch batch = {.streams = b->streams,
                                              .results = b->results,
                                              .n = b->n,
                                              .abort = abort,
                                              .limit_ns = (uint64_t)late};
        if (b->n > 0 && back->launch(&batch, NULL) < 0)
            wrong++;
        must(cudaDeviceSynchronize(), back->name);
        for (uint32_t i = 0; i < b->n; i++) /* one without codes has nothing to wait for */
            wrong += b->results[i].status == (late != 0 ? PB_DECODE_ABORTED : PB_DECODE_LATE) ||
                     b->results[i].status == PB_DECODE_UNDONE;
        for (uint32_t i = 0; i < b->n; i++)
            n += b->results[i].status == (late != 0 ? PB_DECODE_LATE : PB_DECODE_ABORTED);
        b->n = 0;
        b->in_bytes = b->out_bytes = 0;
    }
    (void)cudaFreeHost(abort);
    (void)printf("ways out, %s: %u streams ended, %u wrong\n", back->name, n, wrong);
    return wrong == 0;
}

static bool say(const char *what, const struct pb_decode_back *back, const struct tally *tally)
{
    (void)printf("%s, %s: %lu decoded, %lu refused (%lu of them by the GPU alone), %lu wrong\n",
                 what, back->name, tally->decoded, tally->refused, tally->by_gpu_alone,
                 tally->wrong);
    (void)fflush(stdout);
    return tally->wrong == 0;
}

static bool check_intact(const struct pb_decode_back *back, const struct tiff_blocks *all,
                         struct batch *b, struct host_decoder *host)
{
    struct tiff_block taken[BATCH];
    struct tally tally = {0};
    for (size_t i = 0; i < all->n; i++) {
        if (all->block[i].codec != back->codec)
            continue;
        if (!fits(b, &all->block[i]))
            check_batch(back, b, taken, host, true, &tally);
        taken[b->n] = all->block[i];
        put(b, &all->block[i]);
    }
    check_batch(back, b, taken, host, true, &tally);
    return say("intact", back, &tally);
}

/* A damaged copy of a block, which the caller frees. */
static struct tiff_block damaged(struct mutate *m, const struct tiff_block *block)
{
    struct tiff_block copy = *block;
    copy.bytes = need(malloc(block->n + 65));
    memcpy(copy.bytes, block->bytes, block->n);
    size_t changes = mutate_below(m, 4), early = mutate_below(m, 4) == 0 ? 64 : block->n;
    for (size_t i = 0; i < changes; i++)
        mutate_once(m, copy.bytes, early < block->n ? early : block->n);
    if (mutate_below(m, 8) == 0)
        copy.n = (uint32_t)mutate_below(m, block->n + 1);
    if (mutate_below(m, 16) == 0)
        for (size_t i = mutate_below(m, 65); i > 0; i--)
            copy.bytes[copy.n++] = (uint8_t)(mutate_below(m, 2) * mutate_next(m));
    if (mutate_below(m, 16) == 0)
        copy.most = copy.least = 1 + (uint32_t)mutate_below(m, block->most);
    return copy;
}

/* Blocks of up to 64 KiB, which are most of those of the samples: damage is not a matter of size.
 */
static bool check_damaged(const struct pb_decode_back *back, const struct tiff_blocks *all,
                          unsigned long count, uint64_t seed, struct batch *b,
                          struct host_decoder *host)
{
    struct tiff_block taken[BATCH];
    struct tally tally = {0};
    struct mutate m = {seed};
    struct tiff_block **some = need(malloc((all->n + 1) * sizeof(void *)));
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (all->block[i].codec == back->codec && all->block[i].most <= 1 << 16)
            some[n++] = &all->block[i];
    for (unsigned long i = 0; i < count && n > 0; i++) {
        struct tiff_block block = damaged(&m, some[mutate_below(&m, n)]);
        if (!fits(b, &block) || b->n == BATCH) {
            uint32_t k = b->n;
            check_batch(back, b, taken, host, false, &tally);
            while (k > 0)
                free(taken[--k].bytes);
        }
        taken[b->n] = block;
        put(b, &block);
    }
    uint32_t k = b->n;
    check_batch(back, b, taken, host, false, &tally);
    while (k > 0)
        free(taken[--k].bytes);
    free(some);
    return say("damaged", back, &tally);
}

/* --- speed ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Streams of their own bytes and outputs, taken in turn from the whole blocks of the first file. */
struct load {
    struct pb_decode_stream *streams;
    struct pb_decode_result *results;
    uint8_t *in, *out;
    uint64_t in_bytes, out_bytes, stored;
    uint32_t n;
};

static bool is_measured(const struct tiff_blocks *all, size_t i, enum pb_device_codec codec)
{
    const struct tiff_block *block = &all->block[i];
    return block->codec == codec && block->most == all->block[0].most &&
           block->least == block->most;
}

/* Without memory at load->in: only counts its bytes. False: there are no such blocks. */
static bool fill_load(struct load *load, const struct tiff_blocks *all, enum pb_device_codec codec)
{
    uint32_t made = 0;
    size_t missed = 0;
    load->in_bytes = load->out_bytes = load->stored = 0;
    for (size_t i = 0; made < load->n && missed < all->n; i = (i + 1) % all->n) {
        const struct tiff_block *block = &all->block[i];
        if (!is_measured(all, i, codec)) {
            missed++;
            continue;
        }
        missed = 0;
        if (load->in != NULL) {
            load->streams[made] = (struct pb_decode_stream){.in = load->in + load->in_bytes,
                                                            .out = load->out + load->out_bytes,
                                                            .in_bytes = block->n,
                                                            .least = block->least,
                                                            .most = block->most};
            must(cudaMemcpy(load->in + load->in_bytes, block->bytes, block->n,
                            cudaMemcpyHostToDevice),
                 "upload");
        }
        load->in_bytes += whole(block->n);
        load->out_bytes += whole(block->most);
        load->stored += block->n;
        made++;
    }
    return made == load->n;
}

/* The median of some runs, in milliseconds. */
static float time_load(const struct pb_decode_back *back, const struct load *load)
{
    const struct pb_decode_batch batch = {
        .streams = load->streams, .results = load->results, .n = load->n};
    float ms[TIMES + 1]; /* the first one loads the kernel */
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "event");
    must(cudaEventCreate(&to), "event");
    for (int i = 0; i <= TIMES; i++) {
        must(cudaEventRecord(from, NULL), "event");
        if (back->launch(&batch, NULL) < 0)
            exit(1);
        must(cudaEventRecord(to, NULL), "event");
        must(cudaEventSynchronize(to), back->name);
        must(cudaEventElapsedTime(&ms[i], from, to), "event");
    }
    qsort(ms + 1, TIMES, sizeof *ms, ascending);
    return ms[1 + TIMES / 2];
}

static void measure(const struct pb_decode_back *back, const struct tiff_blocks *all, uint32_t n)
{
    struct load load = {.n = n};
    uint32_t bad = 0;
    if (!fill_load(&load, all, back->codec))
        return;
    must(cudaMallocHost((void **)&load.streams, n * sizeof *load.streams), "pinned memory");
    must(cudaMallocHost((void **)&load.results, n * sizeof *load.results), "pinned memory");
    must(cudaMalloc((void **)&load.in, load.in_bytes), "memory for streams");
    must(cudaMalloc((void **)&load.out, load.out_bytes), "memory for blocks");
    (void)fill_load(&load, all, back->codec);
    double ms = (double)time_load(back, &load);
    for (uint32_t i = 0; i < n; i++)
        bad += load.results[i].status != PB_DECODED;
    (void)printf("speed, %s: %u streams of %u bytes, %.3f stored: %.2f ms, %.1f GB/s%s\n",
                 back->name, n, all->block[0].most, (double)load.stored / (double)load.out_bytes,
                 ms, (double)load.out_bytes / 1e6 / ms, bad > 0 ? ", REFUSED" : "");
    (void)fflush(stdout);
    (void)cudaFree(load.in);
    (void)cudaFree(load.out);
    (void)cudaFreeHost(load.streams);
    (void)cudaFreeHost(load.results);
}

int main(int argc, char **argv)
{
    unsigned long mutations = 0;
    uint64_t seed = 1;
    bool speed = false, good = true;
    struct tiff_blocks all = {0};
    struct batch b = {0};
    struct host_decoder host = {.out = need(malloc(BATCH_BYTES))};
    long files = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--mutate") == 0 && i + 1 < argc)
            mutations = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--speed") == 0)
            speed = true;
        else
            files += tiff_blocks_add(argv[i], BLOCKS_MOST, &all, NULL) > 0;
    }
    (void)printf("%zu blocks of %ld files\n", all.n, files);
    if (all.n == 0)
        return 2;
    take(&b);
    for (int codec = 0; codec < PB_DEVICE_CODECS; codec++) {
        const struct pb_decode_back *back;
        for (uint32_t k = 0; (back = pb_decode_back_at((enum pb_device_codec)codec, k)) != NULL;
             k++) {
            good = check_intact(back, &all, &b, &host) && good;
            good = check_ways_out(back, &all, &b) && good;
            if (mutations > 0)
                good = check_damaged(back, &all, mutations, seed, &b, &host) && good;
            for (uint32_t n = 100; speed && n <= 2500; n *= n == 100 ? 5 : n == 500 ? 4 : 2)
                measure(back, &all, n);
        }
    }
    return good ? 0 : 1;
}
#endif
