/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The usual numbers of bands are constants to the compiler, so that the sums of a pixel stay in
 * registers and gathering becomes shuffles. Sums of a single band, each of which needs the one
 * before it, are computed in vectors of 16 bytes: log2(lanes) shifted additions, then the sum of
 * all before is added to every lane. */
#include "pipeline/codec/unpredict.h"

#include "pipeline/codec/predictor.h"

#include <string.h>

/* Running sums of whole vectors; returns the count of their samples, *left is the last sum. */
#define SUM_VECTORS(bits, lanes, ...)                                                              \
    typedef uint##bits##_t v##bits __attribute__((vector_size(16)));                               \
    static size_t sum_vectors##bits(uint##bits##_t *a, size_t n, uint##bits##_t *left)             \
    {                                                                                              \
        const v##bits zero = {0};                                                                  \
        size_t i = 0;                                                                              \
        for (v##bits before = zero, v; i + (lanes) <= n; i += (lanes)) {                           \
            memcpy(&v, a + i, sizeof v);                                                           \
            __VA_ARGS__                                                                            \
            v += before;                                                                           \
            memcpy(a + i, &v, sizeof v);                                                           \
            *left = v[(lanes)-1];                                                                  \
            before = zero + *left;                                                                 \
        }                                                                                          \
        return i;                                                                                  \
    }
/* Adds v shifted up by some lanes. */
#define UP(...) v += __builtin_shufflevector(zero, v, __VA_ARGS__);
SUM_VECTORS(8, 16,
            UP(0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
                UP(0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
                    UP(0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)
                        UP(0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23))
SUM_VECTORS(16, 8,
            UP(0, 8, 9, 10, 11, 12, 13, 14) UP(0, 0, 8, 9, 10, 11, 12, 13)
                UP(0, 0, 0, 0, 8, 9, 10, 11))
SUM_VECTORS(32, 4, UP(0, 4, 5, 6) UP(0, 0, 4, 5))
SUM_VECTORS(64, 2, UP(0, 2))

#define SUM_LOOP(bits, step)                                                                       \
    for (size_t i = (step); i < n; i++)                                                            \
    a[i] = (uint##bits##_t)(a[i] + a[i - (step)])

#define SUM(bits)                                                                                  \
    static void sum##bits(uint##bits##_t *a, size_t n, size_t step)                                \
    {                                                                                              \
        uint##bits##_t left = 0;                                                                   \
        if (step == 1) {                                                                           \
            for (size_t i = sum_vectors##bits(a, n, &left); i < n; i++)                            \
                a[i] = left = (uint##bits##_t)(left + a[i]);                                       \
        } else if (step == 3) {                                                                    \
            SUM_LOOP(bits, 3);                                                                     \
        } else if (step == 4) {                                                                    \
            SUM_LOOP(bits, 4);                                                                     \
        } else {                                                                                   \
            SUM_LOOP(bits, step);                                                                  \
        }                                                                                          \
    }
SUM(8)
SUM(16)
SUM(32)
SUM(64)

static void swap_samples(void *row, size_t bytes, size_t n)
{
    if (bytes == 2) {
        for (uint16_t *p = row, *end = p + n; p < end; p++)
            *p = __builtin_bswap16(*p);
    } else if (bytes == 4) {
        for (uint32_t *p = row, *end = p + n; p < end; p++)
            *p = __builtin_bswap32(*p);
    } else if (bytes == 8) {
        for (uint64_t *p = row, *end = p + n; p < end; p++)
            *p = __builtin_bswap64(*p);
    }
}

/* Joins planes of bytes, most significant first, to floats. */
static void join_planes(const uint8_t *planes, size_t bytes, size_t n, void *out)
{
    const uint8_t *p = planes;
    if (bytes == 4) {
        uint32_t *to = out;
        for (size_t i = 0; i < n; i++)
            to[i] = (uint32_t)p[i] << 24 | (uint32_t)p[n + i] << 16 | (uint32_t)p[2 * n + i] << 8 |
                    p[3 * n + i];
        return;
    }
    uint64_t *to = out;
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        for (size_t k = 0; k < 8; k++)
            value = value << 8 | p[k * n + i];
        to[i] = value;
    }
}

void pb_unpredict_row(int predictor, size_t sample_bytes, bool swap, void *row, size_t n_px,
                      size_t n_bands, void *temp)
{
    size_t n = n_px * n_bands;
    if (predictor == PB_PREDICTOR_FLOAT) {
        memcpy(temp, row, n * sample_bytes);
        sum8(temp, n * sample_bytes, n_bands);
        join_planes(temp, sample_bytes, n, row);
        return;
    }
    if (swap)
        swap_samples(row, sample_bytes, n);
    if (predictor != PB_PREDICTOR_HORIZONTAL)
        return;
    if (sample_bytes == 1)
        sum8(row, n, n_bands);
    else if (sample_bytes == 2)
        sum16(row, n, n_bands);
    else if (sample_bytes == 4)
        sum32(row, n, n_bands);
    else
        sum64(row, n, n_bands);
}

#define GATHER(bits)                                                                               \
    static void gather##bits(const uint##bits##_t *restrict in, size_t step, size_t n,             \
                             uint##bits##_t *restrict out)                                         \
    {                                                                                              \
        if (step == 2) {                                                                           \
            for (size_t i = 0; i < n; i++)                                                         \
                out[i] = in[2 * i];                                                                \
        } else if (step == 3) {                                                                    \
            for (size_t i = 0; i < n; i++)                                                         \
                out[i] = in[3 * i];                                                                \
        } else if (step == 4) {                                                                    \
            for (size_t i = 0; i < n; i++)                                                         \
                out[i] = in[4 * i];                                                                \
        } else {                                                                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                out[i] = in[step * i];                                                             \
        }                                                                                          \
    }
GATHER(8)
GATHER(16)
GATHER(32)
GATHER(64)

void pb_gather_samples(const void *in, size_t sample_bytes, size_t step, size_t n, void *out)
{
    if (step == 1)
        memcpy(out, in, n * sample_bytes);
    else if (sample_bytes == 1)
        gather8(in, step, n, out);
    else if (sample_bytes == 2)
        gather16(in, step, n, out);
    else if (sample_bytes == 4)
        gather32(in, step, n, out);
    else
        gather64(in, step, n, out);
}

void pb_unpredict_band(int predictor, size_t sample_bytes, bool swap, const void *in, size_t step,
                       size_t n, void *out)
{
    pb_gather_samples(in, sample_bytes, step, n, out);
    pb_unpredict_row(predictor, sample_bytes, swap, out, n, 1, NULL);
}
