/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * Chains: dropped, shared and folded values; bands of other steps; focal operations and halos (a
 * scene in tiles must have the bits of one piece); errors; memory that runs out.
 */
#include "kernels/graph/builder.h"
#include "kernels/chain/chain_stage.h"
#include "tests/op_cases.h"
#include "tests/random_tile.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>

/* Counts the allocations of the layers and of this file, and makes the n-th fail: the linker puts
 * these in place of the C library's (--wrap), which are then the sanitizer's where there is one. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);
static long fail_after = -1, alive;

static bool refused(void)
{
    return fail_after >= 0 && fail_after-- == 0;
}

static void *counted(void *memory)
{
    alive += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t bytes)
{
    return refused() ? NULL : counted(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return refused() ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (refused())
        return NULL;
    return old ? __real_realloc(old, bytes) : counted(__real_malloc(bytes));
}

char *__wrap_strdup(const char *text)
{
    return refused() ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *memory)
{
    alive -= memory != NULL;
    __real_free(memory);
}

/* --- graph ----------------------------------------------------------------------------------- */

static size_t used_count(const struct pb_chain *chain)
{
    const uint32_t *used;

    return pb_chain_used(chain, &used);
}

static struct pb_chain *expression_chain(const char *letters, const char *text)
{
    struct pb_chain *chain = NULL;
    struct pb_diag diag;

    ck_assert_msg(fx_expression(letters, text, &diag, &chain) == 0, "%s: %s", text, diag.msg);
    return chain;
}

