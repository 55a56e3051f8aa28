/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_TEST_FOCAL_REFERENCE_H
#define PB_TEST_FOCAL_REFERENCE_H
/* Any focal operation and any image, and what each pixel is by definition: one window at a time,
 * with sorting, float64 or float32 in the order that the operation promises. */
#include "kernels/focal/focal.h"
#include "kernels/focal/focal_window.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t seed = 20260821;

static uint32_t next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static int32_t between(int32_t low, int32_t high)
{
    return low + (int32_t)(next_random() % (uint32_t)(high - low + 1));
}

static float any_float(void)
{
    return (float)next_random() / 8388608.0f - 1.0f;
}

/* One of what the kind offers. */
static int32_t any_choice(enum pb_focal_kind kind, int32_t side)
{
    switch (kind) {
    case PB_FOCAL_RANK:
        return between(0, side * side - 1);
    case PB_FOCAL_MOMENTS:
    case PB_FOCAL_DIRECTIONAL:
        return between(PB_MOMENT_MEAN, PB_MOMENT_VARIATION);
    case PB_FOCAL_GRADIENT:
        return between(PB_GRADIENT_HORN_X, PB_GRADIENT_ZEVENBERGEN_XY);
    case PB_FOCAL_RELIEF:
        return between(PB_RELIEF_POSITION, PB_RELIEF_ROOT);
    case PB_FOCAL_ADAPTIVE:
        return between(PB_ADAPTIVE_BILATERAL, PB_ADAPTIVE_FROST);
    case PB_FOCAL_FLAT:
        return between(PB_FLAT_LEAST, PB_FLAT_GREATEST);
    default:
        return between(PB_EXTREME_LEAST, PB_EXTREME_RANGE);
    }
}

/* Rows of a footprint: all centred, or anywhere; some of them empty. */
static void any_footprint(struct pb_focal *s)
{
    bool centred = between(0, 1) == 0;
    for (int i = 0; i < 2 * s->radius + 1; i++) {
        int32_t half = between(-1, s->radius), first = between(0, 2 * s->radius);
        s->weight_x[i] = (float)(centred ? s->radius - half : first);
        s->weight_y[i] = (float)(centred ? s->radius + half : between(first - 1, 2 * s->radius));
    }
}

static struct pb_focal any_focal(enum pb_focal_kind kind, enum pb_edge edge, int32_t radius)
{
    struct pb_focal s = {
        .kind = kind, .edge = edge, .radius = radius, .choice = any_choice(kind, 2 * radius + 1)};
    for (int i = 0; i < 2 * radius + 1; i++) {
        s.weight_x[i] = any_float();
        s.weight_y[i] = any_float();
    }
    for (int i = 0; i < (2 * radius + 1) * (2 * radius + 1); i++) {
        s.weight[i] = kind == PB_FOCAL_ADAPTIVE ? fabsf(any_float()) : any_float();
    }
    if (kind == PB_FOCAL_ADAPTIVE && s.choice == PB_ADAPTIVE_FROST) {
        s.weight[2 * radius * (radius + 1)] = 0; /* how far away the middle is */
    }
    s.strength = 4 * fabsf(any_float());
    if (kind == PB_FOCAL_FLAT) {
        any_footprint(&s);
    }
    return s;
}

static float *any_image(int32_t w, int32_t h, int invalid_percent)
{
    float *px = malloc((size_t)w * (size_t)h * sizeof *px);
    for (int64_t i = 0; i < (int64_t)w * h; i++) {
        px[i] = between(0, 99) < invalid_percent ? NAN : any_float();
        if (between(0, 9) == 0) { /* one bit tells equal values apart */
            px[i] = copysignf(0.0f, px[i]);
        }
    }
    return px;
}

/* -- the reference ----------------------------------------------------------------------------- */

/* Walks one step at a time and turns round at the ends: another way than that of the code. */
static int32_t walk(int32_t i, int32_t n, enum pb_edge edge)
{
    int32_t at = i < 0 ? 0 : n - 1;
    if (i >= 0 && i < n) {
        return i;
    }
    if (edge == PB_EDGE_NODATA) {
        return -1;
    }
    if (edge == PB_EDGE_CLAMP || n == 1) {
        return at;
    }
    int32_t left = i < 0 ? -i : i - (n - 1), step = i < 0 ? 1 : -1;
    while (left-- > 0) {
        if (at + step < 0 || at + step >= n) {
            step = -step;
        }
        at += step;
    }
    return at;
}

