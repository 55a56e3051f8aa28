/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Focal operations against a reference that looks up every neighbour by itself: all kinds, radii
 * and edge rules, images from one pixel on, whole and in tiles. Equality is of bits: the order of
 * additions is part of the contract. What the CPU makes of a row of windows is compared with the
 * pixel function as well, which is what a GPU runs. */
#include "kernels/focal/focal.h"
#include "kernels/focal/focal_window.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CANARY 1234.5f

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
    }
    return px;
}

/* -- the reference ----------------------------------------------------------------------------- */

/* By walking, one step at a time, turning round at the ends: not how the code does it. */
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

/* By sorting. */
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

/* Whether invalid neighbours are taken for the pixel in the middle. */
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

/* By the weights of the literature, of the 3 x 3 pixels in the middle. */
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

/* By the angle of the half: 0 to 7 eighths of a turn. */
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

/* Of pixel by pixel of the window, whether the footprint has it or not; NAN of none. */
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

/* Of kinds whose reference is told in other words: so much of a value may differ. */
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

/* What a GPU makes of the window. */
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

/* -- running ----------------------------------------------------------------------------------- */

static struct pb_rect grown(struct pb_rect r, int32_t by, int32_t w, int32_t h)
{
    int32_t x0 = r.x - by > 0 ? r.x - by : 0, y0 = r.y - by > 0 ? r.y - by : 0;
    int32_t x1 = r.x + r.w + by < w ? r.x + r.w + by : w;
    int32_t y1 = r.y + r.h + by < h ? r.y + r.h + by : h;
    return (struct pb_rect){x0, y0, x1 - x0, y1 - y0};
}

/* One tile with exactly the pixels it may see, in exact allocations, so that a sanitizer sees a
 * read outside; the result goes to its place in `result`. */
static void run_tile(const struct picture *p, const struct pb_focal *s, struct pb_rect core,
                     float *result)
{
    struct pb_plane in = {.rect = grown(core, s->radius, p->w, p->h)};
    struct pb_plane out = {.rect = core};
    size_t temp_px = pb_focal_temp_px(s, &core), core_px = (size_t)core.w * (size_t)core.h;
    float *temp = malloc((temp_px + 1) * sizeof *temp);
    in.data = malloc((size_t)in.rect.w * (size_t)in.rect.h * sizeof(float));
    out.data = malloc(core_px * sizeof(float));
    temp[temp_px] = CANARY;
    for (int32_t y = 0; y < in.rect.h; y++) {
        memcpy(in.data + (size_t)y * (size_t)in.rect.w,
               p->px + (int64_t)(in.rect.y + y) * p->w + in.rect.x,
               (size_t)in.rect.w * sizeof(float));
    }
    pb_focal_run_cpu(s, &in, &out, p->w, p->h, temp);
    ck_assert_msg(temp[temp_px] == CANARY, "wrote past temp");
    for (int32_t y = 0; y < core.h; y++) {
        memcpy(result + (int64_t)(core.y + y) * p->w + core.x,
               out.data + (size_t)y * (size_t)core.w, (size_t)core.w * sizeof(float));
    }
    free(temp);
    free(in.data);
    free(out.data);
}

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_against_pixel_function(const struct picture *p, const struct pb_focal *s,
                                         const float *got)
{
    float window[PB_FOCAL_SIDE_MAX * PB_FOCAL_SIDE_MAX];
    for (int32_t y = 0; y < p->h; y++) {
        for (int32_t x = 0; x < p->w; x++) {
            (void)window_at(p, s, x, y, window);
            float want = of_pixel_function(s, window), is = got[(int64_t)y * p->w + x];
            ck_assert_msg(same_bits(want, is),
                          "%s edge %d radius %d choice %d at %d,%d: %.9g, of a pixel %.9g",
                          pb_focal_name(s->kind), s->edge, s->radius, s->choice, x, y, (double)is,
                          (double)want);
        }
    }
}

static void check_against_reference(const struct picture *p, const struct pb_focal *s,
                                    const float *got)
{
    for (int32_t y = 0; y < p->h; y++) {
        for (int32_t x = 0; x < p->w; x++) {
            float want = reference(p, s, x, y), is = got[(int64_t)y * p->w + x];
            bool same = isnan(want)
                            ? isnan(is)
                            : same_bits(want, is) ||
                                  fabsf(want - is) <= tolerance(s->kind) * fmaxf(1.0f, fabsf(want));
            ck_assert_msg(same, "kind %d edge %d radius %d image %dx%d at %d,%d: %.9g, not %.9g",
                          s->kind, s->edge, s->radius, p->w, p->h, x, y, (double)is, (double)want);
        }
    }
}

