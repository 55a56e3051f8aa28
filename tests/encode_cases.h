/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_ENCODE_CASES_H
#define PB_ENCODE_CASES_H
/* Batches of blocks for the encoder of a device, on the emulator (unit/test_encode_device.c) and on
 * a GPU (gpu/check_encode.c): formats, and values that are hard for quantizing, for the search for
 * runs and for codes. */
#include "tests/encode_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum encode_values {
    VALUES_SMOOTH,  /* integers, as a band has them */
    VALUES_RATIO,   /* ratio of two bands: -1 .. 1 */
    VALUES_HALVES,  /* few values above noise, whose codes have more than eight bits */
    VALUES_NOISE,   /* uint8, all equally often: is stored */
    VALUES_RUNS,    /* runs of lengths up to 9, of few values */
    VALUES_LONG,    /* runs of lengths up to 1200 */
    VALUES_RARE,    /* runs up to 5000 among noise */
    VALUES_SKEWED,  /* counts like Fibonacci's numbers: codes longer than the limit */
    VALUES_EXTREME, /* beyond every type, infinite, half-way between integers, nodata, invalid */
    VALUES_HOLES,   /* SMOOTH, invalid along a slanted edge */
    VALUES_LINES,   /* noise that repeats in each fourth line: strings */
    VALUES_ROWS,    /* RATIO, two of five rows invalid, and the last */
    VALUES_UNSEEN,  /* RATIO in each eighth row, any bits in the others */
    VALUES_STRINGS, /* uint16: short strings in the middle half, all else in the other quarters */
    VALUES_ONE
};

struct encode_case {
    const char *name;
    enum pb_type type;
    int32_t side, w, h; /* w, h: of the partial block */
    uint32_t bands;
    int32_t predictor;
    double nodata, scale, offset;
    bool masked, mask;
    enum pb_encode_with with;
    enum encode_values values;
};

