/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A float32 is an integer of 24 bits times a power of two. Its bits are added to one of 16 digits,
 * by the upper bits of its exponent, shifted by the lower ones: 39 bits, so a digit takes 2^24
 * values. After each chunk the digits go into the sum, which has room for all. */
#include "kernels/reduce/clusters.h"
#include "kernels/reduce/cluster_sums.h"
#include "kernels/reduce/exact_sum.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 16, DIGIT_STEP = 16, LOWEST_EXPONENT = -149, CHUNK = 1 << 16 };

/* Of one class and band. */
struct total {
    struct pb_exact_sum sum;
    int64_t digit[DIGITS]; /* digit i weighs 2^(16 i - 149) */
};

struct pb_clusters {
    struct pb_clusters_shape shape;
    uint32_t round; /* those that have ended */
    float centre[PB_CLUSTERS_MAX * PB_CLUSTERS_BANDS_MAX];
    float next[PB_CLUSTERS_MAX * PB_CLUSTERS_BANDS_MAX]; /* after the round */
    uint64_t pixels[PB_CLUSTERS_MAX];
    struct total total[]; /* in the order of centres */
};

size_t pb_clusters_bytes(const struct pb_clusters_shape *shape)
{
    return sizeof(struct pb_clusters) + pb_clusters_centres(shape) * sizeof(struct total);
}

void pb_clusters_begin(struct pb_clusters *clusters, const struct pb_clusters_shape *shape,
                       const float *centres)
{
    memset(clusters, 0, pb_clusters_bytes(shape));
    clusters->shape = *shape;
    memcpy(clusters->centre, centres, pb_clusters_centres(shape) * sizeof *centres);
}

void pb_clusters_again(struct pb_clusters *clusters, const struct pb_clusters *ended)
{
    const struct pb_clusters_shape shape = ended->shape;
    const uint32_t round = ended->round;
    float centre[PB_CLUSTERS_MAX * PB_CLUSTERS_BANDS_MAX];

    memcpy(centre, ended->next, sizeof centre);
    pb_clusters_begin(clusters, &shape, centre);
    clusters->round = round;
}

/* --- sums ------------------------------------------------------------------------------------ */

static inline void add_value(struct total *total, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint32_t place = exponent ? exponent - 1 : 0; /* of the lowest bit, above 2^-149 */
    const int64_t mantissa = (bits & 0x7fffff) | (exponent ? 0x800000 : 0);
    const int64_t shifted = mantissa << place % DIGIT_STEP;

    total->digit[place / DIGIT_STEP] += bits >> 31 ? -shifted : shifted;
}

static void flush(struct total *total)
{
    for (int i = 0; i < DIGITS; i++) {
        const int64_t digit = total->digit[i];
        const int exponent = i * DIGIT_STEP + LOWEST_EXPONENT;

        if (digit == 0)
            continue;
        const int64_t low = (int64_t)((uint64_t)digit & UINT32_MAX); /* both halves are doubles */
        pb_exact_sum_add(&total->sum, ldexp((double)low, exponent));
        pb_exact_sum_add(&total->sum, ldexp((double)(digit - low), exponent));
        total->digit[i] = 0;
    }
}

/* The class of a pixel from 0; `classes` when it has none. */
static inline uint32_t class_of(float number, uint32_t classes)
{
    return number >= 1.0f && number <= (float)classes ? (uint32_t)number - 1 : classes;
}

static void count_pixels(struct pb_clusters *clusters, const float *number, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = class_of(number[i], clusters->shape.classes);

        if (c < clusters->shape.classes)
            clusters->pixels[c]++;
    }
}

/* total: those of one band. */
static void add_band(struct total *total, uint32_t classes, const float *number, const float *value,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = class_of(number[i], classes);

        if (c < classes)
            add_value(&total[c], value[i]);
    }
    for (uint32_t c = 0; c < classes; c++)
        flush(&total[c]);
}

void pb_clusters_add(struct pb_clusters *clusters, const float *const *planes, size_t n)
{
    const uint32_t classes = clusters->shape.classes;

    for (size_t at = 0; at < n; at += CHUNK) {
        const size_t count = n - at < CHUNK ? n - at : CHUNK;

        count_pixels(clusters, planes[0] + at, count);
        for (uint32_t b = 0; b < clusters->shape.bands; b++)
            add_band(&clusters->total[b * classes], classes, planes[0] + at, planes[1 + b] + at,
                     count);
    }
}

