/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * mutate_streams [-n COUNT] [-s SEED] [CODEC...] Decodes COUNT damaged streams of each codec
 * (deflate, lzw, packbits, zstd) between pages that must not be touched, each one twice, into
 * memory that holds other bytes each time, and twice at once where the codec decodes two in turn. A
 * decoded stream gives as many bytes as it must and the same ones every time: no byte of the memory
 * before shows. A crash or a stream that takes over 20 s is named and ends the program. Exit status
 * 0 = none. */
#include "pipeline/codec/codec.h"
#include "pipeline/codec/decode.h"

#include "mutate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCK_MAX = 16384, STREAM_MAX = 1 << 16, SECONDS = 20 };

struct guarded { /* memory that ends where a protected page begins */
    uint8_t *end;
};

struct trial {
    const char *codec;
    unsigned long index, seed;
    unsigned long decoded, refused;
};

static struct trial trial; /* for the signal handler */

static void died(int number)
{
    char text[160];
    int n = snprintf(text, sizeof text, "stream %lu of %s (seed %lu): signal %d\n", trial.index,
                     trial.codec, trial.seed, number);
    if (write(2, text, (size_t)n) < 0)
        _exit(3);
    _exit(2);
}

static struct guarded take(size_t bytes)
{
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    uint8_t *p =
        mmap(NULL, whole + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + whole, PAGE, PROT_NONE) < 0) {
        perror("mmap");
        exit(3);
    }
    return (struct guarded){p + whole};
}

/* Samples as scenes have them: gradients, noise, or one value. */
static void make_block(struct mutate *m, uint8_t *block, size_t bytes)
{
    size_t kind = mutate_below(m, 3), value = mutate_below(m, 256);
    for (size_t i = 0; i < bytes; i++)
        block[i] = (uint8_t)(kind == 0   ? i / 7 + mutate_below(m, 3)
                             : kind == 1 ? mutate_next(m)
                                         : value);
}

static size_t pack_bits(const uint8_t *in, size_t bytes, uint8_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes;) {
        size_t run = 1;
        while (run < 128 && i + run < bytes && in[i + run] == in[i])
            run++;
        out[n++] = run > 1 ? (uint8_t)(257 - run) : 0;
        out[n++] = in[i];
        i += run;
    }
    return n;
}

static size_t encode(const struct pb_codec *codec, const uint8_t *block, size_t bytes, uint8_t *out)
{
    const struct pb_codec_blocks blocks = {.bytes = bytes};
    void *context = NULL;
    size_t n = 0;
    int level = 0;
    if (codec == NULL)
        return pack_bits(block, bytes, out);
    if (pb_codec_level(codec, 0, false, &level) < 0 ||
        codec->create(level, &blocks, &context) < 0 || codec->bound(bytes) > STREAM_MAX ||
        codec->encode(context, block, bytes, out, STREAM_MAX, &n) < 0)
        exit(3);
    codec->destroy(context);
    return n;
}

static int decode_once(const struct pb_decode *decode, void *context, const uint8_t *in,
                       size_t in_bytes, uint8_t *out, size_t least, size_t most, int fill)
{
    const char *why = NULL;
    memset(out, fill, most);
    int rc = decode->run(context, in, in_bytes, out, least, most, &why);
    if (rc < 0 && (why == NULL || why[0] == '\0'))
        return 1; /* a refusal has a reason */
    return rc;
}

/* Two times at once: 1 when the two are not judged the same. */
static int decode_twice(const struct pb_decode *decode, void *context, const uint8_t *in,
                        size_t in_bytes, uint8_t *const out[2], size_t least, size_t most)
{
    int rc[2] = {1, 1};
    for (unsigned lane = 0; lane < 2; lane++) {
        memset(out[lane], lane == 0 ? 0x77 : 0x88, most);
        decode->start(context, lane, in, in_bytes, out[lane], least, most);
    }
    for (unsigned i = 0, lane = 0; i < 2; i++) {
        const char *why = NULL;
        int ended = decode->next(context, &lane, &why);
        rc[lane] = ended < 0 && (why == NULL || why[0] == '\0') ? 1 : ended;
    }
    return rc[0] == rc[1] ? rc[0] : 1;
}