static const struct encode_case encode_cases[] = {
    {"f32", PB_F32, 256, 201, 77, 1, 3, -9999, 0, 0, false, false, PB_ENCODE_RUNS, VALUES_RATIO},
    {"f32 x 3, NaN", PB_F32, 64, 33, 64, 3, 3, NAN, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_EXTREME},
    {"f32 x 20", PB_F32, 64, 1, 1, 20, 3, 0, 0, 0, false, false, PB_ENCODE_RUNS, VALUES_HOLES},
    {"planes", PB_F32, 256, 256, 180, 2, 3, NAN, 0, 0, false, false, PB_ENCODE_RUNS, VALUES_RATIO},
    {"planes x 3", PB_F32, 128, 128, 128, 3, 3, -9999, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_ROWS},
    {"planes x 9, odd", PB_F32, 72, 72, 57, 9, 3, NAN, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_RATIO},
    {"planes x 64", PB_F32, 64, 64, 40, 64, 3, 0, 0, 0, false, false, PB_ENCODE_RUNS, VALUES_ROWS},
    {"planes, edges", PB_F32, 256, 250, 256, 2, 3, NAN, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_ROWS},
    {"planes too large", PB_F32, 128, 128, 128, 4, 3, NAN, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_UNSEEN},
    {"f32, predictor 2", PB_F32, 64, 64, 9, 2, 2, 0, 0, 0, true, false, PB_ENCODE_RUNS,
     VALUES_RATIO},
    {"f32 x 64, none", PB_F32, 16, 5, 9, 64, 1, 1, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_EXTREME},
    {"f64", PB_F64, 64, 7, 64, 1, 3, -1, 0, 0, false, false, PB_ENCODE_RUNS, VALUES_EXTREME},
    {"f64 x 64", PB_F64, 24, 23, 24, 64, 3, NAN, 0, 0, false, false, PB_ENCODE_RUNS, VALUES_RATIO},
    {"f64, predictor 2", PB_F64, 40, 23, 24, 3, 2, 5, 0.5, 1, false, false, PB_ENCODE_RUNS,
     VALUES_EXTREME},
    {"u8", PB_U8, 264, 255, 200, 1, 2, 0, 0, 0, false, false, PB_ENCODE_INTEGERS, VALUES_SMOOTH},
    {"u8 x 3", PB_U8, 128, 100, 128, 3, 2, 255, 0, 0, true, false, PB_ENCODE_INTEGERS,
     VALUES_EXTREME},
    {"u8 x 5, scaled", PB_U8, 72, 71, 3, 5, 2, 7, 0.3, -2, false, false, PB_ENCODE_INTEGERS,
     VALUES_SMOOTH},
    {"i16", PB_I16, 256, 256, 255, 1, 2, -32768, 0, 0, false, false, PB_ENCODE_INTEGERS,
     VALUES_HOLES},
    {"i16 x 7", PB_I16, 64, 60, 61, 7, 2, 0, 0.0001, 0, false, false, PB_ENCODE_INTEGERS,
     VALUES_RATIO},
    {"i16, extreme", PB_I16, 64, 50, 50, 1, 1, 32767, 0, 0, false, false, PB_ENCODE_RUNS,
     VALUES_EXTREME},
    {"u16 x 4", PB_U16, 128, 127, 126, 4, 2, 0, 0, 0, false, false, PB_ENCODE_INTEGERS,
     VALUES_SMOOTH},
    {"u16 x 2, none", PB_U16, 128, 1, 128, 2, 1, 65535, 0, 0, false, false, PB_ENCODE_INTEGERS,
     VALUES_EXTREME},
    {"i32", PB_I32, 64, 31, 31, 2, 2, -2147483648.0, 0, 0, false, false, PB_ENCODE_INTEGERS,
     VALUES_EXTREME},
    {"u32", PB_U32, 64, 31, 31, 3, 2, 4294967295.0, 0.001, 0, false, false, PB_ENCODE_INTEGERS,
     VALUES_EXTREME},
    {"raw for the host", PB_U16, 32, 31, 31, 3, 2, 0, 0, 0, false, false, PB_ENCODE_RAW,
     VALUES_SMOOTH},
    {"mask", PB_U8, 256, 255, 254, 2, 1, 0, 0, 0, false, true, PB_ENCODE_INTEGERS, VALUES_HOLES},
    {"mask, odd", PB_U8, 40, 39, 7, 1, 1, 0, 0, 0, false, true, PB_ENCODE_INTEGERS, VALUES_EXTREME},
    {"strings", PB_U8, 256, 200, 256, 1, 1, 0, 0, 0, true, false, PB_ENCODE_INTEGERS, VALUES_LINES},
    {"strings in windows", PB_I32, 728, 728, 300, 1, 1, 0, 0, 0, true, false, PB_ENCODE_INTEGERS,
     VALUES_LINES},
    {"pairs", PB_U16, 256, 256, 255, 1, 1, 0, 0, 0, true, false, PB_ENCODE_PAIRS, VALUES_STRINGS},
    {"pairs, odd", PB_U16, 328, 1, 328, 1, 1, 0, 0, 0, true, false, PB_ENCODE_PAIRS,
     VALUES_STRINGS},
    {"pairs, a chunk", PB_U16, 176, 176, 176, 1, 1, 0, 0, 0, true, false, PB_ENCODE_PAIRS,
     VALUES_STRINGS},
    {"pairs, small", PB_U16, 72, 71, 72, 1, 1, 0, 0, 0, true, false, PB_ENCODE_PAIRS,
     VALUES_STRINGS},
    {"pairs of 4 bytes", PB_U32, 192, 192, 100, 1, 1, 0, 0, 0, true, false, PB_ENCODE_PAIRS,
     VALUES_STRINGS},
    {"pairs, predicted", PB_I16, 256, 1, 1, 1, 2, -32768, 0, 0, false, false, PB_ENCODE_PAIRS,
     VALUES_SMOOTH},
    {"pairs x 4", PB_U16, 128, 127, 128, 4, 2, 0, 0, 0, false, false, PB_ENCODE_PAIRS,
     VALUES_HOLES},
    {"pairs x 3, none", PB_U16, 136, 136, 1, 3, 1, 0, 0, 0, false, false, PB_ENCODE_PAIRS,
     VALUES_EXTREME},
    {"pairs of lines", PB_U16, 256, 256, 200, 1, 1, 0, 0, 0, true, false, PB_ENCODE_PAIRS,
     VALUES_LINES},
    {"noise", PB_U8, 256, 255, 255, 1, 1, 0, 0, 0, true, false, PB_ENCODE_INTEGERS, VALUES_NOISE},
    {"noise, small", PB_U8, 8, 8, 3, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_NOISE},
    {"runs", PB_U8, 256, 256, 99, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_RUNS},
    {"long runs", PB_U8, 264, 264, 263, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_LONG},
    {"rare runs", PB_U8, 264, 264, 1, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_RARE},
    {"skewed", PB_U8, 256, 256, 256, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_SKEWED},
    {"halves", PB_U8, 256, 256, 255, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_HALVES},
    {"one value", PB_U8, 384, 384, 383, 1, 1, 0, 0, 0, true, false, PB_ENCODE_RUNS, VALUES_ONE},
};
enum { ENCODE_CASES = sizeof encode_cases / sizeof *encode_cases };

