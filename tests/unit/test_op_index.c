/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * index: formulas as steps, its parameters, and its messages for missing parts. The values of all
 * 280 indices are tested by integration/test_index_values.py. */
#include "kernels/chain/chain.h"
#include "kernels/index/index_expand.h"
#include "kernels/index/index_table.h"

#include "run_suite.h"
#include "tests/op_params.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- one step and one pixel -------------------------------------------------------------------- */

struct step {
    struct op_params params;
    struct pb_item names[4], constants[4], kernel;
    size_t n_names, n_constants;
};

static void give_all(struct step *s, const char *key, const struct pb_item *items, size_t n)
{
    ck_assert_msg(op_give(pb_op_find("index"), &s->params, key, items, n), "no key %s", key);
}

static void give(struct step *s, const char *key, const char *name)
{
    s->names[s->n_names++] = (struct pb_item){.key = key, .text = name};
    give_all(s, "names", s->names, s->n_names);
}

static void set(struct step *s, const char *key, double value)
{
    s->constants[s->n_constants++] = (struct pb_item){.key = key, .num = value};
    give_all(s, "constants", s->constants, s->n_constants);
}

static void choose_kernel(struct step *s, const char *word)
{
    s->kernel.text = word;
    give_all(s, "kernel", &s->kernel, 1);
}

static int create(const struct step *s, const char *const *bands, size_t n_bands,
                  const char *output, struct pb_diag *diag, struct pb_chain **out_chain)
{
    struct pb_chain_input inputs[16];
    const struct pb_chain_step step = {pb_op_find("index"), &s->params};
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = n_bands,
                                       .steps = &step,
                                       .n_steps = 1,
                                       .outputs = &output,
                                       .n_outputs = 1};
    size_t where;
    for (size_t i = 0; i < n_bands; i++) {
        inputs[i] = (struct pb_chain_input){.name = bands[i], .type = PB_F32, .scale = 1};
    }
    memset(diag, 0, sizeof *diag);
    return pb_chain_create(&spec, diag, &where, out_chain);
}

static const char *const NRB[] = {"N", "R", "B"};
static const float nrb[] = {0.5f, 0.125f, 0.0625f};

static float value_of(const struct step *s, const char *output)
{
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    ck_assert_msg(create(s, NRB, 3, output, &diag, &chain) == 0, "%s", diag.msg);
    const uint32_t *used;
    size_t n = pb_chain_used(chain, &used);
    float in[3 * 16], result;
    for (size_t i = 0; i < n; i++) {
        in[i * 16] = nrb[used[i]];
    }
    struct pb_rect rect = {0, 0, 1, 1};
    struct pb_tile_in tile = {.window[0].data = in,
                              .window[0].row_bytes = 64,
                              .window[0].plane_bytes = 64,
                              .window[0].rect = rect,
                              .core = rect,
                              .image_w = 1,
                              .image_h = 1};
    struct pb_tile_out out = {&result, 1};
    void *scratch = aligned_alloc(64, (pb_chain_scratch_bytes(chain, 1, 1) + 127) / 64 * 64);
    ck_assert_int_eq(pb_chain_run_cpu(chain, &tile, &out, scratch), 0);
    free(scratch);
    pb_chain_destroy(chain);
    return result;
}

static void check_near(float got, double want)
{
    ck_assert_msg(fabs((double)got - want) < 1e-6 * (1 + fabs(want)), "%.9g, not %.9g", (double)got,
                  want);
}

START_TEST(makes_the_indices_listed)
{
    struct step s = {0};
    give(&s, NULL, "NDVI");
    give(&s, NULL, "EVI");
    check_near(value_of(&s, "NDVI"), 0.375 / 0.625);
    check_near(value_of(&s, "EVI"), 2.5 * 0.375 / (0.5 + 6 * 0.125 - 7.5 * 0.0625 + 1));
}
END_TEST

