/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* The reductions of several planes. */
#include "kernels/reduce/reduce_type.h"

#include <stdio.h>

/* --- clusters -------------------------------------------------------------------------------- */

static size_t clusters_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)samples;
    return pb_clusters_bytes(&reduce->clusters);
}

static int clusters_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)samples;
    return (int)reduce->clusters.rounds;
}

static void clusters_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes)
{
    const uint32_t classes = reduce->clusters.classes, centres = reduce->n_numbers;

    if (k < centres)
        (void)snprintf(text, bytes, "centre of class %u", k % classes + 1);
    else if (k < centres + classes)
        (void)snprintf(text, bytes, "pixels of class %u", k - centres + 1);
    else
        (void)snprintf(text, bytes, "%s", k == centres + classes ? "rounds" : "converged");
}

static void clusters_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                           const float *numbers, void *state)
{
    (void)samples;
    pb_clusters_begin(state, &reduce->clusters, numbers);
}

static void clusters_add(void *state, const float *const *planes, int32_t w, int32_t h)
{
    pb_clusters_add(state, planes, (size_t)w * (size_t)h);
}

static void clusters_merge(void *into, const void *from)
{
    pb_clusters_merge(into, from);
}

static uint32_t clusters_end(void *state, double *out)
{
    return pb_clusters_end(state, out);
}

static void clusters_again(void *state, const void *ended)
{
    pb_clusters_again(state, ended);
}

const struct pb_reduce_type pb_reduce_type_clusters = {
    clusters_bytes, clusters_rounds, clusters_name, clusters_begin,
    clusters_add,   clusters_merge,  clusters_end,  clusters_again};

/* --- components ------------------------------------------------------------------------------ */

static int components_rounds(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)reduce;
    (void)samples;
    return 1;
}

static size_t components_bytes(const struct pb_reduce *reduce, const struct pb_samples *samples)
{
    (void)samples;
    return pb_components_bytes(&reduce->components);
}

static void components_name(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes)
{
    static const char *const names[] = {"eigenvalue", "explained share"};
    const struct pb_components_shape *const shape = &reduce->components;
    const uint32_t bands = pb_components_of_band(shape, 0), place = k % pb_components_at(shape, 1);

    if (k + 1 == reduce->n)
        (void)snprintf(text, bytes, "pixels");
    else if (k >= bands)
        (void)snprintf(text, bytes, "%s", (k - bands) % 2 ? "standard deviation" : "mean");
    else if (place < PB_COMPONENT_VECTOR)
        (void)snprintf(text, bytes, "%s", names[place]);
    else
        (void)snprintf(text, bytes, "weight of band %u", place - PB_COMPONENT_VECTOR + 1);
}

static void components_begin(const struct pb_reduce *reduce, const struct pb_samples *samples,
                             const float *numbers, void *state)
{
    (void)samples;
    (void)numbers;
    pb_components_begin(state, &reduce->components);
}

static void components_add(void *state, const float *const *planes, int32_t w, int32_t h)
{
    pb_components_add(state, planes, w, h);
}

static void components_merge(void *into, const void *from)
{
    pb_components_merge(into, from);
}

static uint32_t components_end(void *state, double *out)
{
    pb_components_end(state, out);
    return 0;
}

/* There is no other round. */
static void components_again(void *state, const void *ended)
{
    (void)state;
    (void)ended;
}

const struct pb_reduce_type pb_reduce_type_components = {
    components_bytes, components_rounds, components_name, components_begin,
    components_add,   components_merge,  components_end,  components_again};
