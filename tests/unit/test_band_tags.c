/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Meaning of the numbers of bands after steps: scale, offset and unit of the files, colour tables,
 * and classes, of which no mean is made unless the step requests it. */
#include "kernels/chain/chain.h"
#include "kernels/expr/mask_presets.h"
#include "tests/op_cases.h"
#include "tests/unit/chain_fixture.h"
#include "tests/unit/run_suite.h"

#define SIDE 24

static const uint8_t red[2][4] = {{0, 0, 0, 255}, {255, 0, 0, 255}};
static const uint8_t blue[2][4] = {{0, 0, 0, 255}, {0, 0, 255, 255}};

static const struct pb_band_tags kelvin = {.scale = 0.01, .offset = 273.15, .unit = "K"};

/* A chain of one step over the bands A_1 and A_2 of one grid, with the output X. */
struct pair {
    struct pb_chain_input input[2];
    struct fx_step step;
    const char *class_band;
    struct pb_diag diag;
    struct pb_chain *chain;
};

static void begin(struct pair *p, const char *op, const struct pb_band_tags *one,
                  const struct pb_band_tags *other)
{
    memset(p, 0, sizeof *p);
    p->input[0] = (struct pb_chain_input){.name = "A_1", .type = PB_U8, .scale = 1, .tags = *one};
    p->input[1] = (struct pb_chain_input){.name = "A_2", .type = PB_U8, .scale = 1, .tags = *other};
    fx_op(&p->step, op);
}

/* Returns the result of pb_chain_create. */
static int make(struct pair *p, const char *output)
{
    const struct pb_chain_source source = {
        .w = SIDE, .h = SIDE, .placed = true, .map = pb_map_identity()};
    const struct pb_chain_spec spec = {.inputs = p->input,
                                       .n_inputs = 2,
                                       .steps = &p->step.step,
                                       .n_steps = 1,
                                       .outputs = &output,
                                       .n_outputs = 1,
                                       .sources = &source,
                                       .n_sources = 1,
                                       .class_bands = &p->class_band,
                                       .n_class_bands = p->class_band != NULL};
    size_t at;

    return pb_chain_create(&spec, &p->diag, &at, &p->chain);
}

static void give(struct pair *p, const char *param, const char *text)
{
    const struct pb_item item = {.text = text, .num = strtod(text, NULL)};

    fx_arg(&p->step, param, &item, 1);
}

/* bands: {X: A}, of: [_1, _2] */
static void give_both(struct pair *p)
{
    static const struct pb_item bands = {.key = "X", .text = "A"};
    static const struct pb_item of[] = {{.text = "_1"}, {.text = "_2"}};

    fx_arg(&p->step, "bands", &bands, 1);
    fx_arg(&p->step, "of", of, 2);
}

static void check_kelvin(const struct pb_chain *chain)
{
    const struct pb_band_tags *const tags = pb_chain_output_tags(chain, 0);

    ck_assert_ptr_nonnull(tags);
    ck_assert_double_eq(tags->scale, 0.01);
    ck_assert_double_eq(tags->offset, 273.15);
    ck_assert_str_eq(tags->unit, "K");
}

/* --- which steps keep them ---------------------------------------------------------------------
 */

static size_t n_checked; /* cases that have a valid pixel */

