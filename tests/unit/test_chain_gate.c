/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: arm64
 *
 * What a chain with a gate promises: where nothing passes its outputs are invalid. After a gate,
 * every case of every operator is run over an image in which nothing passes. */
#include "kernels/chain/chain.h"
#include "tests/op_cases.h"

#include "run_suite.h"

#include <check.h>
#include <stdlib.h>

enum { SIDE = 48 };

static const struct pb_item keep = {.text = "S2 < 0"};

/* The case after a gate, over bands of float32. */
static struct pb_chain *chain_of(const struct pb_op *op, const struct pb_op_case *c)
{
    struct pb_chain_input inputs[OP_CASE_BANDS];
    struct op_params gate, params;
    const struct pb_chain_step steps[2] = {{pb_op_find("gate"), &gate}, {op, &params}};
    const struct pb_scene_facts scene = {.has_transform = true,
                                         .transform = {0, 1, 0, 0, 0, -1},
                                         .unit = {.metres = {1, 1}},
                                         .calibration = op_case_rule,
                                         .ways = &op_ways};
    const struct pb_chain_source source = {SIDE, SIDE, true, pb_map_identity()};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    size_t at;

    op_defaults(steps[0].op, &gate);
    ck_assert(op_give(steps[0].op, &gate, "keep", &keep, 1));
    ck_assert(op_case_params(c, op, &params));
    for (size_t i = 0; i < OP_CASE_BANDS; i++)
        inputs[i] = (struct pb_chain_input){.name = op_case_bands[i], .type = PB_F32, .scale = 1.0};
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = OP_CASE_BANDS,
                                       .steps = steps,
                                       .n_steps = 2,
                                       .outputs = &c->output,
                                       .n_outputs = 1,
                                       .sources = &source,
                                       .n_sources = 1,
                                       .scene = &scene};
    ck_assert_msg(pb_chain_create(&spec, &diag, &at, &chain) == 0, "%s: %s: %s", op->name, c->label,
                  diag.msg);
    op_case_set_results(chain);
    return chain;
}

/* Runs a chain over the whole of an image of ones; the plane of the output. */
static float *run_over_ones(const struct pb_chain *chain, size_t *out_px)
{
    const struct pb_geometry grid = pb_chain_geometry(chain);
    const uint32_t *used;
    const size_t planes = pb_chain_used(chain, &used), px = SIDE * SIDE;
    float *const data = malloc(planes * px * sizeof *data);
    float *const plane = malloc((size_t)grid.w * (size_t)grid.h * sizeof *plane);
    void *const scratch = malloc(pb_chain_scratch_bytes(chain, grid.w, grid.h) + 64);
    struct pb_tile_in in = {.core = {0, 0, grid.w, grid.h}, .image_w = grid.w, .image_h = grid.h};
    const struct pb_tile_out out = {plane, (size_t)grid.w * (size_t)grid.h};
    const struct pb_chain_image *images;
    const size_t n_images = pb_chain_images(chain, &images);
    float *const nothing = malloc(px * sizeof *nothing);

    ck_assert(data && plane && scratch && nothing);
    for (size_t i = 0; i < planes * px; i++)
        data[i] = 1.0f;
    in.window[0] = (struct pb_window){.data = data,
                                      .row_bytes = SIDE * sizeof *data,
                                      .plane_bytes = px * sizeof *data,
                                      .rect = {0, 0, SIDE, SIDE}};
    for (size_t i = 0; i < px; i++) /* pixels that earlier passes leave empty */
        nothing[i] = NAN;
    for (size_t i = 0; i < n_images; i++) {
        in.window[images[i].source] = in.window[0];
        in.window[images[i].source].data = nothing;
    }
    ck_assert_int_eq(
        pb_chain_run_cpu(chain, &in, &out, (char *)scratch + (64 - (uintptr_t)scratch % 64) % 64),
        0);
    free(data);
    free(scratch);
    free(nothing);
    *out_px = out.plane_px;
    return plane;
}

static size_t n_gated, n_open;

static bool check_case(const struct pb_op *op, const struct pb_op_case *c)
{
    if (strcmp(op->name, "gate") == 0) /* one a chain */
        return true;
    struct pb_chain *const chain = chain_of(op, c);
    bool good = true;

    if (pb_chain_gate(chain) == NULL) {
        n_open++;
        good = pb_chain_gate_why(chain)[0] != '\0';
    } else {
        size_t px, valid = 0;
        float *const plane = run_over_ones(chain, &px);

        n_gated++;
        for (size_t i = 0; i < px; i++)
            valid += !isnan(plane[i]);
        free(plane);
        if (valid > 0)
            (void)fprintf(stderr, "%s: %s: %zu of %zu pixels are valid\n", op->name, c->label,
                          valid, px);
        good = valid == 0;
    }
    pb_chain_destroy(chain);
    return good;
}

START_TEST(outputs_are_invalid_where_nothing_passes)
{
    ck_assert(op_cases_walk(check_case));
    ck_assert_uint_gt(n_gated, pb_op_count());
}
END_TEST

START_TEST(the_gate_looks_as_far_as_the_tile_reaches)
{
    const struct pb_op *const op = pb_op_find("convolve");
    const struct pb_op_case c = {
        .output = "N", .args = {{"size", {{.text = "9", .num = 9}}}, {NULL, {{.text = NULL}}}}};
    struct pb_chain *const chain = chain_of(op, &c);
    const struct pb_rect core = {16, 0, 16, 16};
    const struct pb_rect around = pb_chain_gate_rect(chain, &core, true);
    const struct pb_rect touched = pb_chain_gate_rect(chain, &core, false);
    const uint32_t *used;

    ck_assert_int_eq(around.x, 12);
    ck_assert_int_eq(around.w, 24);
    ck_assert_int_eq(around.h, 20);
    ck_assert_int_eq(touched.x, 16);
    ck_assert_int_eq(touched.w, 16);
    ck_assert_uint_eq(pb_chain_used(chain, &used), 2);
    ck_assert_uint_eq(used[1], OP_CASE_BANDS - 1); /* the band of the gate is last */
    ck_assert_uint_eq(pb_chain_planes_of(pb_chain_gate(chain), 0), 1);
    pb_chain_destroy(chain);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chain_gate");
    TCase *tc = tcase_create("gate");
    tcase_add_test(tc, outputs_are_invalid_where_nothing_passes);
    tcase_add_test(tc, the_gate_looks_as_far_as_the_tile_reaches);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
