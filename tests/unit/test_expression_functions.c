/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The expression language: how exact its functions are. */
#include "kernels/graph/graph.h"
#include "tests/unit/chain_fixture.h"

static double ulps(float a, double exact)
{
    const float near = (float)exact;
    const double ulp =
        fmax((double)nextafterf(fabsf(near), INFINITY) - (double)fabsf(near), 0x1p-149);

    return fabs((double)a - exact) / ulp;
}

START_TEST(power_is_nearly_correctly_rounded)
{
    enum { N = 20000 };
    static float x[N], y[N], out[N];
    const float *const at[2] = {x, y};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    uint32_t random = 99;
    double worst = 0.0;

    for (int k = 0; k < N; k++) {
        x[k] = ldexpf(fx_uniform(&random, 1.0f, 2.0f), (int)(fx_random(&random) % 8) - 4);
        y[k] = fx_uniform(&random, -20.0f, 20.0f);
    }
    ck_assert_int_eq(fx_expression("ab", "a ** b", &diag, &chain), 0);
    fx_run_row(chain, at, N, out);
    pb_chain_destroy(chain);
    for (int k = 0; k < N; k++) {
        ck_assert_msg(isfinite(out[k]), "%g ** %g", x[k], y[k]);
        worst = fmax(worst, ulps(out[k], pow((double)x[k], (double)y[k])));
    }
    ck_assert_msg(worst < 0.51, "%.3f ULP", worst);
}
END_TEST

static float from_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The largest error of an operation on every step-th float32 from `first` to `last`, by their bits,
 * as the loops for rows make it. */
static double worst_of(const char *text, double (*exact)(double), uint32_t first, uint32_t last,
                       uint32_t step)
{
    enum { N = 4096 };
    static float x[N], out[N];
    const float *const at[1] = {x};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    double worst = 0.0;

    ck_assert_int_eq(fx_expression("a", text, &diag, &chain), 0);
    for (uint64_t from = first; from <= last; from += (uint64_t)N * step) {
        for (uint32_t k = 0; k < N; k++)
            x[k] = from_bits((uint32_t)(from + (uint64_t)k * step < last ? from + k * step : last));
        fx_run_row(chain, at, N, out);
        for (int k = 0; k < N; k++) {
            ck_assert_msg(isfinite(out[k]), "%s of %a", text, x[k]);
            worst = fmax(worst, ulps(out[k], exact((double)x[k])));
        }
    }
    pb_chain_destroy(chain);
    return worst;
}

/* Subnormal ones, all others, and those next to the zero of the logarithm. */
START_TEST(log_is_within_one_ulp)
{
    ck_assert(worst_of("log(a)", log, 0x00000001u, 0x007fffffu, 1009) < 1.0);
    ck_assert(worst_of("log(a)", log, 0x00800000u, 0x7f7fffffu, 4001) < 1.0);
    ck_assert(worst_of("log(a)", log, 0x3f7f0000u, 0x3f810000u, 1) < 1.0);
    ck_assert(worst_of("log(a)", log, 0x3f000000u, 0x40000000u, 61) < 1.0);
}
END_TEST

/* To the largest and to the smallest result; those below FLT_MIN are rounded twice. */
START_TEST(exp_is_within_one_ulp)
{
    ck_assert(worst_of("exp(a)", exp, 0x00000000u, 0x42b17217u, 4001) < 1.0);
    ck_assert(worst_of("exp(a)", exp, 0x80000000u, 0xc2aeac4fu, 4001) < 1.0);
    ck_assert(worst_of("exp(a)", exp, 0x3f000000u, 0x40000000u, 61) < 1.0);
    ck_assert(worst_of("exp(a)", exp, 0xc2aeac50u, 0xc2cff1b4u, 31) <= 1.0);
}
END_TEST

