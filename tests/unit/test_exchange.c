/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The exchanges that operators choose for their steps, with operators of this test; and which
 * patterns there are. The key `exchange` itself is tested with the other keys (test_config). */
#include "config/base/arena.h"
#include "config/config_parts.h"
#include "config/patterns.h"
#include "config/pipeline_config.h"
#include "kernels/op.h"
#include "run_suite.h"

#include <errno.h>
#include <string.h>

static struct pb_err_list errors;
static struct pb_load load;
static struct pb_pipeline_config pipeline;
static struct pb_step_config steps[2];

static void setup(void)
{
    memset(&errors, 0, sizeof errors);
    memset(&pipeline, 0, sizeof pipeline);
    memset(steps, 0, sizeof steps);
    load = (struct pb_load){.arena = pb_arena_create(), .report = {.list = &errors, .file = "f"}};
    pipeline.steps = steps;
    steps[0].line = 10;
    steps[1].line = 20;
}

static void teardown(void)
{
    pb_arena_destroy(load.arena);
}

/* A step's params are what it chooses. */
static void choose(const void *params, struct pb_op_exchange *out)
{
    *out = *(const struct pb_op_exchange *)params;
}

static const struct pb_op op = {.name = "chooser", .exchange = choose};
static const struct pb_op plain = {.name = "plain"};

static struct pb_op_exchange rounds = {
    .pattern = "alternating", .n_args = 2, .arg = {{"rounds", 20}, {"until_zero", 1}}};
static struct pb_op_exchange tiles = {
    .pattern = "multiple", .of = PB_EXCHANGE_TILES, .n_args = 1, .arg = {{"n0", 3}}};

static void add_step(const struct pb_op *what, struct pb_op_exchange *chosen)
{
    steps[pipeline.n_steps].op = what;
    steps[pipeline.n_steps++].params = chosen;
}

static void check(const char *exchange)
{
    const struct pb_yaml *map = exchange ? pb_default_node(&load, exchange) : NULL;
    pb_read_exchange(&load, map, &pipeline);
    pb_choose_exchanges(&load, map, &pipeline);
}

START_TEST(rounds_of_a_step_follow_what_its_operator_chose)
{
    add_step(&plain, NULL);
    add_step(&op, &rounds);
    check(NULL);
    ck_assert_uint_eq(errors.n, 0);
    ck_assert_ptr_null(steps[0].exchange.pattern);
    ck_assert_str_eq(steps[1].exchange.pattern->name, "alternating");
    ck_assert_uint_eq(steps[1].exchange.args[0], 20);
    ck_assert_uint_eq(steps[1].exchange.args[1], 1);
    ck_assert_ptr_eq(pipeline.exchange.pattern, &wic_pattern_unidirectional);
}
END_TEST

START_TEST(tiles_follow_what_an_operator_chose)
{
    add_step(&op, &tiles);
    add_step(&op, &tiles);
    check(NULL);
    ck_assert_uint_eq(errors.n, 0);
    ck_assert_str_eq(pipeline.exchange.pattern->name, "multiple");
    ck_assert_str_eq(pipeline.exchange.name, "multiple");
    ck_assert_uint_eq(pipeline.exchange.args[0], 3);
}
END_TEST

static struct pb_op_exchange parts = {.pattern = "multiple",
                                      .of = PB_EXCHANGE_PARTS,
                                      .n_args = 2,
                                      .arg = {{"n0", PB_OP_EXCHANGE_FILES}, {"n1", 1}}};
static struct pb_op_exchange data = {.pattern = "probabilistic",
                                     .of = PB_EXCHANGE_PARTS,
                                     .by_data = true,
                                     .n_args = 3,
                                     .arg = {{"n0", 1}, {"n1", 1}, {"by_data", 1}}};

START_TEST(parts_use_the_pattern_that_satisfies_all_steps)
{
    struct pb_op_exchange *const orders[][2] = {{&parts, &data}, {&data, &parts}};
    pipeline.input.n_sources = 2;
    add_step(&op, &parts);
    add_step(&op, &parts);
    check(NULL);
    ck_assert_uint_eq(errors.n, 0);
    ck_assert_str_eq(pipeline.exchange.pattern->name, "multiple");
    ck_assert_uint_eq(pipeline.exchange.args[0], 3); /* files: the scene and two more */
    ck_assert_int_eq(pipeline.exchange.of, PB_EXCHANGE_PARTS);
    for (size_t i = 0; i < 2; i++) {
        pipeline.n_steps = 0;
        add_step(&op, orders[i][0]);
        add_step(&op, orders[i][1]);
        check(NULL);
        ck_assert_uint_eq(errors.n, 0);
        ck_assert_str_eq(pipeline.exchange.pattern->name, "probabilistic");
    }
}
END_TEST

