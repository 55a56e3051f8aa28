/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_LEAST_SQUARES_H
#define PB_LEAST_SQUARES_H
/* Least squares with few unknowns, in double with + - * / and sqrt alone: the same bits everywhere.
 * Matrices are kept column by column, `rows` numbers each. Any thread. */
#include <stdbool.h>
#include <stdint.h>

#define PB_LEAST_SQUARES_ROWS    64
#define PB_LEAST_SQUARES_COLUMNS 8

/* matrix = q * r: q has orthonormal columns as the matrix has, r is n x n and upper triangular,
 * column by column. False: column *out_dependent is a combination of those before it, but for 1e-7
 * of its length. */
bool pb_least_squares_qr(uint32_t rows, uint32_t n, const double *matrix, double *q, double *r,
                         uint32_t *out_dependent);

/* The pseudo-inverse, row by row of `rows` numbers: the unknowns that make |matrix * unknowns - x|
 * least are inverse * x. With sum_to_one those that add up to 1, and are inverse * x + constant;
 * else constants are 0. False as above. */
bool pb_least_squares_inverse(uint32_t rows, uint32_t n, const double *matrix, bool sum_to_one,
                              double *out_inverse, double *out_constant);
#endif
