/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0 */
/* ctest: arm64 */
#include "pipeline/codec/quantize.h"
#include "tests/unit/chain_fixture.h"

static int cast_to(const char *type, const float *in, int32_t n, float *out, struct pb_diag *diag)
{
    const struct pb_item item = {.text = type};
    const char *const output = "a";
    struct fx_step step;
    struct pb_chain *chain = NULL;
    size_t at;

    fx_op(&step, "cast");
    fx_arg(&step, "type", &item, 1);
    const int rc = fx_create("a", &step, 1, &output, 1, diag, &at, &chain);
    if (rc == 0)
        fx_run_row(chain, &in, n, out);
    pb_chain_destroy(chain);
    return rc;
}

START_TEST(values_are_rounded_to_even_and_saturate)
{
    static const float in[] = {0.5f,    1.5f,  2.5f,     -0.5f, -1.5f,  254.5f, 255.5f,
                               1000.0f, -7.0f, 40000.4f, 1e10f, -1e10f, NAN,    0.49f};
    enum { N = sizeof in / sizeof in[0] };
    static const struct {
        const char *type;
        float want[N];
    } cases[] = {
        {"uint8", {0, 2, 2, 0, 0, 254, 255, 255, 0, 255, 255, 0, NAN, 0}},
        {"int16", {0, 2, 2, 0, -2, 254, 256, 1000, -7, 32767, 32767, -32768, NAN, 0}},
        {"uint16", {0, 2, 2, 0, 0, 254, 256, 1000, 0, 40000, 65535, 0, NAN, 0}},
        {"int32",
         {0, 2, 2, 0, -2, 254, 256, 1000, -7, 40000, 2147483648.0f, -2147483648.0f, NAN, 0}},
        {"uint32", {0, 2, 2, 0, 0, 254, 256, 1000, 0, 40000, 4294967296.0f, 0, NAN, 0}},
        {"float32",
         {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 254.5f, 255.5f, 1000.0f, -7.0f, 40000.4f, 1e10f, -1e10f,
          NAN, 0.49f}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_diag diag;
        float out[N];

        ck_assert_int_eq(cast_to(cases[i].type, in, N, out, &diag), 0);
        for (int k = 0; k < N; k++)
            ck_assert_msg(fx_same(out[k], cases[i].want[k]), "%s of %g is %g", cases[i].type, in[k],
                          out[k]);
    }
}
END_TEST

/* cast and then a product of that type holds what the product alone would: numpy's rint and clip in
 * float64. 2147483647 is no float32: its neighbours are 2147483520 and 2147483648. */
START_TEST(product_of_the_cast_type_is_the_same_without_cast)
{
    static const float in[] = {2147483520.0f, 2147483648.0f,  3e9f,           1e30f,  4294967040.0f,
                               4294967296.0f, -2147483648.0f, -2147483904.0f, -1e30f, -1.0f,
                               8.5f};
    enum { N = sizeof in / sizeof in[0] };
    const struct {
        const char *type;
        enum pb_type stored;
        double low, high, nodata;
    } cases[] = {{"int32", PB_I32, INT32_MIN, INT32_MAX, 7}, {"uint32", PB_U32, 0, UINT32_MAX, 7}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_quantizer q;
        struct pb_diag diag;
        float cast[N];
        uint32_t with[N], without[N];

        ck_assert_int_eq(cast_to(cases[i].type, in, N, cast, &diag), 0);
        ck_assert_int_eq(pb_quantizer_init(&q, cases[i].stored, cases[i].nodata), 0);
        pb_quantize(&q, cast, N, with, 1);
        pb_quantize(&q, in, N, without, 1);
        for (int k = 0; k < N; k++) {
            const double want = rint(fmin(fmax((double)in[k], cases[i].low), cases[i].high));

            ck_assert_uint_eq(without[k], (uint32_t)(int64_t)want);
            ck_assert_uint_eq(with[k], without[k]);
        }
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("op_cast");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, values_are_rounded_to_even_and_saturate);
    tcase_add_test(tests, product_of_the_cast_type_is_the_same_without_cast);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