START_TEST(parts_and_tiles_do_not_go_together)
{
    add_step(&op, &tiles);
    add_step(&op, &parts);
    check(NULL);
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_int_eq(errors.err[0].line, 20);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "'multiple' for the parts, a step before it"));
}
END_TEST

START_TEST(default_that_is_written_down_is_no_other_wish)
{
    add_step(&op, &data);
    check("{pattern: unidirectional, reach: 0}");
    ck_assert_uint_eq(errors.n, 0);
    ck_assert_str_eq(pipeline.exchange.name, "probabilistic");
    check("{pattern: unidirectional, reach: 1}");
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg,
                                 "needs the pattern 'probabilistic', as probabilistic (n0: 1, n1: "
                                 "1, by_data: 1, shuffled: 0)"));
}
END_TEST

START_TEST(file_may_say_the_same_and_nothing_else)
{
    add_step(&op, &tiles);
    check("{pattern: multiple, n0: 3}");
    ck_assert_uint_eq(errors.n, 0);
    check("{pattern: multiple, n0: 4}");
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_ptr_nonnull(
        strstr(errors.err[0].msg, "the step 'chooser' needs the pattern 'multip"));
    ck_assert_uint_eq(pipeline.exchange.args[0], 4);
}
END_TEST

START_TEST(mistake_of_the_file_is_not_told_twice)
{
    add_step(&op, &tiles);
    check("{pattern: multipl}");
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "did you mean 'multiple'"));
}
END_TEST

START_TEST(two_steps_that_want_different_things_are_a_mistake)
{
    struct pb_op_exchange other = tiles;
    other.arg[0].value = 5;
    add_step(&op, &tiles);
    add_step(&op, &other);
    check(NULL);
    ck_assert_uint_eq(errors.n, 1);
    ck_assert_int_eq(errors.err[0].line, 20);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "make two pipelines"));
}
END_TEST

START_TEST(unavailable_pattern_is_an_error_of_its_step)
{
    struct pb_op_exchange none = {.pattern = "not_installed"};
    struct pb_op_exchange bad = {.pattern = "multiple", .n_args = 1, .arg = {{"n0", 0}}};
    add_step(&op, &none);
    add_step(&op, &bad);
    check(NULL);
    ck_assert_uint_eq(errors.n, 2);
    ck_assert_int_eq(errors.err[0].line, 10);
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg,
                                 "chooser cannot exchange data: there is no pattern "
                                 "'not_installed' in "));
    ck_assert_ptr_nonnull(strstr(errors.err[0].msg, "wic/patterns"));
    ck_assert_ptr_nonnull(strstr(errors.err[1].msg, "n0 is 0; allowed are 1 to"));
}
END_TEST

START_TEST(patterns_are_listed_with_the_built_in_one_first)
{
    const char *const wanted[] = {"unidirectional", "alternating", "multiple", "probabilistic"};
    char names[WIC_PATTERNS_MAX][WIC_PATTERN_NAME_MAX];
    const struct wic_pattern *pattern = NULL;
    /* Before and after one is loaded. */
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(pb_pattern_names(names), 4);
        for (size_t k = 0; k < 4 && i == 0; k++)
            ck_assert_str_eq(names[k], wanted[k]);
        ck_assert_int_eq(pb_pattern_find("probabilistic", &pattern, NULL, 0), 0);
        ck_assert_str_eq(pattern->name, "probabilistic");
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exchange");
    TCase *chosen = tcase_create("chosen");
    tcase_add_checked_fixture(chosen, setup, teardown);
    tcase_add_test(chosen, rounds_of_a_step_follow_what_its_operator_chose);
    tcase_add_test(chosen, tiles_follow_what_an_operator_chose);
    tcase_add_test(chosen, parts_use_the_pattern_that_satisfies_all_steps);
    tcase_add_test(chosen, parts_and_tiles_do_not_go_together);
    tcase_add_test(chosen, default_that_is_written_down_is_no_other_wish);
    tcase_add_test(chosen, file_may_say_the_same_and_nothing_else);
    tcase_add_test(chosen, mistake_of_the_file_is_not_told_twice);
    tcase_add_test(chosen, two_steps_that_want_different_things_are_a_mistake);
    tcase_add_test(chosen, unavailable_pattern_is_an_error_of_its_step);
    suite_add_tcase(suite, chosen);
    TCase *listed = tcase_create("listed");
    tcase_add_test(listed, patterns_are_listed_with_the_built_in_one_first);
    suite_add_tcase(suite, listed);
    return run_suite(suite);
}