static inline uint64_t encode_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 16;
}

static inline float encode_extreme(uint64_t *state, double nodata)
{
    static const float hard[] = {0.0f,   -0.0f,  0.5f,          1.5f,          -0.5f,
                                 254.5f, 255.5f, 32766.5f,      65535.4f,      -32768.5f,
                                 3e9f,   -3e9f,  4294967295.0f, 2147483648.0f, 1e-40f,
                                 3e38f,  -3e38f, 16777217.0f,   8388609.0f,    4194303.5f};
    const uint64_t kind = encode_random(state) % 8;
    if (kind < 4)
        return hard[encode_random(state) % (sizeof hard / sizeof *hard)];
    if (kind == 4)
        return encode_random(state) % 2 ? INFINITY : -INFINITY;
    if (kind == 5)
        return NAN;
    if (kind == 6)
        return (float)nodata + (float)((int)(encode_random(state) % 5) - 2) * 0.25f;
    return (float)((int)(encode_random(state) % 200000) - 100000) * 0.5f;
}

/* Length of the next run, for values in runs. */
static inline size_t encode_run(uint64_t *state, enum encode_values values)
{
    switch (values) {
    case VALUES_RUNS:
        return 1 + encode_random(state) % 9;
    case VALUES_LONG:
        return 1 + encode_random(state) % 1200;
    case VALUES_RARE:
        return encode_random(state) % 60 ? 1 : 1 + encode_random(state) % 5000;
    default:
        return 1;
    }
}

static inline float encode_run_value(uint64_t *state, enum encode_values values)
{
    uint64_t v = encode_random(state);
    switch (values) {
    case VALUES_RUNS:
        return (float)(v % 5);
    case VALUES_SKEWED: /* value k half as often as k - 1 */
        return (float)(v == 0 ? 0 : __builtin_ctzll(v));
    case VALUES_ONE:
        return 77;
    default:
        return (float)(v % 256);
    }
}

static inline float encode_pixel(const struct encode_case *c, uint64_t *state, int32_t x, int32_t y)
{
    const float smooth = floorf(1200 + 400 * sinf((float)x * 0.01f) * cosf((float)y * 0.013f));
    const float red = smooth + (float)(encode_random(state) % 40);
    const float noise = (float)(encode_random(state) % 60);
    switch (c->values) {
    case VALUES_RATIO:
        return (noise + 700 - red) / (noise + 3000 + red);
    case VALUES_ROWS:
        return y % 5 < 2 || y + 1 == c->side ? NAN : (noise + 700 - red) / (noise + 3000 + red);
    case VALUES_UNSEEN:
        return y % 8 == 0 ? (noise + 700 - red) / (noise + 3000 + red)
                          : (float)encode_random(state) *
                                powf(2.0f, (float)(encode_random(state) % 200) - 130);
    case VALUES_HALVES:
        return (float)(encode_random(state) % (y < c->side / 2 ? 2 : 256));
    case VALUES_EXTREME:
        return encode_extreme(state, c->nodata);
    case VALUES_HOLES:
        return x + 2 * y > c->side ? red : NAN;
    default:
        return c->type == PB_U8 ? floorf(red / 16) : red;
    }
}

/* Pairs of bytes among which the encoder of pairs finds strings: parts of noise, of few and of one
 * value, of copies from as far as a distance reaches and farther, of periods and of matches that
 * overlap themselves. In the middle, where the estimate looks, are short strings. */
static inline void encode_fill_strings(uint16_t *v, size_t n, uint64_t *state)
{
    static const size_t far[] = {1, 2, 3, 5, 257, 16383, 16384, 16385, 30000};
    size_t left = 0, back = 1;
    uint64_t kind = 0;
    for (size_t i = 0; i < n; i++, left--) {
        const uint64_t r = encode_random(state);
        if (left == 0) {
            left = 1 + encode_random(state) % (r % 3 == 0 ? 3000 : 300);
            kind = encode_random(state) % 8;
            back = far[encode_random(state) % (sizeof far / sizeof *far)];
        }
        if (i > n / 4 && i < n - n / 4)
            v[i] = (uint16_t)((r % 32 + (r >> 8) % 32 + (r >> 16) % 32) - 47);
        else if (kind == 0)
            v[i] = (uint16_t)r;
        else if (kind == 1)
            v[i] = (uint16_t)(0x0101 * (left / 40 % 3));
        else if (kind == 2)
            v[i] = (uint16_t)(r % 3);
        else if (kind == 3)
            v[i] = (uint16_t)(r % 2 != 0 ? 0x0101 : 0x0100);
        else
            v[i] = i < back || (kind == 7 && r % 5 == 0) ? (uint16_t)r : v[i - back];
    }
}

