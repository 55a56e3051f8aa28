/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Chains with several mistakes: each is reported at its place, what follows from it is not. */
#include "kernels/graph/builder.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>
#include <stdio.h>

/* Mistakes as text: "step:output:column word-of-the-message\n", 9 = not of one output. */
static void list_mistake(void *to, const struct pb_diag *diag)
{
    char *const text = to;
    const char *const quote = strchr(diag->msg, '\'');

    ck_assert_ptr_nonnull(quote);
    sprintf(text + strlen(text), "%zu:%zu:%d %.*s\n", diag->step,
            diag->output == SIZE_MAX ? 9 : diag->output, diag->col,
            (int)strcspn(quote + 1, "'") + 2, quote);
}

START_TEST(every_mistake_is_reported_without_its_consequences)
{
    static const struct pb_chain_input inputs[] = {
        {.name = "a", .type = PB_F32, .has_nodata = false, .nodata = 0, .scale = 1, .offset = 0},
        {.name = "b", .type = PB_F32, .has_nodata = false, .nodata = 0, .scale = 1, .offset = 0}};
    static const struct pb_item first[] = {{.key = "X", .text = "q1 + a * q2"},
                                           {.key = "Y", .text = "X * foo(q3) - a(b)"},
                                           {.key = "a", .text = "(b + q4"}};
    static const struct pb_item blurred[] = {{.key = "S", .text = "Y"}, {.key = "T", .text = "q5"}};
    static const struct pb_item last = {.key = "Z", .text = "X + Y + S / T - a + q6"};
    static const char *const outputs[] = {"Z", "q7", "a"};
    struct fx_step steps[3];
    struct pb_chain_step plain[3];
    struct pb_chain *chain = NULL;
    char text[1000] = "";

    fx_op(&steps[0], "math");
    fx_arg(&steps[0], "bands", first, 3);
    fx_op(&steps[1], "convolve");
    fx_arg(&steps[1], "bands", blurred, 2);
    fx_op(&steps[2], "math");
    fx_arg(&steps[2], "bands", &last, 1);
    for (int i = 0; i < 3; i++)
        plain[i] = steps[i].step;
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = plain,
                                       .n_steps = 3,
                                       .outputs = outputs,
                                       .n_outputs = 3};
    ck_assert_int_eq(pb_chain_build(&spec, list_mistake, text, &chain), -EINVAL);
    ck_assert_ptr_null(chain);
    ck_assert_str_eq(text, "0:9:1 'q1'\n0:9:10 'q2'\n0:9:5 'foo'\n0:9:9 'q3'\n0:9:16 'a'\n"
                           "0:9:6 'q4'\n0:9:8 ')'\n1:9:0 'q5'\n2:9:21 'q6'\n3:1:0 'q7'\n");
}
END_TEST

static void count_mistake(void *to, const struct pb_diag *diag)
{
    ck_assert(diag->msg[0] != '\0');
    ++*(size_t *)to;
}

static int build_nothing(const void *params, struct pb_builder *b)
{
    (void)params;
    (void)b;
    return -EINVAL;
}

START_TEST(what_a_failed_step_would_have_made_is_not_missed)
{
    static const struct pb_key key = {.name = "bands", .type = PB_KEY_NAMES, .makes_bands = true};
    static const struct pb_op fails = {
        .name = "fails", .keys = &key, .n_keys = 1, .build = build_nothing};
    static const struct pb_chain_input input = {
        .name = "a", .type = PB_F32, .has_nodata = false, .nodata = 0, .scale = 1, .offset = 0};
    static const struct pb_item made[] = {{.text = "P"}, {.key = "Q", .text = "a"}};
    static const struct pb_item use = {.key = "X", .text = "P + Q * r"};
    static const struct pb_items names = {.items = made, .n = 2}, none = {.n = 0};
    static const char *const outputs[] = {"X", "Q", "a"};
    struct fx_step last;
    struct pb_chain *chain = NULL;
    char text[200] = "";

    fx_op(&last, "math");
    fx_arg(&last, "bands", &use, 1);
    const struct pb_chain_step steps[] = {{&fails, &names}, {&fails, &none}, last.step};
    const struct pb_chain_spec spec = {.inputs = &input,
                                       .n_inputs = 1,
                                       .steps = steps,
                                       .n_steps = 3,
                                       .outputs = outputs,
                                       .n_outputs = 3};
    ck_assert_int_eq(pb_chain_build(&spec, list_mistake, text, &chain), -EINVAL);
    ck_assert_ptr_null(chain);
    ck_assert_str_eq(text, "0:9:0 'fails'\n1:9:0 'fails'\n2:9:9 'r'\n");
}
END_TEST

/* Each may be compared with thousands of bands. */
START_TEST(mistakes_without_number_end_the_building)
{
    static const struct pb_chain_input input = {
        .name = "a", .type = PB_F32, .has_nodata = false, .nodata = 0, .scale = 1, .offset = 0};
    static const char *const output = "X";
    char text[1000] = "q";
    const struct pb_item item = {.key = "X", .text = text};
    struct fx_step step;
    struct pb_chain *chain = NULL;
    size_t n = 0;

    for (int i = 0; i < 200; i++)
        strcat(text, "+q");
    fx_op(&step, "math");
    fx_arg(&step, "bands", &item, 1);
    const struct pb_chain_spec spec = {.inputs = &input,
                                       .n_inputs = 1,
                                       .steps = &step.step,
                                       .n_steps = 1,
                                       .outputs = &output,
                                       .n_outputs = 1};
    ck_assert_int_eq(pb_chain_build(&spec, count_mistake, &n, &chain), -EINVAL);
    ck_assert_uint_eq(n, 64);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("chain_mistakes");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, every_mistake_is_reported_without_its_consequences);
    tcase_add_test(tests, what_a_failed_step_would_have_made_is_not_missed);
    tcase_add_test(tests, mistakes_without_number_end_the_building);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