struct picture {
    const float *px;
    int32_t w, h;
};

static float pixel(const struct picture *p, enum pb_edge edge, int32_t x, int32_t y)
{
    if (edge == PB_EDGE_EXTRAPOLATE && (y < 0 || y >= p->h)) {
        return 2 * pixel(p, edge, x, walk(y, p->h, PB_EDGE_CLAMP)) -
               pixel(p, edge, x, walk(y, p->h, PB_EDGE_REFLECT));
    }
    if (edge == PB_EDGE_EXTRAPOLATE && (x < 0 || x >= p->w)) {
        return 2 * pixel(p, edge, walk(x, p->w, PB_EDGE_CLAMP), y) -
               pixel(p, edge, walk(x, p->w, PB_EDGE_REFLECT), y);
    }
    int32_t column = walk(x, p->w, edge), row = walk(y, p->h, edge);
    return column < 0 || row < 0 ? NAN : p->px[(int64_t)row * p->w + column];
}

static float separable(const struct picture *p, const struct pb_focal *s, const float *along_x,
                       const float *along_y, int32_t x, int32_t y)
{
    volatile float sum = 0, row, term; /* volatile: every step is rounded to float */
    for (int i = 0; i <= 2 * s->radius; i++) {
        for (int j = 0; j <= 2 * s->radius; j++) {
            term = along_x[j] * pixel(p, s->edge, x + j - s->radius, y + i - s->radius);
            row = j == 0 ? term : row + term;
        }
        term = along_y[i] * row;
        sum = i == 0 ? term : sum + term;
    }
    return sum;
}

static float full(const struct picture *p, const struct pb_focal *s, int32_t x, int32_t y)
{
    volatile float sum = 0, term;
    int side = 2 * s->radius + 1;
    for (int i = 0; i < side * side; i++) {
        term = s->weight[i] * pixel(p, s->edge, x + i % side - s->radius, y + i / side - s->radius);
        sum = i == 0 ? term : sum + term;
    }
    return sum;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The pixels around x, y, row by row; whether all are valid. */
static bool window_at(const struct picture *p, const struct pb_focal *s, int32_t x, int32_t y,
                      float window[PB_FOCAL_SIDE_MAX * PB_FOCAL_SIDE_MAX])
{
    int side = 2 * s->radius + 1;
    bool valid = true;
    for (int i = 0; i < side * side; i++) {
        window[i] = pixel(p, s->edge, x + i % side - s->radius, y + i / side - s->radius);
        valid = valid && !isnan(window[i]);
    }
    return valid;
}

/* Sorts the values. */
static float extreme(const struct pb_focal *s, float *value, int n)
{
    qsort(value, (size_t)n, sizeof *value, by_value);
    return s->choice == PB_EXTREME_LEAST      ? value[0]
           : s->choice == PB_EXTREME_GREATEST ? value[n - 1]
                                              : value[n - 1] - value[0];
}

static float rank(const struct pb_focal *s, float *value, int n)
{
    qsort(value, (size_t)n, sizeof *value, by_value);
    return value[s->choice];
}

static bool is_window_kind(enum pb_focal_kind kind)
{
    switch (kind) {
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name) case PB_FOCAL_##NAME:
#include "kernels/focal/focal.def"
        return true;
    default:
        return false;
    }
}

/* Returns true if invalid neighbours are replaced by the pixel in the middle. */
static bool is_filled(const struct pb_focal *s)
{
    return s->edge == PB_EDGE_EXTRAPOLATE &&
           (s->kind == PB_FOCAL_EXTREME || s->kind == PB_FOCAL_GRADIENT ||
            s->kind == PB_FOCAL_RELIEF);
}

/* Weighted sums do not extrapolate. */
static bool has_edge(enum pb_focal_kind kind, enum pb_edge edge)
{
    return edge != PB_EDGE_EXTRAPOLATE || is_window_kind(kind);
}

