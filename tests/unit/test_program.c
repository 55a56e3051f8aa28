/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * The interpreter: sample types, nodata, masks and scale against a computation of the test's own,
 * over tiles of awkward shape with guard bytes around the output; programs of many registers. */
#include "kernels/vm/program.h"
#include "tests/op_cases.h"
#include "tests/random_tile.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>

#define GUARD_FLOATS 32

/* Returns the value of a pixel of a band: valid and finite, as float32, scaled in float32. */
static float band_value(const struct random_image *image, uint32_t band, int32_t x, int32_t y,
                        bool has_nodata, double nodata, double scale, double offset)
{
    const double sample = tile_sample(image, band, x, y);
    const double stored = image->type == PB_F32 ? (double)(float)sample : sample;

    if (!tile_valid(image, x, y) || !isfinite(stored) || (has_nodata && stored == nodata))
        return NAN;
    if (scale == 1.0 && offset == 0.0)
        return (float)stored;
    const float product = (float)stored * (float)scale;
    return product + (float)offset;
}

/* Runs one random tile of (p1 - p0) / (p1 + p0) style work and compares every pixel. */
static void check_random_tile(uint32_t *random, enum pb_type type, bool has_nodata, double scale,
                              double offset)
{
    const struct random_image image = {.seed = fx_random(random),
                                       .type = type,
                                       .w = 1 + (int32_t)(fx_random(random) % 1300),
                                       .h = 1 + (int32_t)(fx_random(random) % 12),
                                       .masked = fx_random(random) % 2 == 1};
    const struct pb_chain_input inputs[] = {{.name = "p0",
                                             .type = type,
                                             .has_nodata = has_nodata,
                                             .nodata = TILE_NODATA,
                                             .scale = scale,
                                             .offset = offset},
                                            {.name = "p1",
                                             .type = type,
                                             .has_nodata = has_nodata,
                                             .nodata = TILE_NODATA,
                                             .scale = scale,
                                             .offset = offset},
                                            {.name = "p2",
                                             .type = type,
                                             .has_nodata = has_nodata,
                                             .nodata = TILE_NODATA,
                                             .scale = scale,
                                             .offset = offset}};
    const struct pb_item item = {.key = "X", .text = "(p2 - p0) / (p2 + p0)"};
    const char *const outputs[] = {"X", "p2"};
    struct fx_step step;
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t at;

    fx_op(&step, "math");
    fx_arg(&step, "bands", &item, 1);
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 3,
                                       .steps = &step.step,
                                       .n_steps = 1,
                                       .outputs = outputs,
                                       .n_outputs = 2};
    ck_assert_int_eq(pb_chain_create(&spec, &diag, &at, &chain), 0);

    struct pb_rect core = {(int32_t)(fx_random(random) % (uint32_t)image.w),
                           (int32_t)(fx_random(random) % (uint32_t)image.h), 0, 0};
    core.w = 1 + (int32_t)(fx_random(random) % (uint32_t)(image.w - core.x));
    core.h = 1 + (int32_t)(fx_random(random) % (uint32_t)(image.h - core.y));
    const size_t n = (size_t)core.w * (size_t)core.h, plane_px = n + fx_random(random) % 5;
    const size_t floats = 2 * plane_px + 2 * GUARD_FLOATS;
    float *const data = malloc(floats * sizeof *data);
    const struct pb_tile_out out = {data + GUARD_FLOATS, plane_px};
    struct random_tile tile;

    ck_assert_ptr_nonnull(data);
    memset(data, 0x5a, floats * sizeof *data);
    ck_assert(random_tile_make(&image, &core, (int32_t)(fx_random(random) % 3), (uint32_t[]){0, 2},
                               2, fx_random(random) % 4, &tile));
    ck_assert_int_eq(fx_run(chain, &tile.in, &out), 0);
    for (size_t i = 0; i < floats; i++) {
        const size_t px = i - GUARD_FLOATS;
        const bool written = i >= GUARD_FLOATS && px < 2 * plane_px && px % plane_px < n;

        if (!written)
            ck_assert_int_eq(memcmp(&data[i], "\x5a\x5a\x5a\x5a", 4), 0);
    }
    for (size_t i = 0; i < n; i++) {
        const int32_t x = core.x + (int32_t)i % core.w, y = core.y + (int32_t)i / core.w;
        const float a = band_value(&image, 2, x, y, has_nodata, TILE_NODATA, scale, offset);
        const float b = band_value(&image, 0, x, y, has_nodata, TILE_NODATA, scale, offset);
        const float q = a + b == 0.0f ? NAN : (a - b) / (a + b);

        ck_assert_msg(fx_same(out.data[plane_px + i], a), "type %d: %g, not %g", type,
                      out.data[plane_px + i], a);
        ck_assert_msg(fx_same(out.data[i], isfinite(q) ? q : NAN), "type %d at %d %d: %g, not %g",
                      type, x, y, out.data[i], q);
    }
    random_tile_free(&tile);
    free(data);
    pb_chain_destroy(chain);
}