/* An image of at most `most` pixels a side. */
static void check_any(const struct pb_focal *s, int32_t most, int invalid_percent)
{
    struct picture p = {.w = between(1, most), .h = between(1, most)};
    float *px = any_image(p.w, p.h, invalid_percent);
    float *got = calloc((size_t)p.w * (size_t)p.h, sizeof *got);
    p.px = px;
    run_tile(&p, s, (struct pb_rect){0, 0, p.w, p.h}, got);
    check_against_reference(&p, s, got);
    if (is_window_kind(s->kind)) {
        check_against_pixel_function(&p, s, got);
    }
    free(px);
    free(got);
}

START_TEST(equals_the_reference_for_every_kind_radius_and_edge_rule)
{
    for (int round = 0; round < 8; round++) {
        for (int n = 0; n < PB_FOCAL_COUNT * PB_EDGE_COUNT * 7; n++) {
            enum pb_focal_kind kind = (enum pb_focal_kind)(n % PB_FOCAL_COUNT);
            enum pb_edge edge = (enum pb_edge)(n / PB_FOCAL_COUNT % PB_EDGE_COUNT);
            struct pb_focal s = any_focal(kind, edge, 1 + n / (PB_EDGE_COUNT * PB_FOCAL_COUNT));
            if (has_edge(kind, edge)) {
                check_any(&s, round < 4 ? 9 : 45, round % 2 ? 2 : 0);
            }
        }
    }
}
END_TEST

START_TEST(equals_the_reference_for_the_larger_radii_of_the_kinds_that_have_them)
{
    for (int n = 0; n < PB_FOCAL_COUNT * PB_EDGE_COUNT * 8; n++) {
        int32_t radius = 8 + n / (PB_EDGE_COUNT * PB_FOCAL_COUNT);
        enum pb_focal_kind kind = (enum pb_focal_kind)(n % PB_FOCAL_COUNT);
        enum pb_edge edge = (enum pb_edge)(n / PB_FOCAL_COUNT % PB_EDGE_COUNT);
        if (2 * radius + 1 <= pb_focal_side_max(kind) && has_edge(kind, edge)) {
            struct pb_focal s = any_focal(kind, edge, radius);
            check_any(&s, n % 2 ? 36 : 12, kind == PB_FOCAL_FLAT ? 50 : 0);
        }
    }
}
END_TEST

START_TEST(tiles_give_the_bits_of_the_whole_image)
{
    for (int round = 0; round < 160; round++) {
        struct pb_focal s = any_focal((enum pb_focal_kind)(round % PB_FOCAL_COUNT),
                                      (enum pb_edge)(round / PB_FOCAL_COUNT % PB_EDGE_COUNT), 1);
        if (!has_edge(s.kind, s.edge)) {
            continue;
        }
        s = any_focal(s.kind, s.edge, between(1, pb_focal_side_max(s.kind) / 2));
        struct picture p = {.w = between(1, 90), .h = between(1, 70)};
        float *px = any_image(p.w, p.h, 1);
        size_t bytes = (size_t)p.w * (size_t)p.h * sizeof(float);
        float *whole = malloc(bytes), *tiled = malloc(bytes);
        int32_t tile_w = between(1, 40), tile_h = between(1, 40);
        p.px = px;
        run_tile(&p, &s, (struct pb_rect){0, 0, p.w, p.h}, whole);
        for (int32_t y = 0; y < p.h; y += tile_h) {
            for (int32_t x = 0; x < p.w; x += tile_w) {
                run_tile(&p, &s,
                         (struct pb_rect){x, y, x + tile_w > p.w ? p.w - x : tile_w,
                                          y + tile_h > p.h ? p.h - y : tile_h},
                         tiled);
            }
        }
        ck_assert_msg(memcmp(whole, tiled, bytes) == 0, "round %d: %dx%d in tiles of %dx%d", round,
                      p.w, p.h, tile_w, tile_h);
        free(px);
        free(whole);
        free(tiled);
    }
}
END_TEST