/* In two passes. */
static float moment(const struct pb_focal *s, const float *value, int n)
{
    long double mean = 0, variance = 0;
    for (int i = 0; i < n; i++) {
        mean += (long double)value[i] / n;
    }
    for (int i = 0; i < n; i++) {
        variance += (value[i] - mean) * (value[i] - mean) / n;
    }
    return (float)(s->choice == PB_MOMENT_MEAN        ? mean
                   : s->choice == PB_MOMENT_VARIANCE  ? variance
                   : s->choice == PB_MOMENT_DEVIATION ? sqrtl(variance)
                                                      : sqrtl(variance) / mean);
}

/* Uses the weights of the literature for the 3 x 3 pixels in the middle. */
static float gradient(const struct pb_focal *s, const float *window)
{
    static const int weights[7][9] = {
        {-1, 0, 1, -2, 0, 2, -1, 0, 1}, {-1, -2, -1, 0, 0, 0, 1, 2, 1},
        {0, 0, 0, -4, 0, 4, 0, 0, 0},   {0, -4, 0, 0, 0, 0, 0, 4, 0},
        {0, 0, 0, 8, -16, 8, 0, 0, 0},  {0, 8, 0, 0, -16, 0, 0, 8, 0},
        {2, 0, -2, 0, 0, 0, -2, 0, 2}};
    int side = 2 * s->radius + 1;
    long double sum = 0;
    for (int i = 0; i < 9; i++) {
        sum += (long double)weights[s->choice][i] *
               window[(s->radius - 1 + i / 3) * side + s->radius - 1 + i % 3];
    }
    return (float)(sum / 8);
}

static float relief(const struct pb_focal *s, const float *value, int n)
{
    long double sum = 0;
    for (int i = 0; i < n; i++) {
        long double off = (long double)value[n / 2] - value[i];
        sum += s->choice == PB_RELIEF_POSITION ? off
               : s->choice == PB_RELIEF_MEAN   ? fabsl(off)
                                               : off * off;
    }
    return (float)(s->choice == PB_RELIEF_ROOT ? sqrtl(sum) : sum / (n - 1));
}

/* With exp() of the C library. */
static float adaptive(const struct pb_focal *s, const float *value, int n)
{
    long double mean = 0, variance = 0, sum = 0, total = 0;
    for (int i = 0; i < n; i++) {
        mean += (long double)value[i] / n;
    }
    for (int i = 0; i < n; i++) {
        variance += (value[i] - mean) * (value[i] - mean) / n;
    }
    for (int i = 0; i < n; i++) {
        long double off = (long double)value[i] - value[n / 2];
        long double x =
            s->choice == PB_ADAPTIVE_FROST ? variance / (mean * mean) * s->weight[i] : off * off;
        long double w =
            expl(-fminl(x * s->strength, 87)) * (s->choice == PB_ADAPTIVE_FROST ? 1 : s->weight[i]);
        sum += w * value[i];
        total += w;
    }
    return (float)(sum / total);
}

/* The mean of the square of 2 * reach + 1 pixels a side around x, y of the window's middle. */
static double area(const struct pb_focal *s, const float *value, int x, int y, int reach)
{
    int side = 2 * s->radius + 1;
    double sum = 0;
    for (int j = x - reach; j <= x + reach; j++) {
        double column = 0; /* in the order of the definition: a choice hangs on it */
        for (int i = y - reach; i <= y + reach; i++) {
            column += value[(i + s->radius) * side + j + s->radius];
        }
        sum += column;
    }
    return sum;
}

/* Uses the angle of the half: 0 to 7 eighths of a turn. */
static float directional(const struct pb_focal *s, const float *value, int n)
{
    static const int towards[8][2] = {{-1, 0}, {1, -1}, {0, -1}, {-1, -1},
                                      {1, 0},  {-1, 1}, {0, 1},  {1, 1}};
    int r = s->radius, reach = r / 2, step = r - reach, side = 2 * r + 1, best = 0, held = 0;
    double of[8], middle = area(s, value, 0, 0, reach);
    float half[PB_FOCAL_SIDE_MAX * PB_FOCAL_SIDE_MAX];
    for (int i = 0; i < 8; i++) {
        of[i] = area(s, value, step * towards[i][0], step * towards[i][1], reach);
    }
    for (int i = 1; i < 4; i++) {
        best = fabs(of[i] - of[i + 4]) > fabs(of[best] - of[best + 4]) ? i : best;
    }
    best += fabs(of[best] - middle) < fabs(of[best + 4] - middle) ? 0 : 4;
    for (int i = 0; i < n; i++) {
        if ((i % side - r) * towards[best][0] + (i / side - r) * towards[best][1] >= 0) {
            half[held++] = value[i];
        }
    }
    return moment(s, half, held);
}

