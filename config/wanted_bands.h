/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_WANTED_BANDS_H
#define PB_WANTED_BANDS_H
/* Which bands a pipeline has to make: the outputs of its chain, for the check of the configuration
 * and for the plan alike. Pure; any thread. */
#include "config/input_values.h"

#include <stddef.h>

struct pb_pipeline_config;

#define PB_WANTED_BANDS_MAX 512

struct pb_wanted_bands {
    const char *name[PB_WANTED_BANDS_MAX]; /* each once; of the pipeline and of inputs */
    size_t n;
    size_t n_default; /* the first so many are those of a product that names none */
};

/* Bands of products that name none come first: those that steps name as their results, else the
 * inputs (names of the scene's bands). At least one when there is an input. 0, or -E2BIG: more than
 * PB_WANTED_BANDS_MAX. */
int pb_wanted_bands(const struct pb_pipeline_config *pipeline, const char *const *inputs,
                    size_t n_inputs, struct pb_wanted_bands *out);
/* Names of bands whose values products take for classes. Returns how many; borrowed. */
size_t pb_class_bands(const struct pb_pipeline_config *pipeline, const char *out[PB_BANDS_MAX]);
#endif
