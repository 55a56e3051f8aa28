/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lengths on the ground against those of published tables, and polynomials against what they stand
 * for. */
#include "kernels/expr/series.h"
#include "kernels/ground_unit.h"

#include "run_suite.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>

static const double square = 0.00669437999014131739; /* WGS 84 */

static bool is_near(double is, double wanted, double within)
{
    return fabs(is - wanted) <= within;
}

/* The lengths of a degree of longitude and latitude, to a metre, as handbooks have them of WGS 84.
 */
START_TEST(a_degree_has_the_length_of_the_handbooks)
{
    static const double table[][3] = {
        {0, 111320, 110574}, {15, 107550, 110649}, {30, 96486, 110852}, {45, 78847, 111132},
        {60, 55800, 111412}, {75, 28902, 111618},  {90, 0, 111694}};
    const struct pb_ground_unit unit = {
        .law = PB_GROUND_LATITUDE, .axis = 6378137, .square = square, .radians = M_PI / 180};

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        double metres[2];

        pb_ground_metres(&unit, table[i][0], metres);
        ck_assert_msg(is_near(metres[0], table[i][1], 1) && is_near(metres[1], table[i][2], 1),
                      "at %g: %.2f and %.2f", table[i][0], metres[0], metres[1]);
        pb_ground_metres(&unit, -table[i][0], metres);
        ck_assert(is_near(metres[0], table[i][1], 1) && is_near(metres[1], table[i][2], 1));
    }
}
END_TEST

/* EPSG Guidance Note 7-2: Mercator variant A (EPSG:3002) and the pseudo-Mercator (EPSG:3857) are
 * given there with a point each. */
START_TEST(mercator_has_the_latitudes_of_the_guidance_note)
{
    const struct pb_ground_unit makassar = {.law = PB_GROUND_MERCATOR,
                                            .axis = 6377397.155,
                                            .square = 0.081696831 * 0.081696831,
                                            .map_square = 0.081696831 * 0.081696831,
                                            .radians = 1 / (6377397.155 * 0.997),
                                            .origin = 900000};
    const struct pb_ground_unit web = {
        .law = PB_GROUND_MERCATOR, .axis = 6378137, .square = square, .radians = 1 / 6378137.0};

    ck_assert(is_near(pb_ground_latitude(&makassar, 569150.82) * 180 / M_PI, -3, 1e-7));
    ck_assert(is_near(pb_ground_latitude(&web, 2800000.0) * 180 / M_PI, 24.381786944, 1e-7));
}
END_TEST

START_TEST(a_law_that_is_even_is_that_of_the_middle)
{
    const struct pb_ground_unit unit = {.metres = {0.3048, 0.3048}};
    double metres[2];

    pb_ground_metres(&unit, 1e6, metres);
    ck_assert(metres[0] == 0.3048 && metres[1] == 0.3048); /* NOLINT: the same number */
}
END_TEST

static double cosine(const void *of, double u)
{
    return cos(*(const double *)of * u);
}

static double hyperbolic(const void *of, double u)
{
    return cosh(*(const double *)of * u);
}

static void check_series(pb_series_function *function, double reach, size_t most)
{
    double coefficient[PB_SERIES_MAX], largest = fabs(function(&reach, 1));
    const size_t n = pb_series_fit(function, &reach, 1e-8, coefficient);

    ck_assert_msg(n <= most, "%zu coefficients", n);
    for (double u = -1; u <= 1; u += 0.001) {
        double value = 0;

        for (size_t k = n; k-- > 0;)
            value = value * u + coefficient[k];
        ck_assert_msg(is_near(value, function(&reach, u), 1.1e-8 * fmax(largest, 1)),
                      "%zu coefficients, at %g: %.12g", n, u, value);
    }
}

START_TEST(series_reach_the_tolerance_with_the_fewest_terms)
{
    check_series(cosine, 1e-5, 1);      /* a small scene: one number */
    check_series(cosine, 0.01, 3);      /* a degree */
    check_series(cosine, M_PI_2, 13);   /* up to both poles */
    check_series(hyperbolic, M_PI, 17); /* all of web Mercator */
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("ground_unit");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, a_degree_has_the_length_of_the_handbooks);
    tcase_add_test(tests, mercator_has_the_latitudes_of_the_guidance_note);
    tcase_add_test(tests, a_law_that_is_even_is_that_of_the_middle);
    tcase_add_test(tests, series_reach_the_tolerance_with_the_fewest_terms);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
