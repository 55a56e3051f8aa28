/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PB_EIGEN_H
#define PB_EIGEN_H
/* Eigenvalues and eigenvectors of small symmetric matrices by cyclic Jacobi rotations, in double
 * with + - * / and sqrt alone: the same bits everywhere. Any thread. */
#include <stdint.h>

#define PB_EIGEN_MAX 16

/* matrix: n x n, row by row, n up to PB_EIGEN_MAX, symmetric and finite; it is used up. Eigenvalues
 * from the greatest down, equal ones in the order of the diagonal, and eigenvectors of length 1 as
 * rows of out_vectors, each with its element of the greatest magnitude (the first of equal ones)
 * positive. */
void pb_eigen_symmetric(uint32_t n, double *matrix, double *out_values, double *out_vectors);
#endif