/* A plane of side x side values, rows row_px apart. */
static inline void encode_fill(const struct encode_case *c, uint64_t seed, float *plane,
                               size_t row_px)
{
    uint64_t state = UINT64_C(88172645463325252) + seed * 7919;
    const bool in_runs = c->values >= VALUES_NOISE && c->values != VALUES_EXTREME &&
                         c->values != VALUES_HOLES && c->values != VALUES_LINES &&
                         c->values != VALUES_ROWS && c->values != VALUES_UNSEEN &&
                         c->values != VALUES_STRINGS;
    size_t left = 0;
    float value = 0;
    if (c->values == VALUES_STRINGS) {
        const size_t side = (size_t)c->side;
        uint16_t *v = malloc(side * side * sizeof *v);
        if (v == NULL)
            abort();
        encode_fill_strings(v, side * side, &state);
        for (size_t i = 0; i < side * side; i++)
            plane[i / side * row_px + i % side] = (float)v[i] * (c->type == PB_U32 ? 256 : 1);
        free(v);
        return;
    }
    for (int32_t y = 0; y < c->side; y++)
        for (int32_t x = 0; x < c->side; x++) {
            float *p = plane + (size_t)y * row_px + (size_t)x;
            if (c->values == VALUES_LINES && y >= 4) {
                *p = p[-4 * (ptrdiff_t)row_px];
            } else if (in_runs || c->values == VALUES_LINES) {
                if (left == 0) {
                    left = encode_run(&state, c->values);
                    value = encode_run_value(&state, c->values);
                }
                left--;
                *p = value;
            } else {
                *p = encode_pixel(c, &state, x, y);
            }
        }
}

static inline struct pb_encode_format encode_case_format(const struct encode_case *c)
{
    struct pb_encode_format format;
    memset(&format, 0, sizeof format);
    format.block_px = c->side;
    format.n_bands = c->bands;
    format.predictor = c->predictor;
    format.scale = c->scale;
    format.offset = c->offset;
    format.mask = c->mask;
    format.with = c->with;
    for (uint32_t b = 0; b < c->bands; b++) /* in another order than in memory */
        format.plane[b] = (uint16_t)(c->bands - 1 - b);
    if (!encode_reference_quantizer(c->type, c->nodata, c->masked, &format.quantizer))
        abort();
    return format;
}

enum { ENCODE_CASE_BLOCKS = 4 };

/* Rows of the planes are a little apart, and so are planes. */
static inline size_t encode_case_row_px(const struct encode_case *c)
{
    return (size_t)c->side + 3;
}
static inline size_t encode_case_plane_px(const struct encode_case *c)
{
    return (size_t)c->side * encode_case_row_px(c) + 5;
}
/* Compares two sets of planes. */
static inline size_t encode_case_floats(const struct encode_case *c)
{
    return 2 * c->bands * encode_case_plane_px(c);
}

static inline void encode_case_fill(const struct encode_case *c, float *planes)
{
    for (uint32_t i = 0; i < 2 * c->bands; i++)
        encode_fill(c, i + 1, planes + i * encode_case_plane_px(c), encode_case_row_px(c));
}

/* A whole block, a part of one, nothing, and another whole one. planes: as they were filled, where
 * the device finds them. */
static inline void encode_case_blocks(const struct encode_case *c, const float *planes,
                                      struct pb_encode_block *blocks)
{
    for (int i = 0; i < ENCODE_CASE_BLOCKS; i++) {
        const bool part = i == 1;
        struct pb_encode_block *b = &blocks[i];
        memset(b, 0, sizeof *b);
        b->data = i == 2 ? NULL : planes + (i == 3 ? c->bands * encode_case_plane_px(c) : 0);
        b->plane_px = encode_case_plane_px(c);
        b->row_px = (uint32_t)encode_case_row_px(c);
        b->w = part ? c->w : c->side;
        b->h = part ? c->h : c->side;
    }
}
#endif
