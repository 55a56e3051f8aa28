/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/moments.h"
#include "kernels/reduce/reduce_type.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- moments --------------------------------------------------------------------------------- */

static size_t moments_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)reduce;
    (void)samples;
    return sizeof(struct pb_moments);
}

static int moments_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)reduce;
    (void)samples;
    return 1;
}

static void moments_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes)
{
    static const char *const names[PB_MOMENTS_N] = {"mean", "standard deviation", "minimum",
                                                    "maximum"};

    (void)reduce;
    (void)snprintf(text, bytes, "%s", names[k]);
}

static void moments_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                          const float *numbers, void *state)
{
    (void)reduce;
    (void)samples;
    (void)numbers;
    pb_moments_begin(state);
}

static void moments_add(void *state, const float *const *planes, int32_t w, int32_t h)
{
    pb_moments_add(state, planes[0], w, h);
}

static void moments_merge(void *into, const void *from)
{
    pb_moments_merge(into, from);
}

static uint32_t moments_end(void *state, double *out)
{
    const struct pb_moments *const moments = state;

    for (int i = 0; i < PB_MOMENTS_N; i++)
        out[i] = (double)NAN;
    if (moments->valid == 0)
        return 0;
    pb_moments_result(moments, &out[PB_MOMENTS_MEAN], &out[PB_MOMENTS_STDDEV]);
    out[PB_MOMENTS_MINIMUM] = (double)moments->min;
    out[PB_MOMENTS_MAXIMUM] = (double)moments->max;
    return 0;
}

static void moments_again(void *state, const void *ended)
{
    (void)ended;
    pb_moments_begin(state);
}

/* --- percentiles ----------------------------------------------------------------------------- */

static size_t percentiles_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    return pb_percentiles_bytes(reduce->n, samples);
}

static int percentiles_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)reduce;
    return pb_percentiles_rounds(samples);
}

static void percentiles_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes)
{
    int digits = 6; /* count of digits that tell it from every other number */

    do {
        (void)snprintf(text, bytes, "percentile %.*g", digits, reduce->p[k]);
    } while (strtod(text + strlen("percentile "), NULL) != reduce->p[k] && digits++ < 17);
}

static void percentiles_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                              const float *numbers, void *state)
{
    (void)numbers;
    pb_percentiles_begin(state, reduce->p, reduce->n, samples);
}

static void percentiles_add(void *state, const float *const *planes, int32_t w, int32_t h)
{
    pb_percentiles_add(state, planes[0], (size_t)w * (size_t)h);
}

static void percentiles_merge(void *into, const void *from)
{
    pb_percentiles_merge(into, from);
}

static uint32_t percentiles_end(void *state, double *out)
{
    return !pb_percentiles_end(state, out);
}

static void percentiles_again(void *state, const void *ended)
{
    pb_percentiles_again(state, ended);
}

/* --- threshold ------------------------------------------------------------------------------- */

static size_t threshold_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)reduce;
    return pb_threshold_bytes(samples);
}

static int threshold_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)reduce;
    return pb_threshold_rounds(samples);
}

static void threshold_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes)
{
    static const char *const names[PB_THRESHOLD_N] = {"threshold", "pixels of class 0",
                                                      "pixels of class 1", "bin width"};

    (void)reduce;
    (void)snprintf(text, bytes, "%s", names[k]);
}

static void threshold_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                            const float *numbers, void *state)
{
    (void)reduce;
    (void)numbers;
    pb_threshold_begin(state, samples);
}

static void threshold_add(void *state, const float *const *planes, int32_t w, int32_t h)
{
    pb_threshold_add(state, planes[0], (size_t)w * (size_t)h);
}

static void threshold_merge(void *into, const void *from)
{
    pb_threshold_merge(into, from);
}

static uint32_t threshold_end(void *state, double *out)
{
    return !pb_threshold_end(state, out);
}

static void threshold_again(void *state, const void *ended)
{
    pb_threshold_again(state, ended);
}

static const struct pb_reduce_type moments = {moments_bytes, moments_rounds, moments_name,
                                              moments_begin, moments_add,    moments_merge,
                                              moments_end,   moments_again};
static const struct pb_reduce_type percentiles = {
    percentiles_bytes, percentiles_rounds, percentiles_name, percentiles_begin,
    percentiles_add,   percentiles_merge,  percentiles_end,  percentiles_again};
