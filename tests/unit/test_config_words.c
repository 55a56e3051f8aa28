/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Mistakes in words of the configuration that only their later use shows. */
#include "config/choice_words.h"
#include "config/config.h"
#include "config/yaml/report.h"
#include "kernels/op.h"
#include "pipeline/product/product_kinds.h"
#include "run_suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct pb_err_list errors;

static const char *first_mistake(const char *text)
{
    struct pb_config *config = NULL;
    ck_assert_int_lt(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config), 0);
    return errors.err[0].msg;
}

START_TEST(a_sensor_is_answered_by_what_its_choice_is_called)
{
    static const char form[] = "pipelines:\n"
                               "  a:\n"
                               "    input: {bands: {B: 1}, metadata: x}\n"
                               "    steps: [%s]\n"
                               "    products: [cog: {}]\n";
    static const struct {
        const char *step, *said;
    } cases[] = {
        {"calibrate: {bands: [B], sensor: landsat7}",
         "calibrate.sensor: 'landsat7' is not known; write landsat-c2"},
        {"calibrate: {bands: [B], sensor: Landsat-8}",
         "calibrate.sensor: 'Landsat-8' is not known; write landsat-c2"},
        {"calibrate: {bands: [B], sensor: WV3}",
         "calibrate.sensor: 'WV3' is not known; write worldview"},
        {"tasseled_cap: {as: [wetness], sensor: landsat 7}",
         "tasseled_cap.sensor: 'landsat 7' is not known; write landsat-etm"},
        {"tasseled_cap: {as: [wetness], sensor: ETM+}",
         "tasseled_cap.sensor: 'ETM+' is not known; write landsat-etm"},
        {"tasseled_cap: {as: [wetness], sensor: landsat8}",
         "tasseled_cap.sensor: 'landsat8' is not known; write landsat-oli (top of the atmosphere) "
         "or landsat-oli-sr (surface)"},
        {"calibrate: {bands: [B], sensor: sentinell2}",
         "calibrate.sensor: 'sentinell2' is not known; did you mean 'sentinel2'?"},
    };
    char text[400];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(text, sizeof text, form, cases[i].step);
        ck_assert_str_eq(first_mistake(text), cases[i].said);
    }
}
END_TEST

START_TEST(what_a_choice_is_called_names_choices)
{
    const char *said = NULL;
    for (size_t i = 0; i < pb_op_count(); i++) {
        const struct pb_op *op = pb_op_at(i);
        for (size_t k = 0; k < op->n_keys; k++) {
            const char *called = op->keys[k].called;
            for (; called != NULL && (called = strchr(called, '=')) != NULL; called++) {
                const size_t n = strcspn(called + 1, " |");
                const char *choice = op->keys[k].choices;
                for (; *choice != '\0'; choice += strcspn(choice, "|"), choice += *choice == '|')
                    if (strcspn(choice, "|") == n && strncmp(choice, called + 1, n) == 0)
                        break;
                ck_assert_msg(*choice != '\0', "%s: %s", op->name, called + 1);
            }
        }
    }
    ck_assert_uint_eq(pb_choice_called(NULL, "x", &said), 0);
    ck_assert_uint_eq(pb_choice_called("a b=c|d=e", "b", &said), 1);
    ck_assert_str_eq(said, "c|d=e");
    ck_assert_uint_eq(pb_choice_called("a b=c|d=e", "c", &said), 0);
    ck_assert_uint_eq(pb_choice_called("a b=c|d=e", "", &said), 0);
}
END_TEST

START_TEST(computed_class_band_is_found_without_a_scene)
{
    static const char form[] = "pipelines:\n"
                               "  a:\n"
                               "    input: {bands: {R: 1, N: 2}}\n"
                               "    steps: [math: {bands: {X: \"%s\"}}]\n"
                               "    products:\n"
                               "      - zones: {by: %s}\n";
    static const char *const fine[][2] = {
        {"N / R", "N"}, {"floor(N / R)", "X"}, {"where(N > R, 1, 2)", "X"}};
    char text[400];
    (void)snprintf(text, sizeof text, form, "N / R", "X");
    ck_assert_str_eq(first_mistake(text),
                     "zones: band 'X' of by is computed, and nothing makes its values classes; "
                     "round them first (cast: {type: uint8}, math with floor), or use classify or "
                     "conditions");
    ck_assert_int_eq(errors.err[0].line, 6);
    ck_assert_int_eq(errors.err[0].col, 21);
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        struct pb_config *config = NULL;
        (void)snprintf(text, sizeof text, form, fine[i][0], fine[i][1]);
        ck_assert_int_eq(pb_config_parse(text, strlen(text), "f", &pb_products, &errors, &config),
                         0);
        pb_config_destroy(config);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config_words");
    TCase *tests = tcase_create("config_words");
    tcase_add_test(tests, a_sensor_is_answered_by_what_its_choice_is_called);
    tcase_add_test(tests, what_a_choice_is_called_names_choices);
    tcase_add_test(tests, computed_class_band_is_found_without_a_scene);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