/* Returns the extreme of the pixels in the footprint, found pixel by pixel; NAN if it is empty. */
static float flat(const struct pb_focal *s, const float *window, int n)
{
    int side = 2 * s->radius + 1;
    float found = NAN;
    for (int i = 0; i < n; i++) {
        bool covered = (float)(i % side) >= s->weight_x[i / side] &&
                       (float)(i % side) <= s->weight_y[i / side] && !isnan(window[i]);
        bool better = s->choice == PB_FLAT_LEAST ? window[i] < found : window[i] > found;
        found = covered && (isnan(found) || better) ? window[i] : found;
    }
    return found;
}

static float of_window(const struct pb_focal *s, float *window, int n)
{
    switch (s->kind) {
    case PB_FOCAL_FLAT:
        return flat(s, window, n);
    case PB_FOCAL_RANK:
        return rank(s, window, n);
    case PB_FOCAL_MOMENTS:
        return moment(s, window, n);
    case PB_FOCAL_GRADIENT:
        return gradient(s, window);
    case PB_FOCAL_RELIEF:
        return relief(s, window, n);
    case PB_FOCAL_ADAPTIVE:
        return adaptive(s, window, n);
    case PB_FOCAL_DIRECTIONAL:
        return directional(s, window, n);
    default:
        return extreme(s, window, n);
    }
}

/* Part of a value by which it may differ, for kinds whose reference uses another formula. */
static float tolerance(enum pb_focal_kind kind)
{
    switch (kind) {
    case PB_FOCAL_MOMENTS:
    case PB_FOCAL_DIRECTIONAL:
    case PB_FOCAL_ADAPTIVE:
        return 2e-6f;
    case PB_FOCAL_GRADIENT:
    case PB_FOCAL_RELIEF:
        return 1e-6f;
    default:
        return 0.0f;
    }
}

/* Returns the result of a GPU for the window. */
static float of_pixel_function(const struct pb_focal *s, const float *window)
{
    int32_t r = s->radius;
    switch (s->kind) {
#define PB_FOCAL_SUM(NAME, name)
#define PB_FOCAL_WINDOW(NAME, name)                                                                \
    case PB_FOCAL_##NAME:                                                                          \
        return pb_pixel_result(pb_focal_##name(window, 2 * r + 1, r, s));
#include "kernels/focal/focal.def"
    default:
        return NAN;
    }
}

static float reference(const struct picture *p, const struct pb_focal *s, int32_t x, int32_t y)
{
    float window[PB_FOCAL_SIDE_MAX * PB_FOCAL_SIDE_MAX];
    int n = (2 * s->radius + 1) * (2 * s->radius + 1);
    if (is_window_kind(s->kind)) {
        bool valid = window_at(p, s, x, y, window);
        if (is_filled(s)) {
            valid = !isnan(window[n / 2]);
            for (int i = 0; i < n; i++) {
                window[i] = isnan(window[i]) ? window[n / 2] : window[i];
            }
        }
        return valid || s->kind == PB_FOCAL_FLAT ? of_window(s, window, n) : NAN;
    }
    if (s->kind == PB_FOCAL_SEPARABLE) {
        return separable(p, s, s->weight_x, s->weight_y, x, y);
    }
    if (s->kind == PB_FOCAL_FULL) {
        return full(p, s, x, y);
    }
    volatile float gx = separable(p, s, s->weight_x, s->weight_y, x, y);
    volatile float gy = separable(p, s, s->weight_y, s->weight_x, x, y);
    volatile float xx = gx * gx, yy = gy * gy;
    return sqrtf(xx + yy);
}
#endif