/* A weighted mean of equal numbers is that number: a property of every step that keeps tags. */
static bool keeps_a_constant(const struct pb_op *op, const struct pb_op_case *c)
{
    struct op_params params;
    struct pb_diag diag;
    struct pb_chain *chain = NULL;

    ck_assert(op_case_params(c, op, &params));
    const char *const more = pb_op_one_more(op, &params); /* one more band, such as a mask */
    if (!op->keeps_tags || !op->keeps_tags(&params) || (more && strcmp(more, c->output) == 0))
        return true;
    ck_assert_int_eq(op_case_chain(op, c, PB_F32, false, 0, 1, 0, SIDE, &diag, &chain), 0);
    if (!pb_chain_keeps_grid(chain) || pb_chain_earlier_count(chain) > 0) {
        pb_chain_destroy(chain);
        return true; /* a step of another grid, or of the whole image */
    }
    const size_t n = pb_chain_planes_of(chain, 0);
    float *const in_px = malloc(n * SIDE * SIDE * sizeof *in_px), out_px[SIDE * SIDE];
    for (size_t i = 0; i < n * SIDE * SIDE; i++)
        in_px[i] = 48;
    const struct pb_rect all = {0, 0, SIDE, SIDE};
    const struct pb_tile_in in = {.window[0] = {.data = in_px,
                                                .rect = all,
                                                .row_bytes = SIDE * sizeof *in_px,
                                                .plane_bytes = SIDE * SIDE * sizeof *in_px},
                                  .core = all,
                                  .image_w = SIDE,
                                  .image_h = SIDE};
    const struct pb_tile_out out = {.data = out_px, .plane_px = SIDE * SIDE};
    ck_assert_int_eq(fx_run(chain, &in, &out), 0);
    size_t valid = 0;
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        valid += !isnan(out_px[i]);
        ck_assert_msg(isnan(out_px[i]) || fabsf(out_px[i] - 48) < 1e-3f, "%s (%s): 48 becomes %g",
                      op->name, c->label, (double)out_px[i]);
    }
    free(in_px);
    pb_chain_destroy(chain);
    n_checked += valid > 0;
    return true; /* these drop by clear */
}

START_TEST(steps_that_keep_tags_keep_a_constant)
{
    ck_assert(op_cases_walk(keeps_a_constant));
    ck_assert_uint_ge(n_checked, 20);
}
END_TEST

START_TEST(interpolation_keeps_scale_offset_and_unit)
{
    static const char *const methods[] = {"nearest", "bilinear", "cubic",
                                          "average", "mode",     "lanczos"};
    struct pair p;

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        begin(&p, "resample", &kelvin, &kelvin);
        give(&p, "factor", "0.5");
        give(&p, "method", methods[i]);
        ck_assert_msg(make(&p, "A_1") == 0, "%s", p.diag.msg);
        check_kelvin(p.chain);
        pb_chain_destroy(p.chain);
    }
}
END_TEST

START_TEST(several_files_keep_the_tags_that_they_share)
{
    static const char *const methods[][2] = {
        {"mosaic", "first"},           {"mosaic", "mean"},
        {"mosaic", "feather"},         {"composite", "median"},
        {"composite", "latest-clear"}, {"composite", "mean"},
        {"composite", "max"},
    };
    struct pair p;

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        begin(&p, methods[i][0], &kelvin, &kelvin);
        give(&p, "method", methods[i][1]);
        give_both(&p);
        ck_assert_msg(make(&p, "X") == 0, "%s", p.diag.msg);
        check_kelvin(p.chain);
        pb_chain_destroy(p.chain);
    }
    begin(&p, "composite", &kelvin, &kelvin);
    give(&p, "method", "count");
    give_both(&p);
    ck_assert_int_eq(make(&p, "X"), 0);
    ck_assert_ptr_null(pb_chain_output_tags(p.chain, 0));
    pb_chain_destroy(p.chain);
}
END_TEST

START_TEST(files_of_different_scales_are_not_mixed)
{
    const struct pb_band_tags other = {.scale = 0.01, .offset = 0, .unit = "K"};
    const struct pb_band_tags celsius = {.scale = 0.01, .offset = 273.15, .unit = "degC"};
    struct pair p;

    begin(&p, "composite", &kelvin, &other);
    give_both(&p);
    ck_assert_int_lt(make(&p, "X"), 0);
    ck_assert_int_eq(p.diag.kind, PB_DIAG_SCALE);
    ck_assert_ptr_nonnull(strstr(p.diag.msg, "A_1 has scale 0.01, offset 273.15, unit K"));
    ck_assert_ptr_nonnull(strstr(p.diag.msg, "A_2 has scale 0.01, offset 0, unit K"));
    begin(&p, "mosaic", &kelvin, &celsius);
    give_both(&p);
    ck_assert_int_lt(make(&p, "X"), 0);
    /* The configuration has made the same quantity of both. */
    begin(&p, "composite", &kelvin, &other);
    p.input[0].scale = p.input[1].scale = 0.01;
    p.input[0].offset = 273.15;
    give_both(&p);
    ck_assert_int_eq(make(&p, "X"), 0);
    pb_chain_destroy(p.chain);
}
END_TEST

