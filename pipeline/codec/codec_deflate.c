/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Deflate in zlib's framing (TIFF's "Adobe deflate").
 *
 * The defaults are modes: floats use an encoder that does not search for strings, float32 after
 * predictor 3 the one of deflate_planes.c where this is smaller, others the one of deflate_runs.c;
 * integers use the last one unless an estimate finds strings in the block (deflate_strings.h). Then
 * the encoder of deflate_pairs.c is used, for samples of one byte libdeflate at level 1, or
 * libdeflate at level 6 if there are few values, as in maps of classes.
 *
 * An explicit level from 10 on is libdeflate's. Below that it is the most effort that is spent:
 * after a predictor a longer search often finds nothing, and matches that cost more than their
 * bytes make files larger. Therefore samples of each block are encoded by the encoder of planes or
 * runs, by the encoder of pairs, and by libdeflate at the level. The block is encoded by the
 * fastest of these whose result exceeds the smallest by TRIAL_SLACK at most. libdeflate, which
 * takes most of the time, is not tried if planes are smaller than pairs, and pairs hardly smaller
 * than runs: the block has few strings. All choices depend on the block's bytes alone.
 *
 * Measured (512 px blocks after their predictor, one core of an Intel Xeon, KiB at MB/s; levels 1,
 * 6 and 9 are libdeflate's own):
 *
 *                           runs         level 1     level 6     level 9     ISA-L 1     ISA-L 3
 *   NDVI, float32           3397 2130    3387 228    3411 184    3411 109    3409 1074   3410 644
 *   NDVI, float32, noisy   11851 1090   11624 155   11522  92   11489  49   11757  511  11706 398
 *   20 indices, float32     8332 1276    8062 248    7907 169    7914  56    8108  934   8180 581
 *   NDVI, int16             1396 1930    1325 251    1347 107    1346  72    1378  649   1352 582
 *   band, uint16            1634 1985    1607 207    1663 158    1663 128    1646  912   1624 600
 *   band, uint16, noisy     5123 1200    4832 160    4896  70    4893  57    5039  367   4865 372
 *   RGB, uint8               752 2118     778 286     771 154     769  71     788 1040    791 680
 *   SAR amplitude, uint16    112  620     106 395      91 105      81   8     122  951    130 557
 *   heights, float32         483 1022     478 235     475 160     473  48     481 1015    488 607
 *   heights, int16           100 1105      97 362      93  81      -    -     102  786    108 630
 *   classes, uint8           6.8 5600     6.8 511     6.0 726      -    -       8 9998     10 1044
 *
 * Blocks of float32 after predictor 3, real and synthetic scenes with noise (one core of an AMD
 * EPYC 9005; the last column is the default's choice):
 *
 *                           planes      runs        level 1     level 6     selected
 *   NDVI                     704 4100    734 1520    732 147     738 113    planes
 *   NDVI, synthetic          700 2460    741 1270    727 142     720  98    planes
 *   3 indices               2115 2970   2275 1230   2246 156    2256 101    planes
 *   20 indices             13962 2580  15083 1170  14889 148   14130 107    planes
 *   Gaussian 15 of a band    606 2110    656 1160    610 200     594 116    planes
 *   NDVI, last rows invalid  322 4660    331 2760    330 241     334 208    planes
 *   NDVI in a third clouds   672 2770    543 1680    545 202     545 157    runs
 *   median of integers       691 3380    378 1920    380 216     386 164    runs
 *
 * Blocks of bytes, real (one core of an AMD EPYC 9005; the last column is the default's choice):
 *
 *                           runs        pairs       level 1     level 6     selected
 *   shaded relief           2084  943   1817  245   1625  240   1495   52   level 1
 *   NDVI in 250 steps        935  661   1202  214   1131  283   1011   61   runs
 *   classes of noisy NDVI    958  704   1260  219   1177  277   1051   56   runs
 *   classes, smoothed        432  650    480  238    455  370    332  111   level 6
 *   band in 255 steps       2807 1251   2798  323   2799  131   2861   92   runs
 *
 * The encoder of pairs makes blocks of 16-bit samples as small as level 1 does; figures are in
 * deflate_pairs.c. ISA-L is not used: its level 3 gives other bytes with AVX-512 than with AVX2,
 * and 1 is slower than the encoder of runs for 4 % at most. */
#include "pipeline/codec/codec.h"
#include "pipeline/codec/deflate_pairs.h"
#include "pipeline/codec/deflate_planes.h"
#include "pipeline/codec/deflate_runs.h"
#include "pipeline/codec/deflate_strings.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum { MODE_FLOATS = -1, MODE_INTEGERS = -6, MODE_BYTES = -7 };
enum { LEVEL_SOME = 1, LEVEL_MANY = 6, LEVEL_ALONE = 10 };
enum {
    SAMPLES = 2,
    SAMPLE_SHARE = 32, /* fraction of a block, but ... */
    SAMPLE_MIN = 32768,
    TRIAL_SLACK = 200, /* a 200th of the smallest */
    TRIAL_CLEAR = 100, /* planes without doubt: a hundredth smaller than pairs, ... */
    TRIAL_STRINGS = 50 /* ... which save a 50th of their result at most */
};

enum encoder { RUNS, PLANES, PAIRS, QUICK, SEARCH };

struct deflate {
    int level;          /* MODE_BYTES in place of MODE_INTEGERS if a sample is one byte */
    uint32_t row_bytes; /* size of a row with planes */
    struct libdeflate_compressor *search; /* for the level, or LEVEL_MANY; NULL for MODE_FLOATS */
    struct pb_deflate_runs *runs;         /* NULL from LEVEL_ALONE on */
    struct pb_deflate_planes *planes;     /* NULL unless rows have planes */
    union {
        struct libdeflate_compressor *quick; /* for LEVEL_SOME, of MODE_BYTES */
        struct pb_deflate_pairs *pairs;      /* NULL for MODE_FLOATS and from LEVEL_ALONE on */
    };
    struct pb_deflate_strings *strings; /* NULL unless the level is the default of integers */
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t deflate_bound(size_t bytes)
{
    return larger(libdeflate_zlib_compress_bound(NULL, bytes), pb_deflate_runs_bound(bytes) + 6);
}

/* The mode for the samples of the blocks, or the level. */
static int mode_of(int level, const struct pb_codec_blocks *blocks)
{
    return level == MODE_INTEGERS && blocks->sample_bytes == 1 ? MODE_BYTES : level;
}

static bool has_planes(int level, const struct pb_codec_blocks *blocks)
{
    return level < LEVEL_ALONE && pb_planes_fit(blocks->planes, blocks->row_bytes);
}

/* libdeflate does not report its sizes; a test compares these with its allocations. */
static uint64_t deflate_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    uint64_t own = sizeof(struct deflate), compressor = UINT64_C(1) << 20;
    if (level >= LEVEL_ALONE)
        return own + 10 * compressor;
    own += sizeof(struct pb_deflate_runs);
    if (has_planes(level, blocks))
        own += sizeof(struct pb_deflate_planes);
    if (level == MODE_FLOATS)
        return own;
    /* A compressor of LEVEL_SOME is smaller than pairs. */
    return own + compressor + sizeof(struct pb_deflate_pairs) +
           (level == MODE_INTEGERS ? sizeof(struct pb_deflate_strings) : 0);
}

static void deflate_destroy(void *context)
{
    struct deflate *own = context;
    if (own == NULL)
        return;
    libdeflate_free_compressor(own->search);
    if (own->level == MODE_BYTES)
        libdeflate_free_compressor(own->quick);
    else
        free(own->pairs);
    free(own->runs);
    free(own->planes);
    free(own->strings);
    free(own);
}

static int deflate_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    struct deflate *own = calloc(1, sizeof *own);
    if (own == NULL)
        return -ENOMEM;
    const int search = level == MODE_INTEGERS ? LEVEL_MANY : level;
    bool ok = true;
    own->level = mode_of(level, blocks);
    if (level < LEVEL_ALONE)
        ok = (own->runs = malloc(sizeof *own->runs)) != NULL;
    if (has_planes(level, blocks)) {
        own->row_bytes = (uint32_t)blocks->row_bytes;
        ok = ok && (own->planes = malloc(sizeof *own->planes)) != NULL;
    }
    if (own->level == MODE_BYTES)
        ok = ok && (own->quick = libdeflate_alloc_compressor(LEVEL_SOME)) != NULL;
    else if (level < LEVEL_ALONE && level != MODE_FLOATS)
        ok = ok && (own->pairs = malloc(sizeof *own->pairs)) != NULL;
    if (search > 0)
        ok = ok && (own->search = libdeflate_alloc_compressor(search)) != NULL;
    if (level == MODE_INTEGERS)
        ok = ok && (own->strings = malloc(sizeof *own->strings)) != NULL;
    if (!ok) {
        deflate_destroy(own);
        return -ENOMEM;
    }
    *out_context = own;
    return 0;
}

/* Encodes rows of planes with the code of the last plan. Returns the size, or 0 if runs have to
 * encode them: the rows that were not counted differ from the counted ones. */
static size_t encode_planes(const struct deflate *own, const uint8_t *in, size_t bytes,
                            uint8_t *out)
{
    return pb_deflate_planes(own->planes, own->runs, in, own->row_bytes, bytes / own->row_bytes,
                             out);
}

/* zlib's framing: two bytes before, Adler-32 after, most significant byte first. */
static size_t encode_here(const struct deflate *own, enum encoder encoder, const uint8_t *in,
                          size_t bytes, uint8_t *out)
{
    size_t n = encoder == PLANES  ? encode_planes(own, in, bytes, out + 2)
               : encoder == PAIRS ? pb_deflate_pairs(own->pairs, in, bytes, out + 2)
                                  : 0;
    if (n == 0)
        n = pb_deflate_runs(own->runs, in, bytes, out + 2);
    out[0] = 0x78;
    out[1] = 0x01;
    n += 2;
    uint32_t sum = libdeflate_adler32(1, in, bytes);
    for (int i = 0; i < 4; i++)
        out[n++] = (uint8_t)(sum >> (24 - 8 * i));
    return n;
}

/* Returns the size; 0 is a failure. */
static size_t encode_with(const struct deflate *own, enum encoder encoder, const uint8_t *in,
                          size_t bytes, void *out, size_t capacity)
{
    if (encoder < QUICK)
        return encode_here(own, encoder, in, bytes, out);
    return libdeflate_zlib_compress(encoder == QUICK ? own->quick : own->search, in, bytes, out,
                                    capacity);
}

/* Samples of rows of planes begin and end with a row, others begin with a pair. */
static size_t encode_samples(const struct deflate *own, enum encoder encoder, const uint8_t *in,
                             size_t bytes, void *out, size_t capacity)
{
    const size_t unit = own->planes != NULL ? own->row_bytes : 2;
    size_t sample = bytes / SAMPLE_SHARE > SAMPLE_MIN ? bytes / SAMPLE_SHARE : SAMPLE_MIN;
    size_t total = 0;
    sample = (sample + unit - 1) / unit * unit;
    if (bytes <= SAMPLES * sample)
        return encode_with(own, encoder, in, bytes, out, capacity);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = (bytes - sample) * (2 * i + 1) / (2 * SAMPLES);
        total += encode_with(own, encoder, in + at / unit * unit, sample, out, capacity);
    }
    return total;
}

/* The fastest of `first`, pairs and the level whose result is small enough; `out` is overwritten.
 */
static enum encoder try_three(const struct deflate *own, enum encoder first, const uint8_t *in,
                              size_t bytes, void *out, size_t capacity)
{
    size_t fast = encode_samples(own, first, in, bytes, out, capacity);
    size_t pairs = encode_samples(own, PAIRS, in, bytes, out, capacity);
    if (first == PLANES && fast <= pairs - pairs / TRIAL_CLEAR &&
        encode_samples(own, RUNS, in, bytes, out, capacity) <= pairs + pairs / TRIAL_STRINGS)
        return first; /* few strings */
    size_t search = encode_samples(own, SEARCH, in, bytes, out, capacity);
    size_t least = pairs < search ? pairs : search;
    least += least / TRIAL_SLACK;
    return fast <= least ? first : pairs <= least ? PAIRS : SEARCH;
}

/* Selects the encoder of the block. */
static enum encoder choose(const struct deflate *own, const uint8_t *in, size_t bytes, void *out,
                           size_t capacity)
{
    if (own->level >= LEVEL_ALONE)
        return SEARCH;
    const bool planes =
        own->planes != NULL && bytes % own->row_bytes == 0 &&
        pb_deflate_planes_plan(own->planes, own->runs, in, own->row_bytes, bytes / own->row_bytes);
    if (own->level > 0)
        return try_three(own, planes ? PLANES : RUNS, in, bytes, out, capacity);
    const enum pb_strings strings =
        own->level == MODE_BYTES ? pb_deflate_strings_of_bytes(own->strings, in, bytes)
        : own->strings != NULL   ? pb_deflate_strings(own->strings, in, bytes)
                                 : PB_STRINGS_NONE;
    return strings == PB_STRINGS_MANY   ? SEARCH
           : strings == PB_STRINGS_SOME ? (own->level == MODE_BYTES ? QUICK : PAIRS)
           : planes                     ? PLANES
                                        : RUNS;
}

static int deflate_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                          size_t *out_bytes)
{
    const struct deflate *own = context;
    if (capacity < deflate_bound(bytes))
        return -EIO;
    enum encoder encoder = choose(own, in, bytes, out, capacity);
    size_t n = encode_with(own, encoder, in, bytes, out, capacity);
    if (n == 0)
        return -EIO;
    *out_bytes = n;
    return 0;
}

const struct pb_codec pb_codec_deflate = {
    .name = "deflate",
    .tiff_compression = 8,
    .min_level = 1,
    .max_level = 12,
    .default_level = MODE_INTEGERS,
    .default_float_level = MODE_FLOATS,
    .bound = deflate_bound,
    .context_bytes = deflate_context_bytes,
    .create = deflate_create,
    .encode = deflate_encode,
    .destroy = deflate_destroy,
};
