/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Zstandard frames, by zstd's library or, of floats after predictor 3, by the encoder of planes
 * (zstd_planes.h). Both encode sample rows of each block; planes encode the block unless the
 * library's result at the level is estimated to be smaller. The library encodes the sample at level
 * 1 first, in a twentieth of the time of level 9: only if a higher level can turn the decision is
 * the sample encoded at that level. The choice depends on the block's bytes alone. Default levels:
 * 9, like GDAL, for integers; 1 for floats.
 *
 * The library's context is in one allocation of known size ("static" contexts of zstd's advanced
 * interface), so that it can be planned for and encode cannot allocate.
 *
 * Measured (512 px blocks of floats after predictor 3, one core of an AMD EPYC of 2025, zstd 1.5.4;
 * percent of the raw size at MB/s of raw bytes):
 *
 *                             this codec                 zstd's library                decoding, of
 *                          level 1     level 9     level 1    level 3    level 9    planes  level 9
 *   NDVI, noisy           66.6 1701   66.6  916   71.4  699   70.3 232   69.0  61     1873    2688
 *   NDVI of Sentinel-2    67.1 2584   67.1 1351   71.2  921   71.1 278   70.6  73     2451    1795
 *   the same and two more 67.9 1838   67.9  859   72.5  880   72.2 364   70.9  59     2174    2288
 *   20 indices            69.2 1745   69.2  673   72.6  839   71.8 379   70.7  53     3215    1724
 *   NDVI with holes       49.2 1739   49.2  983   52.2  773   51.6 330   50.8  65     1898    2817
 *   NDVI, half nodata     39.6 2809   39.5 1092   41.7 1366   41.7 490   41.4 103     3226    2646
 *   slope                 72.9 1473   72.9  820   75.3  651   75.2 273   73.6  67     2028    2801
 *   heights               61.0  527   58.8   67   61.0  609   59.4 349   58.8  65     3831    3802
 *   band, smoothed        60.0  778   58.3   70   60.1  671   58.7 378   58.3  72     2778    4065
 *   band of integers      34.8  889   33.8   79   34.8 1036   34.7 358   33.8  84     3226    2208
 *   float32 as float64    37.3 1890   37.0   84   39.6 1033   38.4 403   36.9  99     2710    2890
 *   NDVI in float64       79.6 1832   79.6  766   81.9  756   80.6 452   80.1  79     2950    5556
 */
#define ZSTD_STATIC_LINKING_ONLY
#include "pipeline/codec/codec.h"
#include "pipeline/codec/zstd_planes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    SAMPLE_SHARE = 64, /* a 64th for each plane: a 16th of float32, at least ... */
    SAMPLE_MIN = 1 << 15,
    GROUP = 4, /* consecutive rows of a sample */
    /* Planes may be larger than the library's result by a hundredth, less a 128th of the sample,
     * which has fewer repeated strings than the block, less the descriptions of codes, which the
     * library writes less often in a block. */
    SLACK = 100,
    DOUBT = 128,
    HEADS = 128, /* bytes */
    FIRST_LEVEL = 1,
    HIGHER = 33 /* a 33rd of the result of FIRST_LEVEL: planes that save it win at all levels */
};

struct zstd_context {
    ZSTD_CCtx *zstd; /* inside `memory` */
    int level;
    struct pb_codec_blocks blocks;
    struct pb_zstd_planes *planes; /* NULL: the rows are not encoded by planes */
    uint8_t *sample;               /* rows, as large as ... */
    size_t sample_bytes;
    _Alignas(16) unsigned char memory[];
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t zstd_bound(size_t bytes)
{
    return larger(ZSTD_compressBound(bytes), pb_zstd_planes_bound(bytes));
}

/* Bytes of the sample rows of a block. */
static size_t sample_of(const struct pb_codec_blocks *blocks)
{
    size_t share = larger(blocks->bytes / SAMPLE_SHARE * blocks->planes, SAMPLE_MIN);
    share = larger(share, GROUP * blocks->row_bytes);
    return share < blocks->bytes ? share : blocks->bytes;
}

static size_t library_bytes(int level, size_t bytes)
{
    return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, bytes, 0));
}

static bool has_planes(const struct pb_codec_blocks *blocks)
{
    return pb_zstd_planes_fit(blocks->bytes, blocks->row_bytes, blocks->planes);
}

/* The parameters for a sample can need more memory than those for a block. */
static size_t memory_bytes(int level, const struct pb_codec_blocks *blocks)
{
    const size_t bytes = library_bytes(level, blocks->bytes), sample = sample_of(blocks);
    const size_t samples = larger(library_bytes(level, sample), library_bytes(FIRST_LEVEL, sample));
    return has_planes(blocks) ? larger(bytes, samples) : bytes;
}

static uint64_t zstd_context_bytes(int level, const struct pb_codec_blocks *blocks)
{
    uint64_t planes = has_planes(blocks) ? sizeof(struct pb_zstd_planes) + sample_of(blocks) : 0;
    return sizeof(struct zstd_context) + memory_bytes(level, blocks) + planes;
}

