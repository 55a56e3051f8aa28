/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that a GPU encodes against those of the CPU's encoder, byte by byte: all sample types,
 * predictors and odd sizes, noise, runs of all lengths, nodata, masks, short strings, blocks with
 * strings that are left to the host (tests/encode_cases.h); painted blocks (tests/paint_cases.h);
 * overviews halved by both. Then the speed of whole batches of 512 px blocks, each block compared,
 * and that of the codec on a core of the host.
 *
 *   check_encode [--quick] [FILE]     0 equal; 1 not; 77 no GPU or built without CUDA
 *
 * --quick times nothing: for running under compute-sanitizer. FILE: planes of 512 x 512 uint16, for
 * batches of a real scene's blocks. */
#ifndef PB_HAVE_CUDA
#include <stdio.h>

int main(void)
{
    (void)fprintf(stderr, "skipped: built without CUDA\n");
    return 77;
}
#else
#include "kernels/codec/halve_device.h"
#include "pipeline/cog/halve.h"
#include "tests/encode_cases.h"
#include "tests/paint_cases.h"
#include "tests/gpu/check_device.h"

#include <time.h>

enum { SPEED_SIDE = 512, SPEED_PX = SPEED_SIDE * SPEED_SIDE, SPEED_BLOCKS = 500, KINDS = 24 };

/* --- a batch --------------------------------------------------------------------------------- */

struct batch {
    struct pb_encode_batch device;
    struct pb_encode_needs needs;
    struct pb_encoded *encoded; /* these on the host */
    uint8_t *out, *raw;
};

static void batch_create(const struct pb_encode_format *format,
                         const struct pb_encode_block *blocks, uint32_t n, struct batch *out)
{
    memset(out, 0, sizeof *out);
    if (pb_encode_measure(format, n, &out->needs) < 0)
        abort();
    out->device = (struct pb_encode_batch){
        .format = *format,
        .n_blocks = n,
        .blocks = on_device(blocks, n * sizeof *blocks),
        .workspace = on_device(NULL, out->needs.bytes),
        .out = on_device(NULL, out->needs.out_bytes + 16),
        .out_bytes = out->needs.out_bytes,
        .encoded = on_device(NULL, n * sizeof *out->encoded),
        .used = on_device(NULL, sizeof(uint64_t)),
    };
    MUST(cudaMemset(out->device.out, 0x5a, out->needs.out_bytes + 16));
    MUST(cudaMemset(out->device.workspace, 0xa5, out->needs.bytes));
}

static void batch_run(struct batch *batch)
{
    int rc = pb_encode_cuda(&batch->device, NULL);
    if (rc < 0) {
        (void)fprintf(stderr, "pb_encode_cuda: %s\n", strerror(-rc));
        exit(1);
    }
}

static void batch_take(struct batch *batch)
{
    MUST(cudaDeviceSynchronize());
    batch->encoded =
        on_host(batch->device.encoded, batch->device.n_blocks * sizeof *batch->encoded);
    batch->out = on_host(batch->device.out, batch->needs.out_bytes);
    batch->raw = on_host((const uint8_t *)batch->device.workspace + batch->needs.raw_at,
                         batch->needs.raw_stride * batch->device.n_blocks);
}

static void batch_destroy(struct batch *batch)
{
    MUST(cudaFree((void *)(uintptr_t)batch->device.blocks));
    MUST(cudaFree(batch->device.workspace));
    MUST(cudaFree(batch->device.out));
    MUST(cudaFree(batch->device.encoded));
    MUST(cudaFree(batch->device.used));
    free(batch->encoded);
    free(batch->out);
    free(batch->raw);
}