START_TEST(gives_them_the_names_of_a_map_and_takes_constants)
{
    struct step s = {0};
    give(&s, "HALF", "SAVI");
    set(&s, "L", 0.5);
    check_near(value_of(&s, "HALF"), 1.5 * 0.375 / (0.625 + 0.5));
    set(&s, "lambdaN", 842);
    set(&s, "lambdaR", 665);
    set(&s, "k", 1e-3);
    give(&s, NULL, "NIRvH2");
    check_near(value_of(&s, "NIRvH2"), 0.375 - 0.177);
}
END_TEST

START_TEST(new_name_does_not_change_bands_of_the_same_step)
{
    struct step s = {0};
    give(&s, "N", "NDVI"); /* N is something else after this step, but not for SR */
    give(&s, NULL, "SR");
    check_near(value_of(&s, "SR"), 4);
    check_near(value_of(&s, "N"), 0.6);
}
END_TEST

START_TEST(evaluates_kernel_indices_with_the_kernel_chosen)
{
    struct step s = {0};
    give(&s, NULL, "kNDVI");
    double rbf = exp(-(0.375 * 0.375) / (2 * 0.25));
    check_near(value_of(&s, "kNDVI"), (1 - rbf) / (1 + rbf));
    choose_kernel(&s, "linear");
    check_near(value_of(&s, "kNDVI"), (0.25 - 0.0625) / (0.25 + 0.0625));
    choose_kernel(&s, "poly");
    double nn = 1.25 * 1.25, nr = 1.0625 * 1.0625;
    check_near(value_of(&s, "kNDVI"), (nn - nr) / (nn + nr));
    choose_kernel(&s, "rbf");
    set(&s, "sigma", 0.25);
    rbf = exp(-(0.375 * 0.375) / (2 * 0.0625));
    check_near(value_of(&s, "kNDVI"), (1 - rbf) / (1 + rbf));
}
END_TEST

START_TEST(expands_kernel_terms_and_renames_constants)
{
    char text[4096];
    ck_assert_int_eq(pb_index_expand(pb_index_find("SAVI"), PB_INDEX_RBF, text, sizeof text), 0);
    ck_assert_str_eq(text, "(1.0 + constant_L) * (N - R) / (N + R + constant_L)");
    ck_assert_int_eq(pb_index_expand(pb_index_find("kRVI"), PB_INDEX_LINEAR, text, sizeof text), 0);
    ck_assert_str_eq(text, "(N * N) / (N * R)");
    ck_assert_int_eq(pb_index_expand(pb_index_find("kRVI"), PB_INDEX_RBF, text, sizeof text), 0);
    ck_assert_str_eq(text, "1.0 / exp(-((N - R) ** 2.0) / (2.0 * constant_sigma ** 2.0))");
    ck_assert_int_eq(pb_index_expand(pb_index_find("kEVI"), PB_INDEX_POLY, text, sizeof text), 0);
    ck_assert(strstr(text, "+ (((N * constant_L) + constant_c) ** constant_p))") != NULL);
    ck_assert_int_eq(pb_index_expand(pb_index_find("kEVI"), PB_INDEX_POLY, text, 20), -ENOSPC);
    for (size_t i = 0; i < pb_index_count(); i++) {
        for (int kernel = PB_INDEX_RBF; kernel <= PB_INDEX_POLY; kernel++) {
            ck_assert_int_eq(
                pb_index_expand(pb_index_at(i), (enum pb_index_kernel)kernel, text, sizeof text),
                0);
        }
    }
}
END_TEST

/* -- words ------------------------------------------------------------------------------------- */

static void check_refused(const struct step *s, const char *const *bands, size_t n_bands, int kind,
                          const struct pb_item *item, const char *message)
{
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    ck_assert_int_eq(create(s, bands, n_bands, s->names[0].text, &diag, &chain), -EINVAL);
    ck_assert_str_eq(diag.msg, message);
    ck_assert_int_eq(diag.kind, kind);
    ck_assert_ptr_eq(diag.item, item);
}

START_TEST(names_the_bands_that_are_missing)
{
    static const char *const gr[] = {"G", "R"};
    struct step s = {0};
    give(&s, NULL, "EVI");
    check_refused(&s, gr, 2, PB_DIAG_INDEX, s.names,
                  "index EVI needs N, B, which this pipeline does not have (its bands: G, R)");
}
END_TEST

