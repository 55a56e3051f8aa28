/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_STATISTICS_CASES_H
#define PB_STATISTICS_CASES_H
/* Planes for the statistics of a device, on the emulator (unit/test_statistics_device.c) and on a
 * GPU (gpu/check_statistics.c), and what the CPU finds in them. */
#include "kernels/reduce/histogram.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/statistics_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct statistics_case {
    const char *name;
    int32_t w, h, extra; /* pixels after each row that are not the plane's */
    int values;
} statistics_cases[] = {
    {"reflectances", 130, 33, 0, 0},      {"all magnitudes", 64, 40, 7, 1},
    {"a constant", 200, 3, 1, 2},         {"nothing valid", 70, 9, 0, 3},
    {"zeros of both signs", 65, 5, 0, 4}, {"one pixel", 1, 1, 0, 0},
    {"subnormal", 129, 7, 2, 5},          {"rare", 640, 16, 0, 6},
};
enum { STATISTICS_CASES = sizeof statistics_cases / sizeof *statistics_cases };

static inline float statistics_value(int values, uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    const uint32_t v = (uint32_t)(*state >> 20);
    const float sign = (v & 1) != 0 ? -1.0f : 1.0f;
    switch (values) {
    case 0:
        return v % 9 == 0 ? NAN : (float)(v % 12000) * 0.0001f - 0.1f;
    case 1:
        return v % 17 == 0   ? INFINITY * sign
               : v % 19 == 0 ? NAN
                             : sign * ldexpf((float)(v % 8191), (int)(v >> 13) % 240 - 140);
    case 2:
        return 0.1f;
    case 3:
        return v % 2 ? NAN : sign * INFINITY;
    case 4:
        return sign * 0.0f;
    case 5:
        return sign * ldexpf((float)(v % 1023), -149);
    default:
        return v % 5000 == 0 ? (float)(v % 77) - 30 : NAN;
    }
}

static inline size_t statistics_case_px(const struct statistics_case *c)
{
    return (size_t)(c->w + c->extra) * (size_t)c->h;
}

/* Pixels that are not the plane's are 1e30. */
static inline void statistics_case_fill(const struct statistics_case *c, float *px)
{
    uint64_t state = UINT64_C(88172645463325252) + (uint64_t)c->values;
    for (size_t i = 0; i < statistics_case_px(c); i++)
        px[i] = (int32_t)(i % (size_t)(c->w + c->extra)) < c->w
                    ? statistics_value(c->values, &state)
                    : 1e30f;
}

struct statistics_found {
    struct pb_moments moments;
    struct pb_histogram histogram;
    double mean, stddev;
};

static inline void statistics_conclude(struct statistics_found *found,
                                       struct pb_histogram_part *part)
{
    if (found->moments.valid == 0)
        return;
    pb_moments_result(&found->moments, &found->mean, &found->stddev);
    pb_histogram_merge(&found->histogram, part);
}

static inline void statistics_by_cpu(const struct statistics_case *c, const float *px,
                                     struct statistics_found *out)
{
    static struct pb_histogram_part part;
    float *tight = malloc((size_t)c->w * (size_t)c->h * sizeof *tight);
    if (tight == NULL)
        abort();
    for (int32_t y = 0; y < c->h; y++)
        memcpy(tight + (size_t)y * (size_t)c->w, px + (size_t)y * (size_t)(c->w + c->extra),
               (size_t)c->w * sizeof *tight);
    memset(out, 0, sizeof *out);
    pb_moments_begin(&out->moments);
    pb_moments_add(&out->moments, tight, c->w, c->h);
    if (out->moments.valid > 0) {
        pb_histogram_part_begin(&part, out->moments.min, out->moments.max);
        pb_histogram_part_add(&part, tight, (size_t)c->w * (size_t)c->h);
    }
    statistics_conclude(out, &part);
    memset(&part, 0, sizeof part);
    free(tight);
}

static inline void statistics_by_device(const struct pb_statistics_part *found,
                                        struct statistics_found *out)
{
    static struct pb_histogram_part part;
    memset(out, 0, sizeof *out);
    (void)pb_statistics_take(found, &out->moments, &part);
    statistics_conclude(out, &part);
}

/* To the last bit. NULL, or what differs. */
static inline const char *statistics_difference(const struct statistics_found *a,
                                                const struct statistics_found *b)
{
    if (a->moments.valid != b->moments.valid)
        return "valid";
    if (a->moments.valid == 0)
        return NULL;
    if (memcmp(&a->moments.min, &b->moments.min, sizeof a->moments.min) != 0 ||
        memcmp(&a->moments.max, &b->moments.max, sizeof a->moments.max) != 0)
        return "range";
    if (memcmp(&a->mean, &b->mean, sizeof a->mean) != 0 ||
        memcmp(&a->stddev, &b->stddev, sizeof a->stddev) != 0)
        return "mean or standard deviation";
    if (a->histogram.e != b->histogram.e ||
        memcmp(a->histogram.bin, b->histogram.bin, sizeof a->histogram.bin) != 0)
        return "histogram";
    return NULL;
}
#endif