static const struct pb_reduce_type threshold = {threshold_bytes, threshold_rounds, threshold_name,
                                                threshold_begin, threshold_add,    threshold_merge,
                                                threshold_end,   threshold_again};

static const struct pb_reduce_type *const types[PB_REDUCE_COUNT] = {
    [PB_REDUCE_MOMENTS] = &moments,
    [PB_REDUCE_PERCENTILES] = &percentiles,
    [PB_REDUCE_THRESHOLD] = &threshold,
    [PB_REDUCE_CLUSTERS] = &pb_reduce_type_clusters,
    [PB_REDUCE_COMPONENTS] = &pb_reduce_type_components,
};

/* --- for all --------------------------------------------------------------------------------- */

/* Of one plane. */
static struct pb_reduce plain(int32_t kind, uint32_t n)
{
    struct pb_reduce reduce;

    memset(&reduce, 0, sizeof reduce);
    reduce.kind = kind;
    reduce.n = n;
    reduce.n_inputs = 1;
    return reduce;
}

struct pb_reduce pb_reduce_moments(void)
{
    return plain(PB_REDUCE_MOMENTS, PB_MOMENTS_N);
}

struct pb_reduce pb_reduce_percentiles(const double *p, uint32_t n)
{
    struct pb_reduce reduce = plain(PB_REDUCE_PERCENTILES, n);

    for (uint32_t i = 0; i < n; i++)
        reduce.p[i] = p[i];
    return reduce;
}

struct pb_reduce pb_reduce_threshold(void)
{
    return plain(PB_REDUCE_THRESHOLD, PB_THRESHOLD_N);
}

struct pb_reduce pb_reduce_clusters(const struct pb_clusters_shape *shape)
{
    struct pb_reduce reduce = plain(PB_REDUCE_CLUSTERS, pb_clusters_results(shape));

    reduce.n_inputs = 1 + shape->bands;
    reduce.n_numbers = pb_clusters_centres(shape);
    reduce.clusters.classes = shape->classes;
    reduce.clusters.bands = shape->bands;
    reduce.clusters.rounds = shape->rounds;
    reduce.clusters.sorted = shape->sorted;
    return reduce;
}

struct pb_reduce pb_reduce_components(const struct pb_components_shape *shape)
{
    struct pb_reduce reduce = plain(PB_REDUCE_COMPONENTS, pb_components_results(shape));

    reduce.n_inputs = shape->bands;
    reduce.components = *shape;
    return reduce;
}

bool pb_reduce_is_spread(const struct pb_reduce *reduce, uint32_t k)
{
    return reduce->kind == PB_REDUCE_MOMENTS && k == PB_MOMENTS_STDDEV;
}

void pb_reduce_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes)
{
    types[reduce->kind]->name(reduce, k, text, bytes);
}

size_t pb_reduce_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    return types[reduce->kind]->bytes(reduce, samples);
}

int pb_reduce_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    return types[reduce->kind]->rounds(reduce, samples);
}

void pb_reduce_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                     const float *numbers, void *state)
{
    types[reduce->kind]->begin(reduce, samples, numbers, state);
}

void pb_reduce_add(const struct pb_reduce *reduce, void *state, const float *const *planes,
                   int32_t w, int32_t h)
{
    types[reduce->kind]->add(state, planes, w, h);
}

bool pb_reduce_has_sums(const struct pb_reduce *reduce)
{
    return reduce->kind == PB_REDUCE_CLUSTERS;
}

void pb_reduce_add_sums(const struct pb_reduce *reduce, void *state, const int32_t *sums,
                        size_t stride, size_t parts)
{
    if (reduce->kind == PB_REDUCE_CLUSTERS)
        pb_clusters_add_sums(state, sums, stride, parts);
}

void pb_reduce_merge(const struct pb_reduce *reduce, void *into, const void *from)
{
    types[reduce->kind]->merge(into, from);
}

uint32_t pb_reduce_end(const struct pb_reduce *reduce, void *state, double *out_results)
{
    return types[reduce->kind]->end(state, out_results);
}

const float *pb_reduce_next(const struct pb_reduce *reduce, const void *state)
{
    return reduce->kind == PB_REDUCE_CLUSTERS ? pb_clusters_next(state) : NULL;
}

void pb_reduce_again(const struct pb_reduce *reduce, void *state, const void *ended)
{
    types[reduce->kind]->again(state, ended);
}