/* Limb l of centre i, over all parts: below 2^53 in magnitude, so a double holds it. */
static int64_t limb_of(const int32_t *word, size_t stride, size_t parts)
{
    int64_t sum = 0;

    for (size_t p = 0; p < parts; p++)
        sum += word[p * stride];
    return sum;
}

void pb_clusters_add_sums(struct pb_clusters *clusters, const int32_t *sums, size_t stride,
                          size_t parts)
{
    const uint32_t classes = clusters->shape.classes, bands = clusters->shape.bands;

    for (uint32_t c = 0; c < classes; c++)
        clusters->pixels[c] += (uint64_t)limb_of(&sums[c], stride, parts);
    for (uint32_t l = 0; l < PB_CLUSTER_LIMBS; l++)
        for (uint32_t i = 0; i < classes * bands; i++) {
            const uint32_t at = pb_cluster_sums_at(classes, bands, l, i);
            const int64_t sum = limb_of(&sums[at], stride, parts);

            if (sum != 0)
                pb_exact_sum_add(&clusters->total[i].sum,
                                 ldexp((double)sum, (int)l * DIGIT_STEP + LOWEST_EXPONENT));
        }
}

void pb_clusters_merge(struct pb_clusters *into, const struct pb_clusters *from)
{
    for (uint32_t c = 0; c < into->shape.classes; c++)
        into->pixels[c] += from->pixels[c];
    for (uint32_t i = 0; i < pb_clusters_centres(&into->shape); i++)
        pb_exact_sum_merge(&into->total[i].sum, &from->total[i].sum);
}

/* --- centres --------------------------------------------------------------------------------- */

/* Whether class x comes after class y: by the centre in the first band, then in the next. */
static bool is_after(const struct pb_clusters_shape *shape, const float *centre, uint32_t x,
                     uint32_t y)
{
    for (uint32_t b = 0; b < shape->bands; b++, centre += shape->classes)
        if (centre[x] != centre[y])
            return centre[x] > centre[y];
    return false;
}

static void swap(const struct pb_clusters_shape *shape, float *centre, uint32_t x, uint32_t y)
{
    for (uint32_t b = 0; b < shape->bands; b++, centre += shape->classes) {
        const float held = centre[x];

        centre[x] = centre[y];
        centre[y] = held;
    }
}

static void sort(const struct pb_clusters_shape *shape, float *centre)
{
    for (uint32_t end = 1; end < shape->classes; end++)
        for (uint32_t c = end; c > 0 && is_after(shape, centre, c - 1, c); c--)
            swap(shape, centre, c - 1, c);
}

static void find_means(const struct pb_clusters *clusters, float *out)
{
    const struct pb_clusters_shape *const shape = &clusters->shape;

    for (uint32_t i = 0; i < pb_clusters_centres(shape); i++) {
        const uint64_t n = clusters->pixels[i % shape->classes];

        out[i] = n > 0 ? (float)pb_exact_mean(&clusters->total[i].sum, n) : clusters->centre[i];
    }
    if (shape->sorted)
        sort(shape, out);
}

static void give_results(const struct pb_clusters *clusters, bool at_rest, double *out)
{
    const uint32_t n = pb_clusters_centres(&clusters->shape);

    for (uint32_t i = 0; i < n; i++)
        out[i] = (double)clusters->centre[i];
    for (uint32_t c = 0; c < clusters->shape.classes; c++)
        out[n + c] = (double)clusters->pixels[c];
    out[n + clusters->shape.classes] = (double)clusters->round;
    out[n + clusters->shape.classes + 1] = at_rest ? 1.0 : 0.0;
}

uint32_t pb_clusters_end(struct pb_clusters *clusters, double *out_results)
{
    uint32_t others = 0;

    find_means(clusters, clusters->next);
    for (uint32_t i = 0; i < pb_clusters_centres(&clusters->shape); i++) /* NaN is the same */
        others += memcmp(&clusters->next[i], &clusters->centre[i], sizeof(float)) != 0;
    clusters->round++;
    give_results(clusters, others == 0, out_results);
    return others;
}

const float *pb_clusters_next(const struct pb_clusters *ended)
{
    return ended->next;
}