START_TEST(every_type_nodata_mask_and_scale_at_odd_sizes)
{
    uint32_t random = 5;

    for (int type = 0; type < PB_TYPE_COUNT; type++)
        for (int variant = 0; variant < 6; variant++)
            for (int i = 0; i < 4; i++)
                check_random_tile(&random, (enum pb_type)type, variant % 2,
                                  variant / 2 ? 0.0001 : 1.0, variant / 2 == 2 ? -0.1 : 0.0);
}
END_TEST

/* One pixel of a type through a chain that copies it. */
static float copied(enum pb_type type, const void *sample, bool has_nodata, double nodata)
{
    const struct pb_chain_input input = {.name = "a",
                                         .type = type,
                                         .has_nodata = has_nodata,
                                         .nodata = nodata,
                                         .scale = 1.0,
                                         .offset = 0.0};
    const char *const output = "a";
    const struct pb_chain_spec spec = {.inputs = &input,
                                       .n_inputs = 1,
                                       .steps = NULL,
                                       .n_steps = 0,
                                       .outputs = &output,
                                       .n_outputs = 1};
    const struct pb_rect px = {0, 0, 1, 1};
    double own[1]; /* any sample's size */
    const struct pb_tile_in in = {
        {{memcpy(own, sample, pb_type_bytes(type)), 8, 8, NULL, 0, px}}, px, 1, 1};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float x = -1.0f;
    size_t at;

    ck_assert_int_eq(pb_chain_create(&spec, &diag, &at, &chain), 0);
    ck_assert_int_eq(fx_run(chain, &in, &(struct pb_tile_out){&x, 1}), 0);
    pb_chain_destroy(chain);
    return x;
}

START_TEST(nodata_is_compared_in_the_bands_own_type)
{
    _Alignas(8) const uint8_t u8 = 255;
    _Alignas(8) const int16_t i16 = -32768;
    _Alignas(8) const int32_t i32 = 2147483647;
    _Alignas(8) const uint32_t u32 = 4294967295u;
    _Alignas(8) const float f32 = 0.1f, lowest = -FLT_MAX, infinite = INFINITY;
    _Alignas(8) const double f64 = 0.1, huge = 1e300;

    ck_assert(isnan(copied(PB_U8, &u8, true, 255.0)));
    ck_assert(copied(PB_U8, &u8, true, -1.0) == 255.0f);
    ck_assert(copied(PB_U8, &u8, true, 255.5) == 255.0f);
    ck_assert(copied(PB_U8, &u8, true, NAN) == 255.0f);
    ck_assert(isnan(copied(PB_I16, &i16, true, -32768.0)));
    ck_assert(isnan(copied(PB_I32, &i32, true, 2147483647.0)));
    ck_assert(copied(PB_I32, &i32, true, 2147483646.0) == 2147483648.0f);
    ck_assert(isnan(copied(PB_U32, &u32, true, 4294967295.0)));
    ck_assert(copied(PB_U32, &u32, true, 4294967294.0) == 4294967296.0f);
    ck_assert(copied(PB_U32, &u32, true, -1.0) == 4294967296.0f);
    ck_assert(isnan(copied(PB_F32, &f32, true, 0.1)));
    ck_assert(isnan(copied(PB_F32, &lowest, true, -3.4028234663852886e+38)));
    ck_assert(copied(PB_F32, &lowest, true, -1e300) == -FLT_MAX);
    ck_assert(isnan(copied(PB_F32, &infinite, false, 0.0)));
    ck_assert(isnan(copied(PB_F64, &f64, true, 0.1)));
    ck_assert(isnan(copied(PB_F64, &f64, true, (double)0.1f))); /* like GDAL: see test_nodata.c */
    ck_assert(copied(PB_F64, &f64, true, 0.1000001) == 0.1f);
    ck_assert(isnan(copied(PB_F64, &huge, false, 0.0)));
}
END_TEST