/* Splits what a row needs into bands and constants without a default; kernel terms into their
 * parts. */
static void needs_of(const struct pb_index *index, char names[16][16], bool *is_band, size_t *n)
{
    const char *list = index->bands, *name;
    size_t length;
    *n = 0;
    while (pb_index_next_name(&list, &name, &length)) {
        const size_t cut = pb_index_kernel_split(name, length);
        const size_t starts[] = {cut > 0 ? 1 : 0, cut}, ends[] = {cut > 0 ? cut : length, length};
        for (int part = 0; part < (cut > 0 ? 2 : 1); part++) {
            char *to = names[*n];
            snprintf(to, 16, "%.*s", (int)(ends[part] - starts[part]), name + starts[part]);
            const struct pb_index_constant *constant = pb_index_constant_find(to);
            size_t before = 0;
            while (before < *n && strcmp(names[before], to) != 0)
                before++;
            if (before < *n || (constant && constant->has_default))
                continue;
            is_band[(*n)++] = constant == NULL;
        }
    }
}

/* A pipeline accepts each row that `pushbroom indices --bands` promises: with all that a row needs,
 * and with each single thing left out. */
START_TEST(pb_index_can_and_the_chain_agree)
{
    const struct pb_index *index = pb_index_at((size_t)_i);
    char names[16][16];
    bool is_band[16];
    size_t n;
    needs_of(index, names, is_band, &n);
    ck_assert_uint_gt(n, 0);
    for (size_t left_out = 0; left_out <= n; left_out++) {
        struct step s = {0};
        struct pb_item given[16];
        const char *bands[16] = {"unused"}, *constants[16];
        size_t n_bands = 1, n_given = 0;
        for (size_t i = 0; i < n; i++) {
            if (i == left_out)
                continue;
            if (is_band[i]) {
                bands[n_bands++] = names[i];
            } else {
                given[n_given] = (struct pb_item){.key = names[i], .num = 800};
                constants[n_given++] = names[i];
            }
        }
        give(&s, NULL, index->name);
        give_all(&s, "constants", given, n_given);
        struct pb_diag diag;
        struct pb_chain *chain = NULL;
        char missing[64];
        const bool can =
            pb_index_can(index, bands, n_bands, constants, n_given, missing, sizeof missing);
        const int rc = create(&s, bands, n_bands, index->name, &diag, &chain);
        pb_chain_destroy(chain);
        ck_assert_msg(can == (left_out == n), "%s without %s", index->name,
                      left_out < n ? names[left_out] : "nothing");
        ck_assert_msg((rc == 0) == can, "%s without %s: %s", index->name,
                      left_out < n ? names[left_out] : "nothing", diag.msg);
        ck_assert(can || ((diag.kind == PB_DIAG_INDEX || diag.kind == PB_DIAG_CONSTANT) &&
                          strcmp(missing, names[left_out]) == 0));
    }
}
END_TEST

START_TEST(does_not_guess_which_near_infrared_is_meant)
{
    static const char *const landsat[] = {"R", "N2"}, *const other[] = {"N", "RE1"};
    struct step s = {0}, t = {0};
    give(&s, NULL, "NDVI");
    check_refused(&s, landsat, 2, PB_DIAG_INDEX, s.names,
                  "index NDVI needs N, which this pipeline does not have (its bands: R, N2); there "
                  "is N2: if that is the near infrared you mean, name it N in input.bands");
    give(&t, NULL, "SeLI");
    check_refused(&t, other, 2, PB_DIAG_INDEX, t.names,
                  "index SeLI needs N2, which this pipeline does not have (its bands: N, RE1); "
                  "there is N: if that is the near infrared you mean, name it N2 in input.bands");
}
END_TEST

START_TEST(names_the_constants_that_are_missing)
{
    struct step s = {0};
    give(&s, NULL, "NIRvH2");
    set(&s, "lambdaR", 665);
    check_refused(&s, NRB, 3, PB_DIAG_CONSTANT, s.names,
                  "index NIRvH2 needs lambdaN, for which there is no default; give it under "
                  "'constants' (wavelengths in nm, as in {lambdaN: 842})");
}
END_TEST