/* Rows longer than what the CPU takes at a time, and values that min and max treat apart. */
START_TEST(medians_of_long_rows_have_the_bits_of_the_pixel_function)
{
    const float some[] = {-0.0f, 0.0f, 1.0f, -1.0f, 1e-44f, -1e-44f, FLT_MAX, -FLT_MAX};
    for (int n = 0; n < PB_EDGE_COUNT * 14; n++) {
        const struct pb_focal s = {.kind = PB_FOCAL_RANK,
                                   .edge = (enum pb_edge)(n % PB_EDGE_COUNT),
                                   .radius = 1 + n / PB_EDGE_COUNT % 2,
                                   .choice = n / PB_EDGE_COUNT % 2 ? 12 : 4};
        struct picture p = {.w = between(120, 270), .h = between(1, 6)};
        const size_t px = (size_t)p.w * (size_t)p.h;
        float *values = malloc(px * sizeof *values), *got = calloc(px, sizeof *got);
        if (!has_edge(s.kind, s.edge)) {
            free(values);
            free(got);
            continue;
        }
        for (size_t i = 0; i < px; i++)
            values[i] = between(0, 99) < 2 ? NAN : some[between(0, 7)];
        p.px = values;
        run_tile(&p, &s, (struct pb_rect){0, 0, p.w, p.h}, got);
        check_against_pixel_function(&p, &s, got);
        free(values);
        free(got);
    }
}
END_TEST

static struct pb_focal box3(enum pb_edge edge)
{
    struct pb_focal s = {.kind = PB_FOCAL_SEPARABLE, .edge = edge, .radius = 1};
    for (int i = 0; i < 3; i++) {
        s.weight_x[i] = s.weight_y[i] = 1.0f;
    }
    return s;
}

START_TEST(an_image_of_one_pixel_sees_itself_or_nothing)
{
    float five = 5, got;
    struct picture p = {&five, 1, 1};
    for (int edge = PB_EDGE_REFLECT; edge <= PB_EDGE_NODATA; edge++) {
        struct pb_focal s = box3((enum pb_edge)edge);
        run_tile(&p, &s, (struct pb_rect){0, 0, 1, 1}, &got);
        ck_assert(edge == PB_EDGE_NODATA ? isnan(got) : got == 45.0f);
    }
}
END_TEST

START_TEST(reflection_does_not_repeat_the_edge_pixel)
{
    float px[] = {1, 2, 4}, got[3];
    struct picture p = {px, 3, 1};
    struct pb_focal s = box3(PB_EDGE_REFLECT);
    run_tile(&p, &s, (struct pb_rect){0, 0, 3, 1}, got);
    ck_assert(got[0] == 3 * (2 + 1 + 2) && got[1] == 3 * 7 && got[2] == 3 * (2 + 4 + 2));
    s.edge = PB_EDGE_CLAMP;
    run_tile(&p, &s, (struct pb_rect){0, 0, 3, 1}, got);
    ck_assert(got[0] == 3 * (1 + 1 + 2) && got[1] == 3 * 7 && got[2] == 3 * (2 + 4 + 4));
}
END_TEST

START_TEST(extrapolation_goes_on_along_the_line_and_fills_invalid_neighbours)
{
    float px[] = {1, 2, 4, 8, NAN, 32}, got[6];
    struct picture p = {px, 6, 1};
    struct pb_focal s = {.kind = PB_FOCAL_GRADIENT,
                         .edge = PB_EDGE_EXTRAPOLATE,
                         .radius = 1,
                         .choice = PB_GRADIENT_ZEVENBERGEN_X};
    run_tile(&p, &s, (struct pb_rect){0, 0, 6, 1}, got);
    ck_assert(got[0] == 1.0f && got[1] == 1.5f && got[2] == 3.0f && got[3] == 2.0f);
    ck_assert(isnan(got[4]) && got[5] == 0.0f);
    s.kind = PB_FOCAL_EXTREME;
    s.choice = PB_EXTREME_RANGE;
    run_tile(&p, &s, (struct pb_rect){0, 0, 6, 1}, got);
    ck_assert(got[0] == 2.0f && got[3] == 4.0f && isnan(got[4]) && got[5] == 0.0f);
}
END_TEST