/* n values that are all needed twice, so that all are alive at once, and too large to be computed
 * again. Returns create's result. */
static int many_values(int n, struct pb_diag *diag, struct pb_chain **out_chain)
{
    static char texts[300][64], names[300][8], sums[2][4096];
    static struct pb_item items[302];
    const char *const outputs[] = {"S", "D"};
    struct fx_step step;
    size_t at;

    for (int i = 0; i < n; i++) {
        sprintf(names[i], "v%d", i);
        sprintf(texts[i], "((a + %d) * (b - %d) + a * 0.5) / (b * b + 1.5)", i, i);
        items[i] = (struct pb_item){.key = names[i], .text = texts[i]};
    }
    for (int k = 0; k < 2; k++) {
        char *to = sums[k] + sprintf(sums[k], "v0");

        for (int i = 1; i < n; i++)
            to += sprintf(to, "%cv%d", "+-"[k], i);
        items[n + k] = (struct pb_item){.key = outputs[k], .text = sums[k]};
    }
    fx_op(&step, "math");
    fx_arg(&step, "bands", items, (size_t)n + 2);
    return fx_create("ab", &step, 1, outputs, 2, diag, &at, out_chain);
}

static unsigned registers_of(const struct pb_chain *chain)
{
    char text[200];
    unsigned instructions, registers;

    ck_assert_int_gt(pb_chain_describe(chain, text, sizeof text), 0);
    ck_assert_int_eq(
        sscanf(text, "stage 1: %u instructions, %u registers", &instructions, &registers), 2);
    return registers;
}

START_TEST(values_beyond_the_soft_limit_get_own_registers)
{
    enum { N = 1000 };
    static float a[N], b[N], out[2 * N];
    const float *const planes[] = {a, b};
    uint32_t random = 3;

    for (int k = 0; k < N; k++) {
        a[k] = fx_uniform(&random, -2.0f, 2.0f);
        b[k] = fx_uniform(&random, -2.0f, 2.0f);
    }
    for (int n = 2; n <= 252; n += 25) {
        struct pb_chain *chain = NULL;
        struct pb_diag diag;

        ck_assert_msg(many_values(n, &diag, &chain) == 0, "%d: %s", n, diag.msg);
        ck_assert_uint_ge(registers_of(chain), (unsigned)n);
        fx_run_row(chain, planes, N, out);
        for (int k = 0; k < N; k++) {
            const float divisor = b[k] * b[k] + 1.5f;
            float sum = (a[k] * b[k] + a[k] * 0.5f) / divisor, difference = sum;

            for (int i = 1; i < n; i++) {
                const float product = (a[k] + (float)i) * (b[k] - (float)i);
                const float v = (product + a[k] * 0.5f) / divisor;

                sum += v;
                difference -= v;
            }
            ck_assert_msg(fx_same(out[k], sum) && fx_same(out[N + k], difference), "%d values", n);
        }
        pb_chain_destroy(chain);
    }
}
END_TEST

START_TEST(too_many_values_at_once_are_refused_in_words)
{
    struct pb_chain *chain = NULL;
    struct pb_diag diag;

    ck_assert_int_eq(many_values(256, &diag, &chain), -EINVAL);
    ck_assert_int_eq(diag.kind, PB_DIAG_VALUE);
    ck_assert_ptr_nonnull(strstr(diag.msg, "at the same time"));
}
END_TEST

/* 52 bands, 64 outputs over all of them, 260 different products: samples are loaded again and small
 * values computed again rather than held. */