START_TEST(log_and_exp_keep_nan_and_return_it_out_of_domain)
{
    ck_assert(isnan(pb_vm_eval(PB_VM_LOG, NAN, 0.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_LOG, 0.0f, 0.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_LOG, -0.0f, 0.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_LOG, -1e-40f, 0.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_LOG, -INFINITY, 0.0f, 0.0f)));
    ck_assert(pb_vm_eval(PB_VM_LOG, INFINITY, 0.0f, 0.0f) == INFINITY);
    ck_assert(pb_vm_eval(PB_VM_LOG, 1.0f, 0.0f, 0.0f) == 0.0f);
    ck_assert(isnan(pb_vm_eval(PB_VM_EXP, NAN, 0.0f, 0.0f)));
    ck_assert(pb_vm_eval(PB_VM_EXP, 0.0f, 0.0f, 0.0f) == 1.0f);
    ck_assert(pb_vm_eval(PB_VM_EXP, 88.73f, 0.0f, 0.0f) == INFINITY);
    ck_assert(pb_vm_eval(PB_VM_EXP, INFINITY, 0.0f, 0.0f) == INFINITY);
    ck_assert(pb_vm_eval(PB_VM_EXP, -104.0f, 0.0f, 0.0f) == 0.0f);
    ck_assert(pb_vm_eval(PB_VM_EXP, -INFINITY, 0.0f, 0.0f) == 0.0f);
}
END_TEST

/* Compares with min and max of NumPy, which are invalid when an operand is; of equal values the
 * bound. */
START_TEST(clamp_is_a_minimum_of_a_maximum)
{
    static const float of[] = {NAN, -INFINITY, -1.0f, -0.0f, 0.0f, 0.5f, 1.0f, INFINITY};
    enum { N = sizeof of / sizeof of[0] };

    for (int i = 0; i < N * N * N; i++) {
        const float x = of[i % N], low = of[i / N % N], high = of[i / N / N];
        const float want = pb_vm_eval(PB_VM_MIN, pb_vm_eval(PB_VM_MAX, x, low, 0.0f), high, 0.0f);
        const float got = pb_vm_eval(PB_VM_CLAMP, x, low, high);

        ck_assert_msg(isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want),
                      "%g of %g to %g: %g, not %g", x, low, high, got, want);
    }
}
END_TEST

START_TEST(arc_tangent_is_nearly_exact_in_every_quadrant)
{
    uint32_t random = 7;
    double worst = 0.0;

    for (int k = 0; k < 20000; k++) {
        const float y = ldexpf(fx_uniform(&random, -1.0f, 1.0f), (int)(fx_random(&random) % 9) - 4);
        const float x = fx_uniform(&random, -1.0f, 1.0f);

        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_ATAN2, y, x, 0.0f), atan2((double)y, (double)x)));
    }
    ck_assert_msg(worst < 0.51, "%.3f ULP", worst);
    ck_assert(pb_vm_eval(PB_VM_ATAN2, 0.0f, -2.0f, 0.0f) == (float)M_PI);
    ck_assert(pb_vm_eval(PB_VM_ATAN2, 0.0f, 2.0f, 0.0f) == 0.0f);
    ck_assert(pb_vm_eval(PB_VM_ATAN2, -3.0f, 0.0f, 0.0f) == (float)-M_PI_2);
    ck_assert(isnan(pb_vm_eval(PB_VM_ATAN2, 0.0f, 0.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_ATAN2, NAN, 1.0f, 0.0f)));
    ck_assert(isnan(pb_vm_eval(PB_VM_ATAN2, 1.0f, NAN, 0.0f)));
}
END_TEST

START_TEST(sine_and_cosine_are_nearly_correctly_rounded)
{
    uint32_t random = 5;
    double worst = 0.0;

    for (int k = 0; k < 200000; k++) {
        const int power = (int)(fx_random(&random) % 50) - 28;
        const float x = fminf(ldexpf(fx_uniform(&random, 1.0f, 2.0f), power), 4194304.0f);
        const float near = (float)((double)(k % 100000) * M_PI_2); /* next to a zero of one */

        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_SIN, x, 0.0f, 0.0f), sin((double)x)));
        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_COS, -x, 0.0f, 0.0f), cos((double)x)));
        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_SIN, near, 0.0f, 0.0f), sin((double)near)));
        worst = fmax(worst, ulps(pb_vm_eval(PB_VM_COS, near, 0.0f, 0.0f), cos((double)near)));
    }
    ck_assert_msg(worst < 0.51, "%.3f ULP", worst);
}
END_TEST