static bool check_block(const struct batch *batch, uint32_t i, const struct encode_reference *want,
                        const char *what)
{
    const struct pb_encoded *e = &batch->encoded[i];
    const enum pb_encode_state state = batch->device.format.with == PB_ENCODE_RAW ? PB_ENCODED_RAW
                                       : want->has_strings ? PB_ENCODED_STRINGS
                                                           : PB_ENCODED;
    const bool raw =
        want->raw_bytes == batch->needs.raw_bytes &&
        memcmp(want->raw, batch->raw + i * batch->needs.raw_stride, want->raw_bytes) == 0;
    const bool bytes = state != PB_ENCODED ||
                       (e->bytes == want->encoded_bytes &&
                        memcmp(want->encoded, batch->out + e->at, want->encoded_bytes) == 0);
    if (raw && bytes && e->state == state && e->moved == want->moved)
        return true;
    (void)fprintf(
        stderr,
        "%s: block %u differs:%s%s state %u, not %u; %u bytes, not %zu; %llu moved, not %llu\n",
        what, i, raw ? "" : " raw bytes", bytes ? "" : " encoded bytes", e->state, state, e->bytes,
        want->encoded_bytes, (unsigned long long)e->moved, (unsigned long long)want->moved);
    return false;
}

/* --- the cases ------------------------------------------------------------------------------- */

/* painted: the format and the colours of blocks of the case; NULL: it paints nothing. */
static bool check_case_of(const struct encode_case *c, const struct paint_made *painted)
{
    const struct pb_encode_format format = painted ? painted->format : encode_case_format(c);
    const size_t bytes = encode_case_floats(c) * sizeof(float);
    struct pb_encode_block there[ENCODE_CASE_BLOCKS], here[ENCODE_CASE_BLOCKS];
    float *planes = malloc(bytes);
    struct batch batch;
    bool good = true;
    if (planes == NULL)
        abort();
    encode_case_fill(c, planes);
    float *on_gpu = on_device(planes, bytes);
    encode_case_blocks(c, on_gpu, there);
    encode_case_blocks(c, planes, here);
    batch_create(&format, there, ENCODE_CASE_BLOCKS, &batch);
    struct pb_paint_step *steps =
        painted ? on_device(painted->step, format.paint.n_steps * sizeof *steps) : NULL;
    batch.device.steps = steps;
    batch_run(&batch);
    batch_take(&batch);
    for (uint32_t i = 0; i < ENCODE_CASE_BLOCKS; i++) {
        struct encode_reference want;
        good = encode_reference_painted(&format, NULL, painted ? &painted->painter : NULL, &here[i],
                                        &want) &&
               check_block(&batch, i, &want, c->name) && good;
        encode_reference_free(&want);
    }
    batch_destroy(&batch);
    MUST(cudaFree(steps));
    MUST(cudaFree(on_gpu));
    free(planes);
    return good;
}

static bool check_case(const struct encode_case *c)
{
    return check_case_of(c, NULL);
}

static bool check_painted(const struct paint_case *c)
{
    const struct encode_case block = paint_case_block(c);
    struct paint_made made;
    paint_case_make(c, &made);
    const bool good = check_case_of(&block, &made);
    paint_made_free(&made);
    return good;
}

static bool same_pixels(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && (a[i] == a[i] || b[i] == b[i]))
            return false;
    return true;
}

/* Two planes of odd size, and a part without a plane. */
static bool check_halving(bool nearest, struct pb_pixel_join join)
{
    const struct encode_case *c = &encode_cases[1];
    const size_t bytes = encode_case_floats(c) * sizeof(float);
    enum { W = 61, H = 63, OUT = 32 * 32 };
    float *planes = malloc(bytes), want[4 * OUT];
    const uint32_t row_px = (uint32_t)encode_case_row_px(c);
    const uint64_t plane_px = encode_case_plane_px(c);
    if (planes == NULL)
        abort();
    encode_case_fill(c, planes);
    for (int i = 0; i < 4 * OUT; i++)
        want[i] = NAN;
    const float *plane[2] = {planes, planes + plane_px};
    if (join.planes != 0)
        pb_halve_average_joined(&join, plane, 2, row_px, W, H, want, OUT, 32);
    for (uint32_t p = 0; p < 2 && join.planes == 0; p++)
        (nearest ? pb_halve_nearest : pb_halve_average)(planes + p * plane_px, row_px, W, H,
                                                        want + p * OUT, 32);
    float *on_gpu = on_device(planes, bytes), *to = on_device(want, sizeof want);
    MUST(cudaMemset(to, 0xff, sizeof want)); /* NaN */
    const struct pb_halve_part parts[2] = {
        {on_gpu, to, plane_px, OUT, row_px, 32, W, H, join},
        {NULL, to + 2 * OUT, 0, OUT, 0, 32, W, H, join},
    };
    struct pb_halve_part *listed = on_device(parts, sizeof parts);
    bool good = pb_halve_cuda(listed, 2, 2, H, nearest, NULL) == 0;
    MUST(cudaDeviceSynchronize());
    float *got = on_host(to, sizeof want);
    good = good && same_pixels(got, want, 4 * OUT);
    MUST(cudaFree(listed));
    MUST(cudaFree(to));
    MUST(cudaFree(on_gpu));
    free(got);
    free(planes);
    if (!good)
        (void)fprintf(stderr, "halving, nearest %d, joined %d: differs\n", nearest,
                      join.planes != 0);
    return good;
}