START_TEST(many_bands_and_outputs_fit_the_firm_limit)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@#";
    enum { BANDS = 52, OUTPUTS = 64, N = 40 };
    static char texts[OUTPUTS][512], names[OUTPUTS][8];
    static float px[BANDS][N], out[OUTPUTS * N];
    struct pb_item items[OUTPUTS];
    const char *outputs[OUTPUTS];
    const float *planes[BANDS];
    struct pb_chain *chain = NULL;
    struct fx_step step;
    struct pb_diag diag;
    uint32_t random = 8;
    char bands[BANDS + 1] = "";
    size_t at;

    memcpy(bands, letters, BANDS);
    for (int i = 0; i < OUTPUTS; i++) {
        char *to = texts[i] + sprintf(texts[i], "%d", i);

        for (int b = 0; b < BANDS; b++)
            to += sprintf(to, "+%c*%d", bands[b], 1 + (b * 7 + i) % 5);
        sprintf(names[i], "out%d", i);
        outputs[i] = names[i];
        items[i] = (struct pb_item){.key = names[i], .text = texts[i]};
    }
    for (int b = 0; b < BANDS; b++) {
        planes[b] = px[b];
        for (int k = 0; k < N; k++)
            px[b][k] = fx_uniform(&random, 0.0f, 1.0f);
    }
    fx_op(&step, "math");
    fx_arg(&step, "bands", items, OUTPUTS);
    ck_assert_msg(fx_create(bands, &step, 1, outputs, OUTPUTS, &diag, &at, &chain) == 0, "%s",
                  diag.msg);
    ck_assert_uint_le(registers_of(chain), PB_PROGRAM_REGISTERS_FIRM);
    fx_run_row(chain, planes, N, out);
    for (int i = 0; i < OUTPUTS; i++)
        for (int k = 0; k < N; k++) {
            float sum = (float)i;

            for (int b = 0; b < BANDS; b++)
                sum += px[b][k] * (float)(1 + (b * 7 + i) % 5);
            ck_assert_msg(fx_same(out[i * N + k], sum), "%g, not %g", out[i * N + k], sum);
        }
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(the_deeper_operand_comes_first)
{
    /* Left operand first would hold one register for each level. */
    char text[2000] = "";
    struct pb_chain *chain = NULL;
    struct pb_diag diag;

    for (int i = 0; i < 50; i++)
        sprintf(text + strlen(text), "(a * %d) %c (", i + 2, "+-"[i % 2]);
    strcat(text, "a");
    for (int i = 0; i < 50; i++)
        strcat(text, ")");
    ck_assert_int_eq(fx_expression("a", text, &diag, &chain), 0);
    ck_assert_uint_le(registers_of(chain), 3);
    pb_chain_destroy(chain);
}
END_TEST

/* --- random graphs --------------------------------------------------------------------------- */

enum { DAG_BANDS = 40, DAG_VALUES = 700, DAG_OUTPUTS = 60, DAG_PX = 5 };

/* Value i of a random graph from two earlier ones. Values are kept near 1, where errors show. */
static int dag_entry(uint32_t *random, int i, int reach, char *text, int operand[2])
{
    static const char *const forms[] = {"v%d + v%d * 0.5", "v%d - v%d", "v%d * v%d",
                                        "min(v%d, v%d)", "where(v%d > 0.5, v%d, 0.25)"};
    const int form = (int)(fx_random(random) % 5);

    for (int k = 0; k < 2; k++) {
        const int back = 1 + (int)(fx_random(random) % (uint32_t)reach);

        operand[k] = back > i ? 0 : i - back;
    }
    sprintf(text, forms[form], operand[0], operand[1]);
    return form;
}

static float dag_value(int form, float x, float y)
{
    const float half = y * 0.5f;
    const float r = form == 0   ? x + half
                    : form == 1 ? x - y
                    : form == 2 ? x * y
                    : form == 3 ? (isnan(x) || isnan(y) ? NAN : fminf(x, y))
                                : (isnan(x)   ? NAN
                                   : x > 0.5f ? y
                                              : 0.25f);
    return r;
}

