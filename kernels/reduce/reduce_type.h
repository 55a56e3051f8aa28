/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_REDUCE_TYPE_H
#define PB_REDUCE_TYPE_H
/* What reduce.c calls of each kind of reduction; as reduce.h describes it. */
#include "kernels/reduce/reduce.h"

struct pb_reduce_type {
    size_t (*bytes)(const struct pb_reduce *reduce, const struct pb_samples *samples);
    int (*rounds)(const struct pb_reduce *reduce, const struct pb_samples *samples);
    void (*name)(const struct pb_reduce *reduce, uint32_t k, char *text, size_t bytes);
    void (*begin)(const struct pb_reduce *reduce, const struct pb_samples *samples,
                  const float *numbers, void *state);
    void (*add)(void *state, const float *const *planes, int32_t w, int32_t h);
    void (*merge)(void *into, const void *from);
    uint32_t (*end)(void *state, double *out_results);
    void (*again)(void *state, const void *ended);
};

/* Of several planes: reduce_many.c. */
extern const struct pb_reduce_type pb_reduce_type_clusters, pb_reduce_type_components;
#endif
