/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_PREDICTOR_H
#define PB_PREDICTOR_H
/* TIFF predictors, applied to one row of a chunky block (samples of a pixel side by side) before
 * compression. Pure functions of their arguments. Thread: any. */
#include "kernels/codec/predictors.h"
#include "kernels/view.h"

#include <stdbool.h>
#include <stddef.h>

bool pb_type_is_float(enum pb_type type);

/* Predictor for "auto": 3 for floats, 2 for integers. */
int pb_predictor_auto(enum pb_type type);
/* Predictor 3 needs floats. */
bool pb_predictor_fits(int predictor, enum pb_type type);

/* in: n_px pixels of n_bands samples; out: as many bytes, not overlapping `in`. */
void pb_predict_row(int predictor, enum pb_type type, const void *in, size_t n_px, size_t n_bands,
                    void *out);
#endif
