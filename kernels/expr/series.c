/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation at Chebyshev's points, whose error is near the least that a polynomial of that
 * degree can have; then in powers of u. */
#include "kernels/expr/series.h"

#include <math.h>
#include <string.h>

/* Coefficients of Chebyshev's polynomials. */
static void interpolate(pb_series_function *function, const void *of, size_t n, double *chebyshev)
{
    double value[PB_SERIES_MAX];

    for (size_t j = 0; j < n; j++)
        value[j] = function(of, cos(M_PI * ((double)j + 0.5) / (double)n));
    for (size_t k = 0; k < n; k++) {
        chebyshev[k] = 0;
        for (size_t j = 0; j < n; j++)
            chebyshev[k] += value[j] * cos(M_PI * (double)k * ((double)j + 0.5) / (double)n);
        chebyshev[k] *= (k == 0 ? 1.0 : 2.0) / (double)n;
    }
}

/* T(k + 1) = 2 u T(k) - T(k - 1). */
static void to_powers(const double *chebyshev, size_t n, double *coefficient)
{
    double before[PB_SERIES_MAX + 1] = {0}, now[PB_SERIES_MAX + 1] = {1};

    memset(coefficient, 0, n * sizeof *coefficient);
    for (size_t k = 0; k < n; k++) {
        double next[PB_SERIES_MAX + 1] = {0};

        for (size_t i = 0; i < n; i++) {
            coefficient[i] += chebyshev[k] * now[i];
            next[i + 1] = (k == 0 ? 1.0 : 2.0) * now[i];
        }
        for (size_t i = 0; i < n; i++)
            next[i] -= k == 0 ? 0.0 : before[i];
        memcpy(before, now, sizeof before);
        memcpy(now, next, sizeof now);
    }
}

static double value_of(const double *coefficient, size_t n, double u)
{
    double value = 0;

    for (size_t k = n; k-- > 0;)
        value = value * u + coefficient[k];
    return value;
}

static int fits(pb_series_function *function, const void *of, double tolerance,
                const double *coefficient, size_t n)
{
    const int points = 4 * (int)n + 1;
    double most = 0, off = 0;

    for (int i = 0; i <= points; i++) {
        const double u = 2.0 * i / points - 1.0, value = function(of, u);

        most = fmax(most, fabs(value));
        off = fmax(off, fabs(value - value_of(coefficient, n, u)));
    }
    return off <= tolerance * most;
}

size_t pb_series_fit(pb_series_function *function, const void *of, double tolerance,
                     double coefficient[PB_SERIES_MAX])
{
    double chebyshev[PB_SERIES_MAX];
    size_t n = 1;

    for (;; n++) {
        interpolate(function, of, n, chebyshev);
        to_powers(chebyshev, n, coefficient);
        if (n == PB_SERIES_MAX || fits(function, of, tolerance, coefficient, n))
            return n;
    }
}