/* --- speed ----------------------------------------------------------------------------------- */

struct speed {
    const char *name;
    enum pb_type type;
    uint32_t bands, blocks;
    int32_t predictor;
    enum pb_encode_with with;
    double nodata;
    const float *planes; /* KINDS blocks of them */
};

static double milliseconds(struct batch *batch, int runs)
{
    cudaEvent_t begin, end;
    float best = 1e30f;
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    for (int i = 0; i <= runs; i++) { /* the first one warms up */
        float ms;
        MUST(cudaEventRecord(begin, NULL));
        batch_run(batch);
        MUST(cudaEventRecord(end, NULL));
        MUST(cudaEventSynchronize(end));
        MUST(cudaEventElapsedTime(&ms, begin, end));
        best = i > 0 && ms < best ? ms : best;
    }
    MUST(cudaEventDestroy(begin));
    MUST(cudaEventDestroy(end));
    return (double)best;
}

static struct pb_encode_block speed_block(const struct speed *s, const float *planes, uint32_t i)
{
    return (struct pb_encode_block){planes + (size_t)(i % KINDS) * s->bands * SPEED_PX, SPEED_PX,
                                    SPEED_SIDE, SPEED_SIDE, SPEED_SIDE};
}

/* Speed of the host's codec. */
struct host_speed {
    double seconds, bytes;
    uint32_t searched; /* count of the batch's blocks that are searched by pairs */
};

static bool add_host(const struct pb_encode_format *format, const struct encode_reference *made,
                     struct host_speed *out)
{
    const size_t capacity = pb_codec_deflate.bound(made->raw_bytes);
    const size_t sample_bytes = pb_type_bytes(format->quantizer.type);
    const size_t row_bytes = (size_t)format->block_px * format->n_bands * sample_bytes;
    const uint32_t planes = format->predictor == PB_PREDICTOR_FLOAT ? (uint32_t)sample_bytes : 0;
    const struct pb_codec_blocks blocks = {made->raw_bytes, planes, row_bytes, sample_bytes};
    uint8_t *to = malloc(capacity);
    void *codec = NULL;
    size_t n = 0;
    struct timespec begin, end;
    bool good =
        to != NULL && pb_codec_deflate.create(encode_level_of(format), &blocks, &codec) == 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    good =
        good && pb_codec_deflate.encode(codec, made->raw, made->raw_bytes, to, capacity, &n) == 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    out->seconds +=
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    out->bytes += (double)made->raw_bytes;
    good = good && n == made->encoded_bytes && memcmp(to, made->encoded, n) == 0;
    pb_codec_deflate.destroy(codec);
    free(to);
    return good;
}

static bool check_speed_blocks(const struct speed *s, const struct batch *batch,
                               struct host_speed *host)
{
    bool good = true;
    *host = (struct host_speed){0};
    for (uint32_t k = 0; k < KINDS && good; k++) {
        const struct pb_encode_block block = speed_block(s, s->planes, k);
        struct encode_reference want;
        good = encode_reference_make(&batch->device.format, &block, &want) &&
               (s->with == PB_ENCODE_RAW || add_host(&batch->device.format, &want, host));
        for (uint32_t i = k; i < s->blocks && good; i += KINDS) {
            good = check_block(batch, i, &want, s->name);
            host->searched += want.has_pairs;
        }
        encode_reference_free(&want);
    }
    return good;
}

