/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Formulas of many terms by device code, run on the host: the CPU's bits. */
#include "tests/device/emulate_chain.h"
#include "tests/grid_chain.h"
#include "tests/unit/chain_fixture.h"

#include <stdio.h>

enum { SIDE = 40, TERM_BYTES = 48 };

static char *formula_of(int terms)
{
    char *const text = malloc((size_t)terms * TERM_BYTES);
    size_t at = 0;

    ck_assert_ptr_nonnull(text);
    for (int k = 0; k < terms; k++)
        at += (size_t)sprintf(text + at, "%smax(a - b * %d, %d) / (a + b + %d.5)",
                              k > 0 ? " + " : "", k + 1, -k, k);
    return text;
}

/* The formula on a grid of other pixels. */
static struct pb_chain *make_chain(int terms)
{
    char *const text = formula_of(terms);
    const struct pb_item formula = {.key = "X", .text = text};
    const struct pb_item names[] = {{.text = "a"}, {.text = "b"}};
    const struct pb_item factor = {.text = "", .num = 1.6}, method = {.text = "bilinear"};
    const struct pb_chain_input inputs[] = {
        {.name = "a", .type = PB_U16, .has_nodata = true, .nodata = TILE_NODATA, .scale = 1},
        {.name = "b", .type = PB_U16, .has_nodata = true, .nodata = TILE_NODATA, .scale = 1}};
    const struct pb_chain_source source = {SIDE, SIDE, true, pb_map_identity()};
    const char *const output = "X";
    struct fx_step steps[2];
    struct pb_chain *chain = NULL;
    struct pb_diag diag = {.kind = PB_DIAG_NONE};
    size_t at;

    fx_op(&steps[0], "resample");
    fx_arg(&steps[0], "bands", names, 2);
    fx_arg(&steps[0], "factor", &factor, 1);
    fx_arg(&steps[0], "method", &method, 1);
    fx_op(&steps[1], "math");
    fx_arg(&steps[1], "bands", &formula, 1);
    const struct pb_chain_step plain[] = {steps[0].step, steps[1].step};
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = plain,
                                       .n_steps = 2,
                                       .outputs = &output,
                                       .n_outputs = 1,
                                       .sources = &source,
                                       .n_sources = 1};
    ck_assert_msg(pb_chain_create(&spec, &diag, &at, &chain) == 0, "%s", diag.msg);
    free(text);
    return chain;
}

static void by_device(const struct pb_chain *chain, const struct pb_chain_block_shape *shape,
                      const struct pb_tile_in *in, const struct pb_tile_out *out)
{
    struct pb_chain_block_needs needs;
    void *const tables = calloc(1, pb_chain_device_bytes(chain));
    const struct pb_chain_device device = pb_chain_device_lay(chain, tables, tables);

    ck_assert_int_eq(pb_chain_block_measure(chain, shape->part_w, shape->part_h, shape->threads,
                                            PB_CHAIN_BLOCK_SHARED, &needs),
                     0);
    float *const scratch = malloc(needs.scratch_bytes + 1);
    emulate_chain(&device, shape, &needs, in, out, scratch, shape->blocks);
    free(scratch);
    free(tables);
}

START_TEST(long_formulas_have_the_bits_of_the_cpu)
{
    static const int counts[] = {64, 200, 1000};
    static const struct pb_chain_block_shape shape = {17, 11, 64, 2};
    static const uint32_t source_of[] = {0, 0};
    static float cpu[SIDE * SIDE], device[SIDE * SIDE];
    const struct random_image image = {.seed = 3, .type = PB_U16, .w = SIDE, .h = SIDE};
    const struct pb_rect core = {3, 2, 20, 19};
    const size_t n = (size_t)core.w * (size_t)core.h;
    struct pb_chain *const chain = make_chain(counts[_i]);
    const struct pb_tile_out to_cpu = {cpu, n}, to_device = {device, n};
    struct random_tile tile;
    size_t valid = 0;

    ck_assert(grid_tile_make(chain, &image, 1, source_of, &core, 1, 3, &tile));
    ck_assert_int_eq(fx_run(chain, &tile.in, &to_cpu), 0);
    by_device(chain, &shape, &tile.in, &to_device);
    ck_assert_mem_eq(cpu, device, n * sizeof *cpu);
    for (size_t i = 0; i < n; i++)
        valid += isfinite(cpu[i]) != 0;
    ck_assert_uint_gt(valid, n / 2);
    random_tile_free(&tile);
    pb_chain_destroy(chain);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("formula on a device");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, long_formulas_have_the_bits_of_the_cpu, 0, 3);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