static void zstd_destroy(void *context)
{
    struct zstd_context *own = context;
    if (own == NULL)
        return;
    free(own->planes);
    free(own->sample);
    free(own);
}

static int zstd_create(int level, const struct pb_codec_blocks *blocks, void **out_context)
{
    size_t bytes = memory_bytes(level, blocks);
    struct zstd_context *own = malloc(sizeof *own + bytes);
    if (own == NULL)
        return -ENOMEM;
    *own = (struct zstd_context){.level = level, .blocks = *blocks};
    own->zstd = ZSTD_initStaticCCtx(own->memory, bytes);
    bool ok = own->zstd != NULL;
    if (ok && has_planes(blocks)) {
        own->sample_bytes = sample_of(blocks);
        own->planes = malloc(sizeof *own->planes);
        own->sample = malloc(own->sample_bytes);
        ok = own->planes != NULL && own->sample != NULL;
    }
    if (!ok) {
        zstd_destroy(own);
        return -ENOMEM;
    }
    *out_context = own;
    return 0;
}

/* Copies groups of rows at equal distances. Returns the count of rows. */
static size_t take_sample(const struct zstd_context *own, const uint8_t *in, size_t rows)
{
    const size_t row_bytes = own->blocks.row_bytes, most = own->sample_bytes / row_bytes;
    if (rows <= most) {
        memcpy(own->sample, in, rows * row_bytes);
        return rows;
    }
    for (size_t i = 0, n = most / GROUP; i < n; i++)
        memcpy(own->sample + i * GROUP * row_bytes,
               in + (rows - GROUP) * (2 * i + 1) / (2 * n) * row_bytes, GROUP * row_bytes);
    return most / GROUP * GROUP;
}

/* Size of the first `bytes` bytes of the sample by the library, or 0; `out` is overwritten. */
static size_t library_size(const struct zstd_context *own, size_t bytes, int level, void *out,
                           size_t capacity)
{
    const size_t n = ZSTD_compressCCtx(own->zstd, out, capacity, own->sample, bytes, level);
    return ZSTD_isError(n) ? 0 : n;
}

/* True if the block is encoded by planes, whose codes are ready then; `out` is overwritten. */
static bool planes_win(const struct zstd_context *own, const uint8_t *in, size_t rows, void *out,
                       size_t capacity)
{
    const size_t bytes = take_sample(own, in, rows) * own->blocks.row_bytes;
    pb_zstd_planes_prepare(own->planes, in, rows, own->blocks.row_bytes, own->blocks.planes);
    const size_t planes =
        pb_zstd_planes_try(own->planes, own->sample, bytes / own->blocks.row_bytes, out) +
        bytes / DOUBT + HEADS;
    const size_t first = library_size(own, bytes, FIRST_LEVEL, out, capacity);
    if (own->level == FIRST_LEVEL || planes > first + first / SLACK)
        return planes <= first + first / SLACK;
    if (planes <= first - first / HIGHER)
        return true;
    const size_t library = library_size(own, bytes, own->level, out, capacity);
    return planes <= library + library / SLACK;
}

static int zstd_encode(void *context, const void *in, size_t bytes, void *out, size_t capacity,
                       size_t *out_bytes)
{
    const struct zstd_context *own = context;
    if (bytes > own->blocks.bytes || capacity < zstd_bound(bytes))
        return -EIO;
    if (own->planes != NULL && bytes % own->blocks.row_bytes == 0) {
        const size_t rows = bytes / own->blocks.row_bytes;
        if (planes_win(own, in, rows, out, capacity) &&
            (*out_bytes = pb_zstd_planes_frame(own->planes, in, rows, out)) > 0)
            return 0;
    }
    size_t n = ZSTD_compressCCtx(own->zstd, out, capacity, in, bytes, own->level);
    if (ZSTD_isError(n))
        return -EIO;
    *out_bytes = n;
    return 0;
}

/* True for one frame with a window that other decoders allocate: libtiff accepts no second frame,
 * and zstd limits the window to 128 MiB by default. */
static bool zstd_is_common(const void *block, size_t bytes)
{
    enum { SINGLE_SEGMENT = 0x20, WINDOW_LOG_MIN = 10, WINDOW_LOG_MAX = 27 };
    const uint8_t *frame = block; /* a magic number, a descriptor, and the window's descriptor */
    return bytes > 5 && ZSTD_findFrameCompressedSize(block, bytes) == bytes &&
           (frame[4] & SINGLE_SEGMENT || WINDOW_LOG_MIN + (frame[5] >> 3) <= WINDOW_LOG_MAX);
}

const struct pb_codec pb_codec_zstd = {
    .name = "zstd",
    .tiff_compression = 50000,
    .min_level = 1,
    .max_level = 22,
    .default_level = 9,
    .default_float_level = 1,
    .bound = zstd_bound,
    .context_bytes = zstd_context_bytes,
    .create = zstd_create,
    .encode = zstd_encode,
    .destroy = zstd_destroy,
    .is_common = zstd_is_common,
};
