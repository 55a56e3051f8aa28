/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Content of descriptors: pb_op_outputs names the bands that build() defines, in every case of
 * every operator, and the documentation is there. */
#include "kernels/expr/mask_presets.h"
#include "kernels/graph/builder_state.h"
#include "tests/op_cases.h"

#include "run_suite.h"

#include <check.h>

static bool is_output(const struct pb_items *outputs, const char *band)
{
    bool found = outputs->n == 0; /* all of them */

    for (size_t i = 0; i < outputs->n && !found; i++)
        found = strcmp(pb_item_band(&outputs->items[i]), band) == 0;
    return found;
}

static void define_inputs(struct pb_builder *b, pb_value before[OP_CASE_BANDS])
{
    const struct pb_geometry grid = {100, 100, pb_map_identity(), 0};

    ck_assert_int_eq(pb_graph_grid(&b->graph, &grid), 0);
    for (size_t i = 0; i < OP_CASE_BANDS; i++) {
        before[i] = b->input[b->n_inputs++] = pb_graph_input(&b->graph, (uint32_t)i, 0);
        ck_assert_int_eq(pb_builder_define(b, op_case_bands[i], before[i]), 0);
    }
}

static void report(void *to, const struct pb_diag *diag)
{
    *(struct pb_diag *)to = *diag;
}

static bool check_case(const struct pb_op *op, const struct pb_op_case *c)
{
    static const struct pb_scene_facts scene = {.has_transform = true,
                                                .transform = {0, 1, 0, 0, 0, -1},
                                                .calibration = op_case_rule,
                                                .ways = &op_ways};
    struct op_params params;
    struct pb_builder b;
    struct pb_diag last = {.kind = PB_DIAG_NONE};
    pb_value before[OP_CASE_BANDS];

    pb_builder_init(&b, report, &last);
    b.scene = &scene;
    define_inputs(&b, before);
    ck_assert_msg(op_case_params(c, op, &params), "%s: %s", op->name, c->label);
    ck_assert_msg(op->build(&params, &b) == 0 && b.n_mistakes == 0, "%s: %s: %s", op->name,
                  c->label, last.msg);
    const struct pb_items *const outputs = pb_op_outputs(op, &params);
    const char *const more = pb_op_one_more(op, &params);
    size_t defined = 0;
    for (size_t i = 0; i < pb_builder_band_count(&b); i++) {
        const char *const band = pb_builder_band_name(&b, i);
        const bool changed = i >= OP_CASE_BANDS || pb_builder_find(&b, band) != before[i];
        const bool is_more = more && strcmp(more, band) == 0;

        ck_assert(pb_op_makes(op, &params, band) == (is_output(outputs, band) || is_more));
        ck_assert_msg(changed == (is_output(outputs, band) || is_more),
                      "%s: %s: band %s is %s, and so is not said", op->name, c->label, band,
                      changed ? "defined" : "not defined");
        defined += changed;
    }
    ck_assert_msg(outputs->n == 0 || defined == outputs->n + (more != NULL),
                  "%s: %s: %zu bands of %zu", op->name, c->label, defined, outputs->n);
    ck_assert_msg(pb_op_makes(op, &params, c->output), "%s: %s: asks for %s", op->name, c->label,
                  c->output);
    pb_builder_fini(&b);
    return true;
}

START_TEST(every_step_defines_the_bands_of_its_arguments)
{
    ck_assert(op_cases_walk(check_case));
}
END_TEST

START_TEST(one_parameter_of_every_operator_names_its_bands)
{
    for (size_t i = 0; i < pb_op_count(); i++) {
        const struct pb_op *const op = pb_op_at(i);
        size_t n = 0;

        for (size_t p = 0; p < op->n_keys; p++) {
            const enum pb_key_type type = op->keys[p].type;

            n += op->keys[p].makes_bands;
            ck_assert_msg(!op->keys[p].makes_bands || type == PB_KEY_NAMES || type == PB_KEY_BAND ||
                              type == PB_KEY_EXPRESSIONS,
                          "%s.%s cannot name bands", op->name, op->keys[p].name);
        }
        ck_assert_msg(n == 1, "operator %s has %zu parameters that make bands", op->name, n);
    }
}
END_TEST

/* Both kinds of outputs have cases, or the walk above shows half. */
START_TEST(cases_with_and_without_a_list_of_bands_are_walked)
{
    struct op_params params;

    for (size_t i = 0; i < pb_op_count(); i++) {
        const struct pb_op *const op = pb_op_at(i);
        size_t named = 0, all = 0;
        bool required = false;

        for (size_t p = 0; p < op->n_keys; p++)
            required = required || (op->keys[p].makes_bands && op->keys[p].required);
        for (size_t k = 0; k < op->n_cases; k++) {
            ck_assert(op_case_params(&op->cases[k], op, &params));
            *(pb_op_outputs(op, &params)->n ? &named : &all) += 1;
        }
        ck_assert_msg(named > 0 && (required || all > 0), "operator %s", op->name);
    }
}
END_TEST

START_TEST(every_field_of_the_documentation_says_something)
{
    for (size_t i = 0; i < pb_op_count(); i++) {
        const struct pb_op *const op = pb_op_at(i);
        const struct pb_op_doc *const doc = &op->doc;
        const char *const fields[] = {doc->formula, doc->units, doc->nodata, doc->source};

        ck_assert_msg(doc->summary && strlen(doc->summary) > 10, "%s", op->name);
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
            ck_assert_msg(fields[f] && strlen(fields[f]) > 10 && !strchr(fields[f], '\n'),
                          "operator %s, field %zu", op->name, f);
        ck_assert_msg(doc->notes && strstr(doc->notes, op->name) != NULL, "%s has no example",
                      op->name);
        for (size_t k = 0; k < op->n_keys; k++)
            ck_assert_msg(op->keys[k].doc && op->keys[k].doc[strlen(op->keys[k].doc) - 1] == '.',
                          "%s.%s", op->name, op->keys[k].name);
    }
}
END_TEST

START_TEST(presets_of_masks_are_whole_and_documented)
{
    const struct pb_op *const op = pb_op_find("mask");

    for (size_t i = 0; i < pb_mask_preset_count(); i++) {
        const struct pb_mask_preset preset = pb_mask_preset_at(i);
        bool drops = false;

        ck_assert_msg(strstr(op->doc.notes, preset.name) != NULL, "%s", preset.name);
        for (size_t k = 0; k < preset.n; k++) {
            const struct pb_mask_meaning *const m = &preset.meaning[k];

            ck_assert_msg((m->n > 0) == preset.is_bits && m->value < 1 << (m->n ? m->n : 8) &&
                              m->from + m->n <= 16,
                          "%s: %s", preset.name, m->word);
            ck_assert_ptr_eq(pb_mask_meaning_find(&preset, m->word), m);
            ck_assert_msg(!m->drops || m->n > 1 || strstr(op->doc.notes, m->word) != NULL ||
                              strncmp(m->word, "band_", 5) == 0,
                          "%s: %s", preset.name, m->word);
            drops = drops || m->drops;
        }
        ck_assert_msg(drops, "%s drops nothing", preset.name);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("op_outputs");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, every_step_defines_the_bands_of_its_arguments);
    tcase_add_test(tests, one_parameter_of_every_operator_names_its_bands);
    tcase_add_test(tests, cases_with_and_without_a_list_of_bands_are_walked);
    tcase_add_test(tests, every_field_of_the_documentation_says_something);
    tcase_add_test(tests, presets_of_masks_are_whole_and_documented);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
