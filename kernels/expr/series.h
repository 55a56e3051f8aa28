/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_SERIES_H
#define PB_SERIES_H
/* A smooth function of one number as a polynomial, for pixels: only multiplications and additions,
 * so every device makes the same bits of it. Pure arithmetic. Thread: any. */
#include <stddef.h>

#define PB_SERIES_MAX 24

typedef double pb_series_function(const void *of, double u);

/* coefficient[k] of u^k, for u from -1 to 1: as few as keep the polynomial within `tolerance` times
 * the largest value, at most PB_SERIES_MAX. Returns how many. */
size_t pb_series_fit(pb_series_function *function, const void *of, double tolerance,
                     double coefficient[PB_SERIES_MAX]);
#endif