static bool measure(const struct speed *s)
{
    struct pb_encode_format format = {
        .block_px = SPEED_SIDE, .n_bands = s->bands, .predictor = s->predictor, .with = s->with};
    struct pb_encode_block *blocks = calloc(s->blocks, sizeof *blocks);
    struct batch batch;
    uint64_t bytes = 0, packed = 0;
    if (blocks == NULL)
        abort();
    for (uint32_t b = 0; b < s->bands; b++)
        format.plane[b] = (uint16_t)b;
    if (!encode_reference_quantizer(s->type, s->nodata, false, &format.quantizer))
        abort();
    float *planes = on_device(s->planes, sizeof(float) * KINDS * s->bands * SPEED_PX);
    for (uint32_t i = 0; i < s->blocks; i++)
        blocks[i] = speed_block(s, planes, i);
    batch_create(&format, blocks, s->blocks, &batch);
    double ms = milliseconds(&batch, 7);
    batch_take(&batch);
    struct host_speed host;
    const bool good = check_speed_blocks(s, &batch, &host);
    uint32_t encoded = 0;
    for (uint32_t i = 0; i < s->blocks; i++) {
        encoded += batch.encoded[i].state == PB_ENCODED;
        packed += batch.encoded[i].bytes;
    }
    bytes = batch.needs.raw_bytes * s->blocks;
    (void)printf("%-28s %4u blocks, %4u on the device, %4u by pairs: %7.2f ms, %6.1f GB/s, "
                 "ratio %.3f; a core: %.2f GB/s\n",
                 s->name, s->blocks, encoded, host.searched, ms, (double)bytes / ms / 1e6,
                 packed > 0 ? (double)batch.needs.raw_bytes * encoded / (double)packed : 0,
                 host.seconds > 0 ? host.bytes / host.seconds / 1e9 : 0);
    batch_destroy(&batch);
    MUST(cudaFree(planes));
    free(blocks);
    return good;
}

/* The bands of a scene that no clouds cover: hills, and noise of a few counts. */
static void fill_bands(float *planes, uint32_t n)
{
    uint64_t state = 88172645463325252u;
    for (uint32_t p = 0; p < n; p++)
        for (int32_t y = 0; y < SPEED_SIDE; y++)
            for (int32_t x = 0; x < SPEED_SIDE; x++) {
                const float u = (float)(x + 37 * (int)p) * 0.011f, v = (float)y * 0.017f;
                const float hills = 1500 + 600 * sinf(u) * cosf(v) + 150 * sinf(5 * u + 3 * v);
                float noise = 0;
                for (int k = 0; k < 4; k++)
                    noise += (float)(encode_random(&state) % 25);
                planes[(size_t)p * SPEED_PX + (size_t)y * SPEED_SIDE + (size_t)x] =
                    floorf(hills + noise);
            }
}

static void ratios(const float *bands, uint32_t n, float *out)
{
    for (uint32_t p = 0; p < n; p++)
        for (size_t i = 0; i < SPEED_PX; i++) {
            const float a = bands[(size_t)((2 * p) % n) * SPEED_PX + i];
            const float b = bands[(size_t)((2 * p + 1) % n) * SPEED_PX + i];
            out[(size_t)p * SPEED_PX + i] = a + b > 0 ? (b - a) / (b + a) : NAN;
        }
}

/* Planes of the file, over and over. */
static bool read_bands(const char *path, float *planes, uint32_t n)
{
    static uint16_t plane[SPEED_PX];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    for (uint32_t p = 0; p < n; p++) {
        if (fread(plane, sizeof plane, 1, file) != 1) {
            rewind(file);
            if (p == 0 || fread(plane, sizeof plane, 1, file) != 1)
                break;
        }
        for (size_t i = 0; i < SPEED_PX; i++)
            planes[(size_t)p * SPEED_PX + i] = plane[i];
    }
    (void)fclose(file);
    return true;
}

