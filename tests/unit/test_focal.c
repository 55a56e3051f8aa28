/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: loops
 *
 * Focal operations against a reference that looks up every neighbour by itself: all kinds, radii
 * and edge rules, images from one pixel on, whole and in tiles. Equality is of bits: the order of
 * additions is part of the contract. The CPU's rows of windows are compared with the pixel function
 * as well, which a GPU runs. */
#include "kernels/focal/focal.h"
#include "kernels/focal/focal_window.h"

#include "focal_reference.h"
#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CANARY 1234.5f

/* -- running ----------------------------------------------------------------------------------- */

static struct pb_rect grown(struct pb_rect r, int32_t by, int32_t w, int32_t h)
{
    int32_t x0 = r.x - by > 0 ? r.x - by : 0, y0 = r.y - by > 0 ? r.y - by : 0;
    int32_t x1 = r.x + r.w + by < w ? r.x + r.w + by : w;
    int32_t y1 = r.y + r.h + by < h ? r.y + r.h + by : h;
    return (struct pb_rect){x0, y0, x1 - x0, y1 - y0};
}

/* One tile with exactly the pixels it may see, in exact allocations, so that a sanitizer sees a
 * read outside; the result is copied to its place in `result`. */
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

START_TEST(equals_reference_for_every_kind_radius_and_edge)
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

START_TEST(equals_reference_for_kinds_with_larger_radii)
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
START_TEST(medians_of_long_rows_equal_the_pixel_function)
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

START_TEST(extrapolation_is_linear_and_fills_invalid_pixels)
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

START_TEST(invalid_neighbour_of_weight_zero_invalidates)
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
    tcase_add_test(tcase, equals_reference_for_every_kind_radius_and_edge);
    tcase_add_test(tcase, equals_reference_for_kinds_with_larger_radii);
    tcase_add_test(tcase, tiles_give_the_bits_of_the_whole_image);
    tcase_add_test(tcase, an_image_of_one_pixel_sees_itself_or_nothing);
    tcase_add_test(tcase, reflection_does_not_repeat_the_edge_pixel);
    tcase_add_test(tcase, extrapolation_is_linear_and_fills_invalid_pixels);
    tcase_add_test(tcase, invalid_neighbour_of_weight_zero_invalidates);
    tcase_add_test(tcase, medians_of_long_rows_equal_the_pixel_function);
    tcase_add_test(tcase, what_is_no_finite_number_leaves_as_the_one_nan);
    if (getenv("PB_FOCAL_SPEED") != NULL) {
        tcase_add_test(tcase, speed_on_request);
    }
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