/* Compares random, whole and half numbers with the C library's definitions in float64. */
START_TEST(floor_mod_and_bits_are_exact)
{
    uint32_t random = 77;

    for (int k = 0; k < 100000; k++) {
        const int32_t whole = (int32_t)(fx_random(&random) % 33554433u) - 16777216;
        const uint32_t from = fx_random(&random) % 32u, most = 32u - from;
        const uint32_t n = 1u + fx_random(&random) % (most < 24u ? most : 24u);
        const double field = floor((double)(uint32_t)whole / ldexp(1.0, (int)from));
        const float x = ldexpf(fx_uniform(&random, -1.0f, 1.0f), (int)(fx_random(&random) % 40));
        const float y = k % 3 ? fx_uniform(&random, -9.0f, 9.0f) : (float)(1 + k % 50);
        const double rest = fmod((double)x, (double)y);
        const bool other = rest != 0.0 && (rest < 0.0) != (y < 0.0f);

        ck_assert(pb_vm_eval(PB_VM_BITS, (float)whole, (float)from, (float)n) ==
                  (float)fmod(field, ldexp(1.0, (int)n)));
        ck_assert(pb_vm_eval(PB_VM_FLOOR, x, 0.0f, 0.0f) == (float)floor((double)x));
        ck_assert(pb_vm_eval(PB_VM_MOD, x, y, 0.0f) == (float)(other ? rest + (double)y : rest));
    }
}
END_TEST

START_TEST(power_obeys_signs_and_poles)
{
    static const float x[] = {-2.0f, -2.0f, -2.0f, 0.0f, 0.0f,  0.0f,  5.0f,  -1.0f,
                              1.0f,  NAN,   2.0f,  2.0f, -3.0f, 1e30f, 1e-30f};
    static const float y[] = {5.0f,  6.0f, 0.3f, 2.0f,   -2.0f, 0.0f,  0.0f, 16777216.0f,
                              1e30f, 0.0f, NAN,  200.0f, -5.0f, -2.0f, 3.0f};
    static const float want[] = {-32.0f, 64.0f, NAN, 0.0f,           NAN,  1.0f, 1.0f, 1.0f, 1.0f,
                                 NAN,    NAN,   NAN, -1.0f / 243.0f, 0.0f, 0.0f};
    enum { N = sizeof x / sizeof x[0] };
    const float *const at[2] = {x, y};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float out[N];

    ck_assert_int_eq(fx_expression("ab", "a ** b", &diag, &chain), 0);
    fx_run_row(chain, at, N, out);
    pb_chain_destroy(chain);
    for (int k = 0; k < N; k++)
        ck_assert_msg(fx_same(out[k], want[k]) || fabsf(want[k]) < 1e-38f, "%g ** %g is %g, not %g",
                      x[k], y[k], out[k], want[k]);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("expression_functions");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, power_is_nearly_correctly_rounded);
    tcase_add_test(tests, log_is_within_one_ulp);
    tcase_add_test(tests, exp_is_within_one_ulp);
    tcase_add_test(tests, log_and_exp_keep_nan_and_return_it_out_of_domain);
    tcase_add_test(tests, clamp_is_a_minimum_of_a_maximum);
    tcase_add_test(tests, arc_tangent_is_nearly_exact_in_every_quadrant);
    tcase_add_test(tests, sine_and_cosine_are_nearly_correctly_rounded);
    tcase_add_test(tests, floor_mod_and_bits_are_exact);
    tcase_add_test(tests, power_obeys_signs_and_poles);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
