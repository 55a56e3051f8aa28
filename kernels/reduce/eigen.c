/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* G. H. Golub and C. F. Van Loan, Matrix Computations, 4th edition, section 8.5. */
#include "kernels/reduce/eigen.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { SWEEPS_MAX = 60 }; /* convergence is quadratic: less than 12 are seen */

struct matrix {
    uint32_t n;
    double *a; /* row by row */
};

static double *at(const struct matrix *m, uint32_t row, uint32_t column)
{
    return &m->a[row * m->n + column];
}

/* Cosine and sine of the rotation that makes element (p, q) 0: of the two angles the smaller. */
static void find_rotation(double pp, double pq, double qq, double *out_c, double *out_s)
{
    const double tau = (qq - pp) / (2.0 * pq);
    const double root = sqrt(1.0 + tau * tau);
    const double t = tau >= 0.0 ? 1.0 / (tau + root) : 1.0 / (tau - root);

    *out_c = 1.0 / sqrt(1.0 + t * t);
    *out_s = t * *out_c;
}

/* Rows p and q of `m`. */
static void rotate_rows(const struct matrix *m, uint32_t p, uint32_t q, double c, double s)
{
    for (uint32_t k = 0; k < m->n; k++) {
        const double x = *at(m, p, k), y = *at(m, q, k);

        *at(m, p, k) = c * x - s * y;
        *at(m, q, k) = s * x + c * y;
    }
}

static void rotate_columns(const struct matrix *m, uint32_t p, uint32_t q, double c, double s)
{
    for (uint32_t k = 0; k < m->n; k++) {
        const double x = *at(m, k, p), y = *at(m, k, q);

        *at(m, k, p) = c * x - s * y;
        *at(m, k, q) = s * x + c * y;
    }
}

/* Whether the element is too small beside those of its diagonal to change them. */
static bool is_nothing(const struct matrix *m, uint32_t p, uint32_t q)
{
    const double size = fabs(*at(m, p, q));
    const double least = fmin(fabs(*at(m, p, p)), fabs(*at(m, q, q)));

    return size == 0.0 || (size < 1e-300) || least + size * 1e-3 == least;
}

/* One sweep over the elements above the diagonal. False: all of them are nothing. */
static bool sweep(const struct matrix *m, const struct matrix *vectors)
{
    bool turned = false;

    for (uint32_t p = 0; p < m->n; p++)
        for (uint32_t q = p + 1; q < m->n; q++) {
            double c, s;

            if (is_nothing(m, p, q))
                continue;
            find_rotation(*at(m, p, p), *at(m, p, q), *at(m, q, q), &c, &s);
            rotate_columns(m, p, q, c, s);
            rotate_rows(m, p, q, c, s);
            *at(m, p, q) = *at(m, q, p) = 0.0;
            rotate_rows(vectors, p, q, c, s);
            turned = true;
        }
    return turned;
}

/* The order of eigenvalues, stable. */
static void find_order(uint32_t n, const double *value, uint32_t *order)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;

        for (; k > 0 && value[order[k - 1]] < value[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

static void give_vector(uint32_t n, const double *vector, double *out)
{
    uint32_t greatest = 0;

    for (uint32_t i = 1; i < n; i++)
        greatest = fabs(vector[i]) > fabs(vector[greatest]) ? i : greatest;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (vector[greatest] < 0.0 ? -vector[i] : vector[i]) + 0.0; /* no -0 */
}

void pb_eigen_symmetric(uint32_t n, double *matrix, double *out_values, double *out_vectors)
{
    double found[PB_EIGEN_MAX * PB_EIGEN_MAX] = {0}, value[PB_EIGEN_MAX];
    uint32_t order[PB_EIGEN_MAX];
    const struct matrix m = {n, matrix}, vectors = {n, found};

    for (uint32_t i = 0; i < n; i++)
        *at(&vectors, i, i) = 1.0;
    for (int i = 0; i < SWEEPS_MAX && sweep(&m, &vectors); i++) {
    }
    for (uint32_t i = 0; i < n; i++)
        value[i] = *at(&m, i, i);
    find_order(n, value, order);
    for (uint32_t i = 0; i < n; i++) {
        out_values[i] = value[order[i]];
        give_vector(n, at(&vectors, order[i], 0), out_vectors + i * n);
    }
}