START_TEST(an_invalid_neighbour_makes_the_result_invalid_even_with_weight_zero)
{
    float px[25 * 25], got[25 * 25];
    struct picture p = {px, 25, 25};
    for (int kind = 0; kind < PB_FOCAL_COUNT; kind++) {
        struct pb_focal s = {.kind = (enum pb_focal_kind)kind, .edge = PB_EDGE_CLAMP};
        if (kind == PB_FOCAL_FLAT) {
            continue; /* leaves it out */
        }
        s.radius = 2;
        s.choice = s.kind == PB_FOCAL_RANK       ? 12
                   : s.kind == PB_FOCAL_ADAPTIVE ? PB_ADAPTIVE_FROST
                                                 : PB_EXTREME_RANGE;
        for (int i = 0; i < 25 * 25; i++) {
            px[i] = s.kind == PB_FOCAL_RANK || s.kind == PB_FOCAL_ADAPTIVE ? 0 : 1;
        }
        px[12 * 25 + 12] = NAN;
        run_tile(&p, &s, (struct pb_rect){0, 0, 25, 25}, got);
        for (int i = 0; i < 25 * 25; i++) {
            bool near = abs(i % 25 - 12) <= 2 && abs(i / 25 - 12) <= 2;
            ck_assert(near ? isnan(got[i]) : got[i] == 0);
        }
    }
}
END_TEST

START_TEST(what_is_no_finite_number_leaves_as_the_one_nan)
{
    float px[9], got[9];
    struct picture p = {px, 3, 3};
    struct pb_focal s = box3(PB_EDGE_REFLECT);
    for (int i = 0; i < 9; i++) {
        px[i] = i == 0 ? -NAN : 3e38f;
    }
    run_tile(&p, &s, (struct pb_rect){0, 0, 3, 3}, got);
    for (int i = 0; i < 9; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], sizeof bits);
        ck_assert_uint_eq(bits, 0x7fc00000u);
    }
}
END_TEST

/* Not a check: with PB_FOCAL_SPEED set, prints megapixels a second of one thread. */
START_TEST(speed_on_request)
{
    enum { SIDE = 512 };
    float *px = any_image(SIDE + 14, SIDE + 14, 0), *out = malloc(SIDE * SIDE * sizeof *out);
    for (int n = 0; n < 3 * PB_FOCAL_COUNT; n++) {
        struct pb_focal s = any_focal((enum pb_focal_kind)(n % PB_FOCAL_COUNT), PB_EDGE_REFLECT,
                                      n < PB_FOCAL_COUNT       ? 1
                                      : n < 2 * PB_FOCAL_COUNT ? 2
                                                               : 7);
        struct pb_plane in = {px, {0, 0, SIDE + 14, SIDE + 14}}, to = {out, {7, 7, SIDE, SIDE}};
        float *temp = malloc(pb_focal_temp_px(&s, &to.rect) * sizeof *temp);
        double seconds = 0;
        int times = 0;
        for (struct timespec t[2]; seconds < 0.2; times++) {
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[0]);
            pb_focal_run_cpu(&s, &in, &to, SIDE + 14, SIDE + 14, temp);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t[1]);
            seconds +=
                (double)(t[1].tv_sec - t[0].tv_sec) + (double)(t[1].tv_nsec - t[0].tv_nsec) * 1e-9;
        }
        printf("%-9s %2dx%-2d %8.1f Mpx/s\n", pb_focal_name(s.kind), 2 * s.radius + 1,
               2 * s.radius + 1, times * (SIDE * SIDE) / seconds * 1e-6);
        free(temp);
    }
    free(px);
    free(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("focal");
    TCase *tcase = tcase_create("focal");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, equals_the_reference_for_every_kind_radius_and_edge_rule);
    tcase_add_test(tcase, equals_the_reference_for_the_larger_radii_of_the_kinds_that_have_them);
    tcase_add_test(tcase, tiles_give_the_bits_of_the_whole_image);
    tcase_add_test(tcase, an_image_of_one_pixel_sees_itself_or_nothing);
    tcase_add_test(tcase, reflection_does_not_repeat_the_edge_pixel);
    tcase_add_test(tcase, extrapolation_goes_on_along_the_line_and_fills_invalid_neighbours);
    tcase_add_test(tcase, an_invalid_neighbour_makes_the_result_invalid_even_with_weight_zero);
    tcase_add_test(tcase, medians_of_long_rows_have_the_bits_of_the_pixel_function);
    tcase_add_test(tcase, what_is_no_finite_number_leaves_as_the_one_nan);
    if (getenv("PB_FOCAL_SPEED") != NULL) {
        tcase_add_test(tcase, speed_on_request);
    }
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