START_TEST(a_difference_of_unequal_scales_is_refused)
{
    static const struct pb_item bands = {.key = "X", .text = "A_1"}, minus = {.text = "A_2"};
    const struct pb_band_tags other = {.scale = 0.1, .unit = "K"};
    struct pair p;

    for (int i = 0; i < 2; i++) {
        begin(&p, "difference", &kelvin, i == 0 ? &kelvin : &other);
        fx_arg(&p.step, "bands", &bands, 1);
        fx_arg(&p.step, "minus", &minus, 1);
        ck_assert_int_eq(make(&p, "X") == 0, i == 0);
        if (i == 0)
            ck_assert_ptr_null(pb_chain_output_tags(p.chain, 0));
        else
            ck_assert_int_eq(p.diag.kind, PB_DIAG_SCALE);
        pb_chain_destroy(p.chain);
    }
}
END_TEST

START_TEST(a_unit_that_one_file_lacks_is_dropped)
{
    const struct pb_band_tags metre = {.unit = "metre"}, m = {.unit = "m"}, none = {.unit = ""};
    struct pair p;

    begin(&p, "mosaic", &m, &metre);
    give_both(&p);
    ck_assert_int_eq(make(&p, "X"), 0);
    ck_assert_str_eq(pb_chain_output_tags(p.chain, 0)->unit, "m");
    pb_chain_destroy(p.chain);
    begin(&p, "mosaic", &m, &none);
    give_both(&p);
    ck_assert_int_eq(make(&p, "X"), 0);
    ck_assert_ptr_null(pb_chain_output_tags(p.chain, 0)->unit);
    pb_chain_destroy(p.chain);
}
END_TEST

START_TEST(colour_tables_hold_for_selected_values)
{
    const struct pb_band_tags one = {.colours = red, .n_colours = 2},
                              other = {.colours = blue, .n_colours = 2};
    struct pair p;

    for (int i = 0; i < 3; i++) {
        begin(&p, "mosaic", &one, i == 1 ? &other : &one);
        give(&p, "method", i == 2 ? "mean" : "first");
        give_both(&p);
        ck_assert_int_eq(make(&p, "X"), 0);
        ck_assert_uint_eq(pb_chain_output_tags(p.chain, 0)->n_colours, i == 0 ? 2 : 0);
        pb_chain_destroy(p.chain);
    }
}
END_TEST

/* --- classes -----------------------------------------------------------------------------------
 */

/* Returns true if resample without a method selects; checks the notes that it leaves. */
static bool selects(struct pair *p, const char *factor, const char *method)
{
    give(p, "factor", factor);
    if (method != NULL)
        give(p, "method", method);
    ck_assert_msg(make(p, "A_1") == 0, "%s", p->diag.msg);
    const bool is = pb_chain_origins(p->chain)[0] == 0;
    return is;
}

START_TEST(classes_are_not_interpolated_without_a_method)
{
    const struct pb_band_tags none = {.scale = 1};
    struct pair p;

    for (int i = 0; i < 4; i++) { /* a measurement, a class by its file, and one by a product */
        begin(&p, "resample", &none, &none);
        p.input[0].is_class = i == 1 || i == 3;
        p.class_band = i == 2 ? "A_1" : NULL;
        ck_assert_int_eq(selects(&p, i == 3 ? "0.5" : "1.5", NULL), i > 0);
        ck_assert_uint_eq(pb_chain_note_count(p.chain), 0);
        ck_assert_int_eq(pb_chain_classes(p.chain)[0], i > 0);
        pb_chain_destroy(p.chain);
    }
}
END_TEST