/* 0, or 1 when the decoder did something wrong. */
static int one(const struct pb_codec *codec, const struct pb_decode *decode, void *context,
               struct mutate *m, const struct guarded buffer[4])
{
    static uint8_t block[BLOCK_MAX], stream[2 * STREAM_MAX];
    size_t bytes = 1 + mutate_below(m, mutate_below(m, 8) == 0 ? BLOCK_MAX : 600);
    make_block(m, block, bytes);
    size_t n = encode(codec, block, bytes, stream);
    for (size_t i = 1 + mutate_below(m, 4); i > 0; i--)
        mutate_once(m, stream, n);
    if (mutate_below(m, 4) == 0)
        n = mutate_below(m, n + 1);
    /* Blocks that are smaller than the stream, larger, or a last strip. */
    size_t most = mutate_below(m, 2) == 0 ? bytes : 1 + mutate_below(m, BLOCK_MAX);
    size_t least = mutate_below(m, 2) == 0 ? most : 1 + mutate_below(m, most);
    uint8_t *in = buffer[0].end - n, *a = buffer[1].end - most, *b = buffer[2].end - most;
    memcpy(in, stream, n);
    int rc = decode_once(decode, context, in, n, a, least, most, 0x5a);
    int again = decode_once(decode, context, in, n, b, least, most, 0xc3);
    trial.decoded += rc == 0;
    trial.refused += rc < 0;
    if (rc > 0 || rc != again || (rc == 0 && memcmp(a, b, least) != 0))
        return 1;
    if (decode->start == NULL)
        return 0;
    uint8_t *c = buffer[3].end - most;
    again = decode_twice(decode, context, in, n, (uint8_t *const[]){a, c}, least, most);
    return again != rc || (rc == 0 && (memcmp(a, b, least) != 0 || memcmp(c, b, least) != 0));
}

static int run(const char *name, const struct pb_codec *codec, const struct pb_decode *decode,
               unsigned long count, unsigned long seed)
{
    const struct guarded buffer[4] = {take(STREAM_MAX), take(BLOCK_MAX), take(BLOCK_MAX),
                                      take(BLOCK_MAX)};
    void *context = NULL;
    int wrong = 0;
    trial = (struct trial){.codec = name, .seed = seed};
    if (decode->create(&context) < 0)
        exit(3);
    for (; trial.index < count; trial.index++) {
        struct mutate m = {.state = seed * UINT64_C(1000003) + trial.index};
        (void)alarm(SECONDS);
        if (one(codec, decode, context, &m, buffer) != 0) {
            printf("%s: stream %lu (seed %lu): what it gives depends on the memory it is given\n",
                   name, trial.index, seed);
            wrong++;
        }
    }
    (void)alarm(0);
    decode->destroy(context);
    printf("%s: %lu streams: %lu decoded, %lu refused, %d wrong\n", name, count, trial.decoded,
           trial.refused, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM};
    unsigned long count = 1000, seed = 1;
    int wrong = 0;
    for (int c; (c = getopt(argc, argv, "n:s:")) != -1;) {
        if (c == 'n')
            count = strtoul(optarg, NULL, 10);
        else if (c == 's')
            seed = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        (void)signal(deadly[i], died);
    const struct {
        const char *name;
        const struct pb_codec *codec;
        const struct pb_decode *decode;
    } codecs[] = {
        {"deflate", &pb_codec_deflate, &pb_decode_deflate},
        {"lzw", &pb_codec_lzw, &pb_decode_lzw},
        {"packbits", NULL, &pb_decode_packbits},
        {"zstd", &pb_codec_zstd, &pb_decode_zstd},
    };
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        bool wanted = optind == argc;
        for (int a = optind; a < argc; a++)
            wanted = wanted || strcmp(argv[a], codecs[i].name) == 0;
        if (wanted)
            wrong += run(codecs[i].name, codecs[i].codec, codecs[i].decode, count, seed);
    }
    return wrong > 0;
}
