/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_UNPREDICT_H
#define PB_UNPREDICT_H
/* Converts a decoded row of a TIFF block to samples in host byte order: the inverse of predictor.h,
 * and of the byte order. Pure functions. Thread: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* row: n_px pixels of n_bands samples of sample_bytes (1, 2, 4, 8), in place. predictor: 1, 2, or 3
 * for samples of 4 and 8 bytes. swap: the file has the other byte order (predictor 3 has its
 * own). temp: as many bytes as the row, used by predictor 3 only. */
void pb_unpredict_row(int predictor, size_t sample_bytes, bool swap, void *row, size_t n_px,
                      size_t n_bands, void *temp);

/* The same for one band with predictor 1 or 2: every step-th sample of the row from the first of
 * `in` on, in all n, packed to `out`. */
void pb_unpredict_band(int predictor, size_t sample_bytes, bool swap, const void *in, size_t step,
                       size_t n, void *out);

/* Copies every step-th sample from the first of `in`, in all n, packed to `out`. */
void pb_gather_samples(const void *in, size_t sample_bytes, size_t step, size_t n, void *out);
#endif