static bool measure_all(const char *path)
{
    enum { PLANES = 4 * KINDS };
    float *bands = malloc(sizeof(float) * PLANES * SPEED_PX);
    float *ratio = malloc(sizeof(float) * KINDS * SPEED_PX);
    bool good = bands != NULL && ratio != NULL;
    if (!good)
        abort();
    fill_bands(bands, PLANES);
    ratios(bands, KINDS, ratio);
    const struct speed speeds[] = {
        {"NDVI, float32", PB_F32, 1, SPEED_BLOCKS, 3, PB_ENCODE_RUNS, NAN, ratio},
        {"NDVI, float32", PB_F32, 1, 100, 3, PB_ENCODE_RUNS, NAN, ratio},
        {"4 bands, uint16", PB_U16, 4, SPEED_BLOCKS, 2, PB_ENCODE_INTEGERS, 0, bands},
        {"4 bands, uint16, all", PB_U16, 4, SPEED_BLOCKS, 2, PB_ENCODE_RUNS, 0, bands},
        {"4 bands, uint16, rows alone", PB_U16, 4, SPEED_BLOCKS, 2, PB_ENCODE_RAW, 0, bands},
        {"4 bands, uint16, pairs", PB_U16, 4, SPEED_BLOCKS, 2, PB_ENCODE_PAIRS, 0, bands},
        {"4 bands, uint16, pairs", PB_U16, 4, 25, 2, PB_ENCODE_PAIRS, 0, bands},
        {"band, uint16, pairs", PB_U16, 1, SPEED_BLOCKS, 2, PB_ENCODE_PAIRS, 0, bands},
        {"band, uint16", PB_U16, 1, SPEED_BLOCKS, 2, PB_ENCODE_INTEGERS, 0, bands},
        {"4 indices, float32", PB_F32, 4, 250, 3, PB_ENCODE_RUNS, NAN, bands},
    };
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        good = measure(&speeds[i]) && good;
    if (path != NULL) {
        if (!read_bands(path, bands, PLANES)) {
            (void)fprintf(stderr, "%s: cannot be read\n", path);
            exit(1);
        }
        ratios(bands, KINDS, ratio);
        const struct speed real[] = {
            {"real NDVI, float32", PB_F32, 1, SPEED_BLOCKS, 3, PB_ENCODE_RUNS, NAN, ratio},
            {"real band, uint16", PB_U16, 1, SPEED_BLOCKS, 2, PB_ENCODE_INTEGERS, 0, bands},
            {"real bands, uint16 x 4", PB_U16, 4, SPEED_BLOCKS, 2, PB_ENCODE_INTEGERS, 0, bands},
            {"real band, pairs", PB_U16, 1, SPEED_BLOCKS, 2, PB_ENCODE_PAIRS, 0, bands},
            {"real bands x 4, pairs", PB_U16, 4, SPEED_BLOCKS, 2, PB_ENCODE_PAIRS, 0, bands},
        };
        for (size_t i = 0; i < sizeof real / sizeof *real; i++)
            good = measure(&real[i]) && good;
    }
    free(bands);
    free(ratio);
    return good;
}

int main(int argc, char **argv)
{
    bool quick = false, good = true;
    const char *path = NULL;
    int n = 0;
    for (int i = 1; i < argc; i++) {
        quick = quick || strcmp(argv[i], "--quick") == 0;
        path = argv[i][0] != '-' ? argv[i] : path;
    }
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        (void)fprintf(stderr, "skipped: no GPU\n");
        return 77;
    }
    for (size_t i = 0; i < ENCODE_CASES; i++)
        good = check_case(&encode_cases[i]) && good;
    for (size_t i = 0; i < PAINT_CASES; i++)
        good = check_painted(&paint_cases[i]) && good;
    good = check_halving(false, (struct pb_pixel_join){.planes = 0}) && good;
    good = check_halving(true, (struct pb_pixel_join){.planes = 0}) && good;
    good = check_halving(false, (struct pb_pixel_join){.planes = 3}) && good;
    good = check_halving(false, (struct pb_pixel_join){3, true, -5}) && good;
    if (good)
        (void)printf("%d batches as the CPU makes them\n", ENCODE_CASES + PAINT_CASES);
    if (!quick)
        good = measure_all(path) && good;
    return good ? 0 : 1;
}
#endif
