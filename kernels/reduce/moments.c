/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/moments.h"
#include "kernels/pixel.h"

enum { HALF_PX = PB_MOMENTS_RUN / 2, LANES = 8 };

struct run {
    double sum, squares[2];
    uint32_t valid;
    float min, max; /* FLT_MAX, -FLT_MAX when nothing is valid */
};

static double fold_lanes(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* One run, always PB_MOMENTS_RUN long; written so that compilers turn the inner loops into vectors.
 */
static inline struct run sweep_run(const float *px)
{
    struct run out = {.min = FLT_MAX, .max = -FLT_MAX};
    double sum[LANES] = {0};
    float min[LANES], max[LANES];
    uint32_t valid[LANES] = {0};
    for (int l = 0; l < LANES; l++) {
        min[l] = FLT_MAX;
        max[l] = -FLT_MAX;
    }
    for (int half = 0; half < 2; half++) {
        double squares[LANES] = {0};
        for (int i = half * HALF_PX; i < (half + 1) * HALF_PX; i += LANES)
            for (int l = 0; l < LANES; l++) {
                float v = px[i + l];
                bool ok = fabsf(v) <= FLT_MAX;
                float low = ok ? v : FLT_MAX, high = ok ? v : -FLT_MAX;
                double x = ok ? v : 0.0F;
                sum[l] += x;
                squares[l] += x * x;
                valid[l] += ok;
                min[l] = low < min[l] ? low : min[l];
                max[l] = high > max[l] ? high : max[l];
            }
        out.squares[half] = fold_lanes(squares);
    }
    out.sum = fold_lanes(sum);
    for (int l = 0; l < LANES; l++) {
        out.valid += valid[l];
        out.min = min[l] < out.min ? min[l] : out.min;
        out.max = max[l] > out.max ? max[l] : out.max;
    }
    return out;
}

static void take_run(struct pb_moments *moments, const struct run *run)
{
    if (run->valid == 0)
        return;
    pb_exact_sum_add(&moments->sum, run->sum);
    pb_exact_sum_add(&moments->squares, run->squares[0]);
    pb_exact_sum_add(&moments->squares, run->squares[1]);
    moments->valid += run->valid;
    moments->min = run->min < moments->min ? run->min : moments->min;
    moments->max = run->max > moments->max ? run->max : moments->max;
}

void pb_moments_begin(struct pb_moments *moments)
{
    memset(moments, 0, sizeof *moments);
    moments->min = FLT_MAX;
    moments->max = -FLT_MAX;
}

PB_CLONES
void pb_moments_add(struct pb_moments *moments, const float *plane, int32_t w, int32_t h)
{
    for (int32_t y = 0; y < h; y++) {
        const float *const row = plane + (size_t)y * (size_t)w;
        int32_t x = 0;

        for (; x + PB_MOMENTS_RUN <= w; x += PB_MOMENTS_RUN) {
            const struct run run = sweep_run(row + x);

            take_run(moments, &run);
        }
        if (x < w) { /* the image ends inside the run */
            float padded[PB_MOMENTS_RUN];

            for (int32_t i = 0; i < PB_MOMENTS_RUN; i++)
                padded[i] = x + i < w ? row[x + i] : NAN;
            const struct run run = sweep_run(padded);
            take_run(moments, &run);
        }
    }
    /* -0 and 0 are equal, and which one comes first depends on the order: always 0 */
    moments->min += 0.0f;
    moments->max += 0.0f;
}

void pb_moments_merge(struct pb_moments *into, const struct pb_moments *from)
{
    into->valid += from->valid;
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
    pb_exact_sum_merge(&into->sum, &from->sum);
    pb_exact_sum_merge(&into->squares, &from->squares);
}

void pb_moments_result(const struct pb_moments *moments, double *out_mean, double *out_stddev)
{
    double variance;

    pb_exact_moments(&moments->sum, &moments->squares, moments->valid, out_mean, &variance);
    *out_stddev = sqrt(variance);
}