START_TEST(constant_named_like_a_band_is_refused)
{
    static const char *const nrl[] = {"N", "R", "L"};
    struct step s = {0};
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    give(&s, NULL, "SAVI");
    check_refused(
        &s, nrl, 3, PB_DIAG_CONSTANT, s.names,
        "index SAVI uses the constant L (Canopy background adjustment), and this pipeline "
        "has a band L as well; give the constant, as in constants: {L: 1}, or rename the "
        "band");
    set(&s, "L", 1);
    ck_assert_int_eq(create(&s, nrl, 3, "SAVI", &diag, &chain), 0);
    const uint32_t *used;
    ck_assert_uint_eq(pb_chain_used(chain, &used), 2);
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(finds_the_index_that_a_typo_means)
{
    struct step s = {0}, t = {0};
    give(&s, NULL, "ndvi");
    check_refused(
        &s, NRB, 3, PB_DIAG_INDEX, s.names,
        "there is no index 'ndvi'; did you mean 'NDVI'? 'pushbroom indices' lists all 280");
    give(&t, NULL, "completely_else");
    check_refused(&t, NRB, 3, PB_DIAG_INDEX, t.names,
                  "there is no index 'completely_else'; 'pushbroom indices' lists all 280");
}
END_TEST

START_TEST(unknown_or_senseless_constants_are_refused)
{
    struct step s = {0}, u = {0};
    give(&s, NULL, "NDVI");
    set(&s, "lambdan", 842);
    check_refused(&s, NRB, 3, PB_DIAG_VALUE, s.constants,
                  "no index has a constant 'lambdan'; did you mean 'lambdaN'? 'pushbroom "
                  "indices NAME' shows those of an index");
    give(&u, NULL, "kNDVI");
    set(&u, "sigma", 0);
    check_refused(&u, NRB, 3, PB_DIAG_VALUE, u.constants, "sigma is 0; it must be greater than 0");
}
END_TEST

START_TEST(refuses_the_same_name_twice)
{
    struct step s = {0};
    give(&s, NULL, "NDVI");
    give(&s, "NDVI", "SAVI");
    check_refused(&s, NRB, 3, PB_DIAG_INDEX, &s.names[1], "'NDVI' is there twice; name it once");
}
END_TEST

START_TEST(refuses_more_names_than_a_step_may_have)
{
    static struct pb_item many[1025];
    struct step s = {0};
    for (size_t i = 0; i < 1025; i++) {
        many[i].text = "NDVI";
    }
    s.names[0].text = "NDVI";
    give_all(&s, "names", many, 1025);
    check_refused(&s, NRB, 3, PB_DIAG_VALUE, &many[1024],
                  "1025 names; at most 1024 fit into one step");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_index");
    TCase *tcase = tcase_create("op_index");
    tcase_add_test(tcase, makes_the_indices_listed);
    tcase_add_test(tcase, gives_them_the_names_of_a_map_and_takes_constants);
    tcase_add_test(tcase, new_name_does_not_change_bands_of_the_same_step);
    tcase_add_test(tcase, evaluates_kernel_indices_with_the_kernel_chosen);
    tcase_add_test(tcase, expands_kernel_terms_and_renames_constants);
    tcase_add_test(tcase, names_the_bands_that_are_missing);
    tcase_add_loop_test(tcase, pb_index_can_and_the_chain_agree, 0, 280);
    tcase_add_test(tcase, does_not_guess_which_near_infrared_is_meant);
    tcase_add_test(tcase, names_the_constants_that_are_missing);
    tcase_add_test(tcase, constant_named_like_a_band_is_refused);
    tcase_add_test(tcase, finds_the_index_that_a_typo_means);
    tcase_add_test(tcase, unknown_or_senseless_constants_are_refused);
    tcase_add_test(tcase, refuses_the_same_name_twice);
    tcase_add_test(tcase, refuses_more_names_than_a_step_may_have);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