START_TEST(only_inputs_that_outputs_need_are_used)
{
    struct pb_chain *const chain = expression_chain("abcdef", "e - b * 0 + where(1, b, f)");
    const uint32_t *used;

    ck_assert_uint_eq(pb_chain_used(chain, &used), 2);
    ck_assert_uint_eq(used[0], 1);
    ck_assert_uint_eq(used[1], 4);
    ck_assert_int_eq(pb_chain_halo(chain), 0);
    ck_assert_uint_eq(pb_chain_output_count(chain), 1);
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(a_constant_output_still_has_an_input)
{
    struct pb_chain *const chain = expression_chain("ab", "1 + 2");
    const float a = NAN, b = 1.0f;
    const float *const planes[] = {&a, &b};
    float x = 0.0f;

    ck_assert_uint_eq(used_count(chain), 1);
    ck_assert_uint_eq(pb_chain_instruction_count(chain), 1);
    fx_run_row(chain, planes, 1, &x);
    ck_assert(x == 3.0f);
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(equal_values_computed_once_and_constants_folded)
{
    static const struct {
        const char *text;
        size_t instructions; /* loads, operations, stores */
    } cases[] = {
        {"a", 2},
        {"a * 1", 2},
        {"a - 0", 2},
        {"a / 1", 2},
        {"a ** 1", 2},
        {"a + 0", 3},
        {"a * 0", 3},
        {"(a + b) * (b + a)", 5},
        {"(a - b) / (a + b) + (a - b) / (b + a)", 7},
        {"2 * 3 + a * (4 - 3)", 3},
        {"a ** 2", 3},
        {"a ** 4", 4},
        {"a ** -2", 4},
        {"where(2 > 1, a, b)", 2},
        {"clamp(a, 0, 1)", 3},
        {"where(a > 0.5, 1, 0)", 4},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_chain *const chain = expression_chain("ab", cases[i].text);

        ck_assert_msg(pb_chain_instruction_count(chain) == cases[i].instructions,
                      "'%s': %zu instructions", cases[i].text, pb_chain_instruction_count(chain));
        pb_chain_destroy(chain);
    }
}
END_TEST

START_TEST(later_steps_see_what_earlier_ones_made)
{
    const struct pb_item first[] = {{.key = "a", .text = "a + 1"}, {.key = "t", .text = "a * 2"}};
    const struct pb_item second[] = {{.key = "X", .text = "t + a + b"}};
    const char *const outputs[] = {"X", "a", "b", "X"};
    const float a = 10.0f, b = 5.0f;
    const float *const planes[] = {&a, &b};
    struct fx_step steps[2];
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float out[4];
    size_t at;

    fx_op(&steps[0], "math");
    fx_arg(&steps[0], "bands", first, 2);
    fx_op(&steps[1], "math");
    fx_arg(&steps[1], "bands", second, 1);
    ck_assert_int_eq(fx_create("ab", steps, 2, outputs, 4, &diag, &at, &chain), 0);
    fx_run_row(chain, planes, 1, out);
    ck_assert(out[0] == 38.0f && out[1] == 11.0f && out[2] == 5.0f && out[3] == 38.0f);
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(errors_say_which_step_and_why)
{
    const struct pb_item good = {.key = "NDVI", .text = "a - b"};
    const struct pb_item bad = {.key = "Y", .text = "NDWI + 1"};
    const char *const known = "NDVI", *const typo = "NVDI";
    struct fx_step steps[2];
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t at = 99;

    fx_op(&steps[0], "math");
    fx_arg(&steps[0], "bands", &good, 1);
    fx_op(&steps[1], "math");
    fx_arg(&steps[1], "bands", &bad, 1);
    ck_assert_int_eq(fx_create("ab", steps, 2, &known, 1, &diag, &at, &chain), -EINVAL);
    ck_assert_uint_eq(at, 1);
    ck_assert_int_eq(diag.kind, PB_DIAG_EXPRESSION);
    ck_assert_ptr_eq(diag.item, &bad);
    ck_assert_int_eq(diag.col, 1);
    ck_assert_ptr_nonnull(strstr(diag.msg, "did you mean 'NDVI'?"));

    ck_assert_int_eq(fx_create("ab", steps, 1, &typo, 1, &diag, &at, &chain), -EINVAL);
    ck_assert_uint_eq(at, 1);
    ck_assert_int_eq(diag.kind, PB_DIAG_BAND);
    ck_assert_ptr_nonnull(strstr(diag.msg, "no step makes a band 'NVDI'; did you mean 'NDVI'?"));

    ck_assert_int_eq(fx_create("aba", steps, 1, &known, 1, &diag, &at, &chain), -EINVAL);
    ck_assert_ptr_nonnull(strstr(diag.msg, "two bands of the scene are named 'a'"));
    ck_assert_int_eq(fx_create("", steps, 1, &known, 1, &diag, &at, &chain), -EINVAL);
    ck_assert_int_eq(fx_create("ab", steps, 1, &known, 0, &diag, &at, &chain), -EINVAL);
    ck_assert_ptr_null(chain);
}
END_TEST

START_TEST(doubling_steps_do_not_explode)
{
    /* v is used twice by each next band: a tree of 2^200 values, a graph of 400. */
    enum { STEPS = 200 };
    static char keys[STEPS][8], texts[STEPS][64];
    struct pb_item items[STEPS];
    const char *const output = "v199";
    const float a = 1.5f;
    const float *const planes[] = {&a};
    struct fx_step step;
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float expected = a, x;
    size_t at;

    for (int i = 0; i < STEPS; i++) {
        sprintf(keys[i], "v%d", i);
        sprintf(texts[i], i ? "sqrt(v%d) + v%d * 0.5" : "sqrt(a) + a * 0.5", i - 1, i - 1);
        items[i] = (struct pb_item){.key = keys[i], .text = texts[i]};
        expected = sqrtf(expected) + expected * 0.5f;
    }
    fx_op(&step, "math");
    fx_arg(&step, "bands", items, STEPS);
    ck_assert_int_eq(fx_create("a", &step, 1, &output, 1, &diag, &at, &chain), 0);
    ck_assert_uint_eq(pb_chain_instruction_count(chain), 2 + 3 * STEPS);
    fx_run_row(chain, planes, 1, &x);
    ck_assert(fx_same(x, expected));
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(too_many_values_are_refused)
{
    enum { STEPS = 4000 };
    static char keys[STEPS][8], texts[STEPS][256];
    static struct pb_item items[STEPS];
    const char *const output = "v1";
    struct fx_step step;
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t at;

    for (int i = 0; i < STEPS; i++) {
        char *to = texts[i] + sprintf(texts[i], "a");

        sprintf(keys[i], "v%d", i);
        for (int k = 0; k < 20; k++)
            to += sprintf(to, "+%d", i * 20 + k + 1);
        items[i] = (struct pb_item){.key = keys[i], .text = texts[i]};
    }
    fx_op(&step, "math");
    fx_arg(&step, "bands", items, STEPS);
    ck_assert_int_eq(fx_create("a", &step, 1, &output, 1, &diag, &at, &chain), -EINVAL);
    ck_assert_ptr_nonnull(strstr(diag.msg, "too many values"));
}
END_TEST

/* --- focal operations
 * -------------------------------------------------------------------------------- */

struct focal_steps {
    struct fx_step step[5];
};

static void convolve_step(struct focal_steps *s, size_t i, const struct pb_op_case *c)
{
    fx_op(&s->step[i], "convolve");
    ck_assert(op_case_params(c, s->step[i].step.op, &s->step[i].params));
}

/* Differences of smoothed bands, smoothed again: four levels of focal operations of different reach
 * and kind, some over bands as read, one straight over another. */
static struct pb_chain *deep_chain(struct focal_steps *s, enum pb_type type, const char *edge)
{
    const struct pb_op_case blur = {"",
                                    "",
                                    true,
                                    {{"kernel", {{.text = "gaussian"}}},
                                     {"size", {{.text = "5", .num = 5}}},
                                     {"edge", {{.text = edge}}}}};
    const struct pb_op_case box = {"",
                                   "",
                                   true,
                                   {{"kernel", {{.text = "box"}}},
                                    {"size", {{.text = "3", .num = 3}}},
                                    {"edge", {{.text = edge}}}}};
    static const struct pb_item weights[] = {
        {.text = "", .num = 0.5},  {.text = "", .num = -1.0},  {.text = "", .num = 2.0},
        {.text = "", .num = 0.25}, {.text = "", .num = 3.0},   {.text = "", .num = 1.0},
        {.text = "", .num = -2.0}, {.text = "", .num = 0.125}, {.text = "", .num = 1.5}};
    const struct pb_op_case edges = {
        "", "", true, {{"kernel", {{.text = "sobel"}}}, {"edge", {{.text = edge}}}}};
    static const struct pb_item exprs[] = {{.key = "c", .text = "a - b"},
                                           {.key = "d", .text = "c * a + 0.25"}};
    const struct pb_chain_input inputs[] = {{.name = "a",
                                             .type = type,
                                             .has_nodata = true,
                                             .nodata = TILE_NODATA,
                                             .scale = 0.01,
                                             .offset = 0.0},
                                            {.name = "b",
                                             .type = type,
                                             .has_nodata = true,
                                             .nodata = TILE_NODATA,
                                             .scale = 0.01,
                                             .offset = 0.0},
                                            {.name = "z",
                                             .type = type,
                                             .has_nodata = true,
                                             .nodata = TILE_NODATA,
                                             .scale = 0.01,
                                             .offset = 0.0}};
    static const char *const outputs[] = {"a", "c", "d"};
    struct pb_chain_step plain[5];
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t at;

    convolve_step(s, 0, &blur);
    convolve_step(s, 1, &box);
    fx_op(&s->step[2], "math");
    fx_arg(&s->step[2], "bands", exprs, 2);
    convolve_step(s, 3, &edges);
    convolve_step(s, 4, &edges);
    fx_arg(&s->step[4], "kernel", NULL, 0);
    fx_arg(&s->step[4], "weights", weights, 9);
    for (int i = 0; i < 5; i++)
        plain[i] = s->step[i].step;
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 3,
                                       .steps = plain,
                                       .n_steps = 5,
                                       .outputs = outputs,
                                       .n_outputs = 3};
    ck_assert_msg(pb_chain_create(&spec, &diag, &at, &chain) == 0, "step %zu: %s", at, diag.msg);
    return chain;
}

static void run_tile(const struct pb_chain *chain, const struct random_image *image,
                     const struct pb_rect *core, size_t pad, float *out, size_t plane_px)
{
    const uint32_t *used;
    const size_t n = pb_chain_used(chain, &used);
    struct random_tile tile;

    ck_assert(random_tile_make(image, core, pb_chain_halo(chain), used, n, pad, &tile));
    ck_assert_int_eq(fx_run(chain, &tile.in, &(struct pb_tile_out){out, plane_px}), 0);
    random_tile_free(&tile);
}

static void check_tiles(const struct pb_chain *chain, const struct random_image *image,
                        int32_t step)
{
    const struct pb_rect all = {0, 0, image->w, image->h};
    const size_t n = (size_t)image->w * (size_t)image->h, n_out = pb_chain_output_count(chain);
    float *const whole = malloc(n_out * n * sizeof *whole);
    float *const part = malloc(n_out * (size_t)step * (size_t)step * sizeof *part);

    ck_assert(whole && part);
    run_tile(chain, image, &all, 0, whole, n);
    for (int32_t y = 0; y < image->h; y += step)
        for (int32_t x = 0; x < image->w; x += step) {
            const struct pb_rect core = {x, y, image->w - x < step ? image->w - x : step,
                                         image->h - y < step ? image->h - y : step};
            const size_t px = (size_t)core.w * (size_t)core.h;

            run_tile(chain, image, &core, 3, part, px);
            for (size_t p = 0; p < n_out; p++)
                for (int32_t j = 0; j < core.h; j++)
                    ck_assert_msg(memcmp(part + p * px + (size_t)(j * core.w),
                                         whole + p * n + (size_t)((y + j) * image->w + x),
                                         (size_t)core.w * sizeof *part) == 0,
                                  "output %zu, row %d of the tile of %d at %d %d", p, j, step, x,
                                  y);
        }
    free(whole);
    free(part);
}

START_TEST(tiles_of_focal_chains_match_the_whole_image)
{
    static const char *const edge[] = {"reflect", "clamp", "nodata"};
    uint32_t random = 17;

    for (int i = 0; i < 12; i++) {
        const struct random_image image = {.seed = fx_random(&random),
                                           .type = i % 2 ? PB_U16 : PB_F32,
                                           .w = 1 + (int32_t)(fx_random(&random) % 70),
                                           .h = 1 + (int32_t)(fx_random(&random) % 40),
                                           .masked = i % 4 == 3};
        struct focal_steps steps;
        struct pb_chain *const chain = deep_chain(&steps, image.type, edge[i % 3]);
        char text[1000];

        ck_assert_int_eq(pb_chain_halo(chain), 2 + 1 + 1 + 1);
        for (size_t k = 0; k < chain->n_stages; k++)
            for (size_t n = 0; n < chain->stages[k].n_focals; n++)
                ck_assert_uint_ne(chain->stages[k].focals[n].from, chain->stages[k].focals[n].to);
        ck_assert_uint_eq(used_count(chain), 2);
        ck_assert_int_gt(pb_chain_describe(chain, text, sizeof text), 0);
        ck_assert_ptr_nonnull(strstr(text, "3 x 3 full"));
        ck_assert_int_eq(pb_chain_describe(chain, NULL, 0),
                         pb_chain_describe(chain, text, sizeof text));
        check_tiles(chain, &image, 1 + (int32_t)(fx_random(&random) % 30));
        pb_chain_destroy(chain);
    }
}
END_TEST

/* --- memory ---------------------------------------------------------------------------------- */

START_TEST(every_failing_allocation_is_reported_without_leaks)
{
    struct focal_steps steps;
    int failures = 0;

    for (bool done = false; !done; failures++) {
        const struct pb_op_case blur = {
            "",
            "",
            true,
            {{"kernel", {{.text = "gaussian"}}}, {"size", {{.text = "5", .num = 5}}}}};
        const struct pb_item exprs[] = {{.key = "c", .text = "(a - b) / (a + b) * k"},
                                        {.key = "d", .text = "c * a + 0.25"}};
        const struct pb_item constant = {.key = "k", .text = "2", .num = 2.0};
        const char *const outputs[] = {"a", "c", "d"};
        struct pb_chain *chain = NULL;
        struct pb_diag diag;
        size_t at;

        convolve_step(&steps, 0, &blur);
        fx_op(&steps.step[1], "math");
        fx_arg(&steps.step[1], "bands", exprs, 2);
        fx_arg(&steps.step[1], "constants", &constant, 1);
        convolve_step(&steps, 2, &blur);
        const long before = alive;
        fail_after = failures;
        const int rc = fx_create("ab", steps.step, 3, outputs, 3, &diag, &at, &chain);
        done = fail_after >= 0;
        fail_after = -1;
        ck_assert_int_eq(rc, done ? 0 : -ENOMEM);
        pb_chain_destroy(chain);
        ck_assert_msg(alive == before, "failure %d: %ld blocks lost", failures, alive - before);
    }
    ck_assert_int_gt(failures, 30);
}
END_TEST

/* Makes a chain of the bands a and b: X by the expression, and one unchanged band; the caller's. */
static struct pb_chain *chain_of(const char *expression, const char *unchanged)
{
    const char *const outputs[] = {"X", unchanged};
    const struct pb_item item = {.key = "X", .text = expression};
    struct fx_step step;
    struct pb_diag diag;
    struct pb_chain *chain = NULL;
    size_t at;
    fx_op(&step, "math");
    fx_arg(&step, "bands", &item, 1);
    ck_assert_msg(fx_create("ab", &step, 1, outputs, 2, &diag, &at, &chain) == 0, "%s", diag.msg);
    return chain;
}

START_TEST(outputs_of_classes_are_recognized)
{
    static const struct {
        const char *expression;
        bool is_class;
    } cases[] = {
        {"a", false},
        {"a > 1", true},
        {"where(a > 1, 5, 9)", true},
        {"where(a > 1, b, 9)", false},
        {"(a > 1) + 2 * (b > 2)", true},
        {"(a > 1) * b", false},
        {"where(a, 1, where(b < 0, 2, 3))", true},
        {"max(a, 1)", false},
        {"floor(a)", true},
        {"floor(a / 10) * 10", true},
        {"floor(a) * b", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_chain *chain = chain_of(cases[i].expression, "b");
        ck_assert_msg(pb_chain_classes(chain)[0] == cases[i].is_class, "%s", cases[i].expression);
        ck_assert(!pb_chain_classes(chain)[1]);
        pb_chain_destroy(chain);
    }
}
END_TEST

START_TEST(outputs_copied_from_an_input_are_recognized)
{
    static const struct {
        const char *expression;
        int32_t place; /* place of the output */
        bool computed; /* input a */
        bool untouched;
    } cases[] = {
        {"a", 0, false, true},
        {"where(b > 1, a, invalid)", 0, false, false},
        {"where(a > 1, a, invalid)", 0, true, false},
        {"where(b > 1, a, b)", -1, true, false},
        {"where(a > 1, b, invalid)", 1, true, false},
        {"a * 1.5", -1, true, false},
        {"b", 1, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pb_chain *chain = chain_of(cases[i].expression, "a");
        ck_assert_msg(pb_chain_places(chain)[0] == cases[i].place, "%s", cases[i].expression);
        ck_assert_int_eq(pb_chain_places(chain)[1], 0);
        ck_assert_msg(pb_chain_computed(chain)[0] == cases[i].computed, "%s", cases[i].expression);
        ck_assert_msg(pb_chain_untouched(chain)[0] == cases[i].untouched, "%s",
                      cases[i].expression);
        pb_chain_destroy(chain);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("chain");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, only_inputs_that_outputs_need_are_used);
    tcase_add_test(tests, a_constant_output_still_has_an_input);
    tcase_add_test(tests, equal_values_computed_once_and_constants_folded);
    tcase_add_test(tests, later_steps_see_what_earlier_ones_made);
    tcase_add_test(tests, errors_say_which_step_and_why);
    tcase_add_test(tests, doubling_steps_do_not_explode);
    tcase_add_test(tests, too_many_values_are_refused);
    tcase_add_test(tests, tiles_of_focal_chains_match_the_whole_image);
    tcase_add_test(tests, outputs_of_classes_are_recognized);
    tcase_add_test(tests, outputs_copied_from_an_input_are_recognized);
    tcase_add_test(tests, every_failing_allocation_is_reported_without_leaks);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
