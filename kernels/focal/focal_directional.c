/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Halves of windows on the CPU: the sums of all areas in the row of windows once, then LANES
 * windows beside each other at a time. temp: the padded rows, a row of sums of columns, and three
 * rows of sums of areas, those above, in and below the middle. */
#include "kernels/focal/focal_job.h"
#include "kernels/focal/directional_pixel.h"

#define LANES 32

static size_t columns_of(const struct pb_focal *focal, size_t w)
{
    return w + 2 * (size_t)focal->radius;
}

static size_t sums_at(const struct pb_focal *focal, size_t w)
{
    return (pb_focal_window_temp_px(focal, w) + 15) / 16 * 16;
}

size_t pb_focal_directional_temp_px(const struct pb_focal *focal, size_t w)
{
    return sums_at(focal, w) + 4 * columns_of(focal, w) * sizeof(double) / sizeof(float);
}

void pb_focal_directional_begin(struct pb_focal_job *job)
{
    (void)job;
}

/* sums[x]: of the area whose upper left pixel is row[x]; n of them. columns: room. */
PB_CLONES static void sum_areas(const float *row, int32_t stride, int32_t side, int32_t n,
                                double *restrict columns, double *restrict sums)
{
    for (int32_t x = 0; x < n + side - 1; x++)
        columns[x] = 0.0;
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < n + side - 1; x++)
            columns[x] += (double)row[(size_t)y * (size_t)stride + (size_t)x];
    for (int32_t x = 0; x < n; x++)
        sums[x] = 0.0;
    for (int32_t k = 0; k < side; k++)
        for (int32_t x = 0; x < n; x++)
            sums[x] += columns[x + k];
}

struct strip {
    const float *window;
    const double *area[3]; /* rows of sums: of the first window's left areas */
    int32_t stride, radius, choice;
    uint32_t members[PB_FOCAL_WINDOW_SIDE_MAX * PB_FOCAL_WINDOW_SIDE_MAX];
};

/* A bit for each half that there is. */
static inline uint32_t half_bit(int32_t x, int32_t y)
{
    return (uint32_t)1 << (3 * y + x + 4);
}

/* For each place in a window the halves that have it. */
static void find_members(int32_t radius,
                         uint32_t members[PB_FOCAL_WINDOW_SIDE_MAX * PB_FOCAL_WINDOW_SIDE_MAX])
{
    const int32_t side = 2 * radius + 1;

    for (int32_t i = 0; i < side * side; i++) {
        members[i] = 0;
        for (int32_t half = 0; half < 9; half++) {
            const int32_t x = half % 3 - 1, y = half / 3 - 1;

            if (x * (i % side - radius) + y * (i / side - radius) >= 0)
                members[i] |= half_bit(x, y);
        }
    }
}

/* Which half each of n windows takes. */
__attribute__((always_inline)) static inline void find_halves(const struct strip *s, int32_t n,
                                                              uint32_t *restrict half)
{
    const int32_t step = pb_directional_step(s->radius);
    double most[LANES];
    int32_t to_x[LANES], to_y[LANES];

    for (int32_t i = 0; i < n; i++) {
        most[i] = -1.0;
        to_x[i] = -1;
        to_y[i] = 0;
    }
    for (int32_t pair = 0; pair < 4; pair++) {
        const int32_t x = PB_DIRECTIONAL_X(pair), y = PB_DIRECTIONAL_Y(pair);
        const double *const first = s->area[1 + y] + (1 + x) * step;
        const double *const second = s->area[1 - y] + (1 - x) * step;

        for (int32_t i = 0; i < n; i++) {
            struct pb_directional best = {most[i], to_x[i], to_y[i]};

            pb_directional_next(&best, pair, first[i], second[i], s->area[1][step + i]);
            most[i] = best.most;
            to_x[i] = best.x;
            to_y[i] = best.y;
        }
    }
    for (int32_t i = 0; i < n; i++)
        half[i] = half_bit(to_x[i], to_y[i]);
}

__attribute__((always_inline)) static inline void moments_of(const struct strip *s, int32_t n,
                                                             float *restrict out)
{
    const int32_t radius = s->radius, side = 2 * radius + 1;
    uint32_t half[LANES];
    double first[LANES] = {0.0}, second[LANES] = {0.0};
    float invalid[LANES] = {0.0f};

    find_halves(s, n, half);
    for (int32_t y = 0; y < side; y++)
        for (int32_t x = 0; x < side; x++) {
            const float *const from = s->window + (size_t)y * (size_t)s->stride + x;
            const uint32_t members = s->members[y * side + x];

            for (int32_t i = 0; i < n; i++) {
                const double v = (double)((members & half[i]) != 0 ? from[i] : 0.0f);

                first[i] += v;
                second[i] += v * v;
                invalid[i] += from[i] - from[i];
            }
        }
    for (int32_t i = 0; i < n; i++)
        out[i] = pb_pixel_result(
            pb_moment_of(first[i], second[i], (double)(side * (radius + 1)), s->choice) +
            invalid[i]);
}

/* Full strips have a loop whose length the compiler knows. */
PB_CLONES static void directional_strip(const struct strip *s, int32_t n, float *restrict out)
{
    if (n == LANES)
        moments_of(s, LANES, out);
    else
        moments_of(s, n, out);
}

void pb_focal_directional_row(struct pb_focal_job *job, const int32_t *rows, float *out)
{
    const int32_t w = job->out->rect.w, radius = job->focal->radius;
    const int32_t area = 2 * pb_directional_reach(radius) + 1, step = pb_directional_step(radius);
    const size_t n = columns_of(job->focal, (size_t)w);
    double *const columns = (double *)(void *)(job->temp + sums_at(job->focal, (size_t)w));
    struct strip s = {.radius = radius, .choice = job->focal->choice};
    const float *const window = pb_focal_find_windows(job, rows, &s.stride);

    find_members(radius, s.members);
    for (int32_t k = 0; k < 3; k++)
        sum_areas(window + (size_t)(k * step) * (size_t)s.stride, s.stride, area, w + 2 * step,
                  columns, columns + (size_t)(1 + k) * n);
    for (int32_t x = 0; x < w; x += LANES) {
        s.window = window + x;
        for (int32_t k = 0; k < 3; k++)
            s.area[k] = columns + (size_t)(1 + k) * n + x;
        directional_strip(&s, w - x < LANES ? w - x : LANES, out + x);
    }
}