static void check_random_graph(uint32_t *random, int reach)
{
    static char texts[DAG_VALUES][64], names[DAG_VALUES][8];
    static float value[DAG_VALUES][DAG_PX], out[DAG_OUTPUTS * DAG_PX];
    static struct pb_item items[DAG_VALUES];
    struct pb_chain_input inputs[DAG_BANDS];
    const char *outputs[DAG_OUTPUTS];
    const float *planes[DAG_BANDS];
    int wanted[DAG_OUTPUTS];
    struct pb_chain *chain = NULL;
    struct fx_step step;
    struct pb_diag diag;
    size_t at;

    for (int i = 0; i < DAG_VALUES; i++) {
        int operand[2] = {0, 0};

        sprintf(names[i], "v%d", i);
        items[i] = (struct pb_item){.key = names[i], .text = texts[i]};
        const int form = i < DAG_BANDS ? -1 : dag_entry(random, i, reach, texts[i], operand);
        for (int k = 0; k < DAG_PX; k++)
            value[i][k] = form < 0 ? fx_uniform(random, -1.5f, 1.5f)
                                   : dag_value(form, value[operand[0]][k], value[operand[1]][k]);
        if (i < DAG_BANDS) {
            inputs[i] = (struct pb_chain_input){.name = names[i], .type = PB_F32, .scale = 1.0};
            planes[i] = value[i];
        }
    }
    for (int i = 0; i < DAG_OUTPUTS; i++) {
        wanted[i] = DAG_BANDS + (int)(fx_random(random) % (DAG_VALUES - DAG_BANDS));
        outputs[i] = names[wanted[i]];
    }
    fx_op(&step, "math");
    fx_arg(&step, "bands", items + DAG_BANDS, DAG_VALUES - DAG_BANDS);
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = DAG_BANDS,
                                       .steps = &step.step,
                                       .n_steps = 1,
                                       .outputs = outputs,
                                       .n_outputs = DAG_OUTPUTS};
    const int rc = pb_chain_create(&spec, &diag, &at, &chain);
    if (rc < 0) { /* too many values at once is an answer too */
        ck_assert_ptr_nonnull(strstr(diag.msg, "at the same time"));
        return;
    }
    fx_run_row(chain, planes, DAG_PX, out);
    for (int i = 0; i < DAG_OUTPUTS; i++)
        for (int k = 0; k < DAG_PX; k++) {
            const float expected = value[wanted[i]][k];

            ck_assert_msg(fx_same(out[i * DAG_PX + k], isfinite(expected) ? expected : NAN),
                          "%s = %s: %g, not %g", outputs[i], texts[wanted[i]], out[i * DAG_PX + k],
                          expected);
        }
    pb_chain_destroy(chain);
}

START_TEST(random_graphs_under_register_pressure)
{
    uint32_t random = 4711;

    for (int i = 0; i < 60; i++)
        check_random_graph(&random, 20 + 15 * (i % 12));
}
END_TEST

START_TEST(tiles_that_lack_pixels_are_refused)
{
    static float px[64], out[64];
    const struct pb_tile_in good = {{{px, 32, 256, NULL, 0, {0, 0, 8, 8}}}, {2, 2, 4, 4}, 8, 8};
    const struct pb_tile_out to = {out, 16};
    const struct pb_op_case c = {
        "", "a", true, {{"kernel", {{.text = "box"}}}, {"size", {{"", "5", 5, 0, 0}}}}};
    struct pb_chain *chain = NULL;
    struct fx_step step;
    struct pb_diag diag;
    const char *const output = "a";
    size_t at;

    fx_op(&step, "convolve");
    ck_assert(op_case_params(&c, step.step.op, &step.params));
    ck_assert_msg(fx_create("a", &step, 1, &output, 1, &diag, &at, &chain) == 0, "%s", diag.msg);
    ck_assert_int_eq(pb_chain_halo(chain), 2);
    ck_assert_int_eq(fx_run(chain, &good, &to), 0);

    struct pb_tile_in in = good;
    in.window[0].rect = (struct pb_rect){1, 0, 7, 8};
    ck_assert_int_eq(fx_run(chain, &in, &to), -EINVAL);
    in = good;
    in.core.w = 7;
    ck_assert_int_eq(fx_run(chain, &in, &to), -EINVAL);
    in = good;
    in.image_w = 7;
    ck_assert_int_eq(fx_run(chain, &in, &to), -EINVAL);
    in = good;
    in.window[0].row_bytes = 28;
    ck_assert_int_eq(fx_run(chain, &in, &to), -EINVAL);
    in = good;
    in.window[0].row_bytes = 33;
    ck_assert_int_eq(fx_run(chain, &in, &to), -EINVAL);
    in = good;
    in.window[0].data = NULL;
    ck_assert_int_eq(fx_run(chain, &in, &to), -EINVAL);
    ck_assert_int_eq(fx_run(chain, &good, &(struct pb_tile_out){out, 15}), -EINVAL);
    pb_chain_destroy(chain);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("program");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, every_type_nodata_mask_and_scale_at_odd_sizes);
    tcase_add_test(tests, nodata_is_compared_in_the_bands_own_type);
    tcase_add_test(tests, values_beyond_the_soft_limit_get_own_registers);
    tcase_add_test(tests, too_many_values_at_once_are_refused_in_words);
    tcase_add_test(tests, many_bands_and_outputs_fit_the_firm_limit);
    tcase_add_test(tests, the_deeper_operand_comes_first);
    tcase_add_test(tests, random_graphs_under_register_pressure);
    tcase_add_test(tests, tiles_that_lack_pixels_are_refused);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
