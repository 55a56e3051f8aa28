/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/reduce/least_squares.h"

#include <math.h>
#include <string.h>

enum { N = PB_LEAST_SQUARES_COLUMNS };
/* Below it float32 pixels do not tell the columns apart: abundances are wrong by 0.1 % and more. */
#define DEPENDENT 1e-4

static double dot(uint32_t n, const double *x, const double *y)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Takes what lies along the columns 0 .. k - 1 of q away from column k, and adds it to r. */
static void part_from(uint32_t rows, uint32_t k, double *q, double *r_column)
{
    for (uint32_t j = 0; j < k; j++) {
        const double along = dot(rows, q + j * rows, q + k * rows);

        r_column[j] += along;
        for (uint32_t i = 0; i < rows; i++)
            q[k * rows + i] -= along * q[j * rows + i];
    }
}

/* Gram and Schmidt, twice: then the columns are orthogonal to the last bits. */
bool pb_least_squares_qr(uint32_t rows, uint32_t n, const double *matrix, double *q, double *r,
                         uint32_t *out_dependent)
{
    memcpy(q, matrix, (size_t)rows * n * sizeof *q);
    memset(r, 0, (size_t)n * n * sizeof *r);
    for (uint32_t k = 0; k < n; k++) {
        double *const column = q + k * rows;
        const double before = sqrt(dot(rows, column, column));

        part_from(rows, k, q, r + k * n);
        part_from(rows, k, q, r + k * n);
        const double length = sqrt(dot(rows, column, column));
        *out_dependent = k;
        if (!(length > DEPENDENT * before))
            return false;
        for (uint32_t i = 0; i < rows; i++)
            column[i] /= length;
        r[k * n + k] = length;
    }
    return true;
}

/* r * out = the rows of q: from the last unknown up. */
static void solve(uint32_t rows, uint32_t n, const double *q, const double *r, double *out)
{
    for (uint32_t k = n; k-- > 0;)
        for (uint32_t i = 0; i < rows; i++) {
            double left = q[k * rows + i];

            for (uint32_t j = k + 1; j < n; j++)
                left -= r[j * n + k] * out[j * rows + i];
            out[k * rows + i] = left / r[k * n + k];
        }
}

/* What is missing of a sum of 1 is shared out as it costs least: by the sums of the rows of the
 * inverse of matrix' * matrix, which is inverse * inverse'. */
static void add_up_to_one(uint32_t rows, uint32_t n, double *inverse, double *constant)
{
    double all[PB_LEAST_SQUARES_ROWS] = {0}, total = 0.0;

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < rows; i++)
            all[i] += inverse[k * rows + i];
    for (uint32_t k = 0; k < n; k++)
        total += constant[k] = dot(rows, inverse + k * rows, all);
    for (uint32_t k = 0; k < n; k++) {
        constant[k] /= total;
        for (uint32_t i = 0; i < rows; i++)
            inverse[k * rows + i] -= constant[k] * all[i];
    }
}

bool pb_least_squares_inverse(uint32_t rows, uint32_t n, const double *matrix, bool sum_to_one,
                              double *out_inverse, double *out_constant)
{
    double q[PB_LEAST_SQUARES_ROWS * N], r[N * N];
    uint32_t dependent;

    if (!pb_least_squares_qr(rows, n, matrix, q, r, &dependent))
        return false;
    solve(rows, n, q, r, out_inverse);
    memset(out_constant, 0, n * sizeof *out_constant);
    if (sum_to_one)
        add_up_to_one(rows, n, out_inverse, out_constant);
    return true;
}
