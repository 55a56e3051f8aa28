/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* Costs of the steps of the COG writer on one core, on a field like the NDVI of a noisy 12-bit
 * scene: bench_cog [MEGAPIXELS]. MB/s count float32 input against processor time; the ratio is
 * packed to raw bytes. */
#include "pipeline/cog/block_encoder.h"
#include "pipeline/cog/halve.h"
#include "pipeline/codec/predictor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 512, PX = SIDE * SIDE };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t state = 1;

/* About normal, sigma 1. */
static double noise(void)
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        state = state * 1664525u + 1013904223u;
        sum += (double)(state >> 8) / 16777216.0;
    }
    return (sum - 2) * 1.732;
}

static void make_ndvi(float *to, size_t block)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            double u = (double)(block * SIDE) + x, v = y;
            double cover = 0.5 + 0.35 * sin(u / 91) * cos(v / 57) + 0.1 * sin(u / 13 + v / 17);
            float red = (float)lrint(2200 - 1700 * cover + 40 * noise());
            float nir = (float)lrint(2400 + 1800 * cover + 60 * noise());
            to[y * SIDE + x] = (nir - red) / (nir + red);
        }
}

static void report(const char *what, size_t blocks, double seconds, double ratio)
{
    double mb = (double)blocks * PX * sizeof(float) / 1e6;
    (void)printf("%-34s %8.0f MB/s", what, mb / seconds);
    if (ratio > 0)
        (void)printf("   ratio %.4f", ratio);
    (void)printf("\n");
}

static void bench_steps(const float *data, size_t blocks)
{
    static float out[PX];
    static const char *const names[] = {"quantize uint8",  "quantize int16",  "quantize uint16",
                                        "quantize int32",  "quantize uint32", "quantize float32",
                                        "quantize float64"};
    static double wide[SIDE], predicted[SIDE];
    for (int type = 0; type < PB_TYPE_COUNT; type++) {
        struct pb_quantizer q;
        (void)pb_quantizer_init(&q, (enum pb_type)type, 0);
        double start = now();
        for (size_t row = 0; row < blocks * SIDE; row++)
            pb_quantize(&q, data + row * SIDE, SIDE, wide, 1);
        report(names[type], blocks, now() - start, 0);
    }
    for (int predictor = 1; predictor <= 3; predictor++) {
        char name[32];
        (void)snprintf(name, sizeof name, "predictor %d, float32", predictor);
        double start = now();
        for (size_t row = 0; row < blocks * SIDE; row++)
            pb_predict_row(predictor, PB_F32, data + row * SIDE, SIDE, 1, predicted);
        report(name, blocks, now() - start, 0);
    }
    double start = now();
    for (size_t b = 0; b < blocks; b++)
        pb_halve_average(data + b * PX, SIDE, SIDE, SIDE, out, SIDE);
    report("halve by average", blocks, now() - start, 0);
}

static void bench_encoder(const float *data, size_t blocks, const struct pb_codec *codec, int level,
                          int predictor, enum pb_type type)
{
    struct pb_block_format format = {.block_px = SIDE,
                                     .n_planes = 1,
                                     .n_bands = 1,
                                     .predictor = predictor,
                                     .codec = codec,
                                     .level = level};
    struct pb_block_encoder *encoder;
    (void)pb_quantizer_init(&format.quantizer, type, type == PB_F32 ? (double)NAN : 0);
    if (pb_block_encoder_create(&format, NULL, &encoder) != 0)
        return;
    size_t packed = 0;
    double start = now();
    for (size_t b = 0; b < blocks; b++) {
        const float *plane = data + b * PX;
        const struct pb_block_pixels px = {&plane, NULL, SIDE, SIDE, SIDE, SIDE};
        const void *block;
        size_t bytes;
        if (pb_block_encode(encoder, &px, NULL, &block, &bytes) == 0)
            packed += bytes;
    }
    char name[64];
    (void)snprintf(name, sizeof name, "%s %d, predictor %d, %s", codec->name, level, predictor,
                   type == PB_F32 ? "float32" : "int16");
    report(name, blocks, now() - start,
           (double)packed / ((double)blocks * PX * (double)pb_type_bytes(type)));
    pb_block_encoder_destroy(encoder);
}

int main(int argc, char **argv)
{
    size_t blocks = (size_t)(argc > 1 ? strtol(argv[1], NULL, 10) : 8) * 1000000 / PX + 1;
    float *data = malloc(blocks * PX * sizeof *data);
    float *scaled = malloc(blocks * PX * sizeof *scaled);
    if (data == NULL || scaled == NULL)
        return 1;
    for (size_t b = 0; b < blocks; b++)
        make_ndvi(data + b * PX, b);
    for (size_t i = 0; i < blocks * PX; i++)
        scaled[i] = data[i] * 10000;
    bench_steps(data, blocks);
    static const int deflate[] = {-1, -6, 1, 2, 4, 6, 9, 12}, zstd[] = {1, 3, 5, 9, 12};
    for (size_t i = 0; i < sizeof deflate / sizeof *deflate; i++)
        for (int predictor = 1; predictor <= 3; predictor += 2)
            bench_encoder(data, blocks, &pb_codec_deflate, deflate[i], predictor, PB_F32);
    for (size_t i = 0; i < sizeof zstd / sizeof *zstd; i++)
        bench_encoder(data, blocks, &pb_codec_zstd, zstd[i], 3, PB_F32);
    bench_encoder(data, blocks, &pb_codec_lzw, 0, 3, PB_F32);
    bench_encoder(data, blocks, &pb_codec_none, 0, 1, PB_F32);
    bench_encoder(scaled, blocks, &pb_codec_deflate, -6, 2, PB_I16);
    bench_encoder(scaled, blocks, &pb_codec_deflate, 1, 2, PB_I16);
    bench_encoder(scaled, blocks, &pb_codec_deflate, 6, 2, PB_I16);
    bench_encoder(scaled, blocks, &pb_codec_zstd, 9, 2, PB_I16);
    bench_encoder(scaled, blocks, &pb_codec_lzw, 0, 2, PB_I16);
    free(data);
    free(scaled);
    return 0;
}