START_TEST(a_method_that_mixes_classes_is_noted)
{
    const struct pb_band_tags none = {.scale = 1};
    struct pair p;

    begin(&p, "resample", &none, &none);
    p.input[0].is_class = true;
    ck_assert(!selects(&p, "1.5", "bilinear"));
    ck_assert_uint_eq(pb_chain_note_count(p.chain), 1);
    ck_assert_ptr_nonnull(strstr(pb_chain_note(p.chain, 0), "band A_1 has classes, and bilinear"));
    pb_chain_destroy(p.chain);
    begin(&p, "resample", &none, &none);
    p.input[0].is_class = true;
    ck_assert(selects(&p, "1.5", "mode"));
    ck_assert_uint_eq(pb_chain_note_count(p.chain), 0);
    pb_chain_destroy(p.chain);
}
END_TEST

/* A mask step after the resampling uses the band's values as classes. */
START_TEST(a_quality_band_of_a_later_mask_is_a_class)
{
    const struct pb_item half = {.text = "0.5", .num = 0.5}, band = {.text = "Q"},
                         drop = {.text = "3", .num = 3};
    const char *const outputs[] = {"A", "Q"};
    const struct pb_chain_input inputs[] = {{.name = "A", .type = PB_U8, .scale = 1},
                                            {.name = "Q", .type = PB_U8, .scale = 1}};
    const struct pb_chain_source source = {
        .w = SIDE, .h = SIDE, .placed = true, .map = pb_map_identity()};
    struct fx_step steps[2];
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    size_t at;

    fx_op(&steps[0], "resample");
    fx_arg(&steps[0], "factor", &half, 1);
    fx_op(&steps[1], "mask");
    fx_arg(&steps[1], "band", &band, 1);
    fx_arg(&steps[1], "drop", &drop, 1);
    const struct pb_chain_step plain[] = {steps[0].step, steps[1].step};
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = plain,
                                       .n_steps = 2,
                                       .outputs = outputs,
                                       .n_outputs = 2,
                                       .sources = &source,
                                       .n_sources = 1};
    ck_assert_msg(pb_chain_create(&spec, &diag, &at, &chain) == 0, "%s", diag.msg);
    ck_assert_int_eq(pb_chain_origins(chain)[0], -1); /* bilinear */
    ck_assert_int_eq(pb_chain_origins(chain)[1], 1);
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(quality_bands_are_known_by_their_names)
{
    static const char *const files[] = {"*_SCL_20m.jp2", "@(SCL|*_SCL_20m).@(tif|jp2)",
                                        "{scene}_QA_PIXEL.TIF", "Fmask.tif"};
    static const char *const others[] = {"*_B04_10m.jp2", "SCLERA.tif", "{scene}_ST_QA.TIF", "x"};

    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(pb_mask_is_quality_file(files[i]), "%s", files[i]);
        ck_assert_msg(!pb_mask_is_quality_file(others[i]), "%s", others[i]);
    }
    ck_assert(pb_mask_is_quality_band("scl") && !pb_mask_is_quality_band("SCL2"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("band_tags");
    TCase *tc = tcase_create("tags");
    tcase_add_test(tc, steps_that_keep_tags_keep_a_constant);
    tcase_add_test(tc, interpolation_keeps_scale_offset_and_unit);
    tcase_add_test(tc, several_files_keep_the_tags_that_they_share);
    tcase_add_test(tc, files_of_different_scales_are_not_mixed);
    tcase_add_test(tc, a_difference_of_unequal_scales_is_refused);
    tcase_add_test(tc, a_unit_that_one_file_lacks_is_dropped);
    tcase_add_test(tc, colour_tables_hold_for_selected_values);
    suite_add_tcase(suite, tc);
    tc = tcase_create("classes");
    tcase_add_test(tc, classes_are_not_interpolated_without_a_method);
    tcase_add_test(tc, a_method_that_mixes_classes_is_noted);
    tcase_add_test(tc, a_quality_band_of_a_later_mask_is_a_class);
    tcase_add_test(tc, quality_bands_are_known_by_their_names);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
