/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * Conditions for running a chain part by part (kernels/chain/chain_block.cuh): a part is a core of
 * its own that reads the tile's planes and stores into the tile's outputs; rows of samples, of the
 * mask and of an output are as far apart as given; and the arithmetic of what a block needs. The
 * loop here is that of the device, on the CPU. */
#include "kernels/chain/chain_block.h"
#include "kernels/chain/chain_stage.h"
#include "tests/grid_chain.h"
#include "tests/focal_chain.h"
#include "tests/unit/chain_fixture.h"

#include <errno.h>

/* --- part by part ---------------------------------------------------------------------------- */

/* The pixels of a part of in->core; out is where the planes of the whole core are. */
static void run_part(const struct pb_chain *chain, const struct pb_tile_in *in,
                     const struct pb_rect *part, const struct pb_tile_out *out, void *scratch)
{
    const size_t row = (size_t)in->core.w;
    struct pb_tile_in source = *in;
    struct pb_tile_out target = *out;
    struct pb_chain_layout layout;

    source.core = *part;
    target.data += (size_t)(part->y - in->core.y) * row + (size_t)(part->x - in->core.x);
    pb_chain_measure(chain, part->w, part->h, &layout);
    float *const planes = scratch, *const temp = planes + layout.planes_px;
    for (size_t k = 0; k < chain->n_stages; k++) {
        const struct pb_stage *const stage = &chain->stages[k];
        struct pb_sweep sweep;

        pb_chain_sweep(chain, k, &source, &target, planes, &sweep);
        ck_assert_uint_eq(sweep.out_row, (size_t)sweep.rect.w);
        if (k + 1 == chain->n_stages)
            sweep.out_row = row;
        if (sweep.n_code)
            pb_program_run_cpu(&sweep, temp + layout.temp_px);
        for (size_t i = 0; i < stage->n_focals; i++) {
            struct pb_stage_planes made;

            pb_chain_planes(chain, &stage->focals[i], &source, planes, &made);
            if (stage->focals[i].is_resample)
                pb_resample_run_cpu(&stage->focals[i].resample, &made.from, &made.to, temp);
            else
                pb_focal_run_cpu(
                    &stage->focals[i].focal, &made.from, &made.to,
                    chain->keeps_grid ? in->image_w : chain->grids[stage->focals[i].to_grid].w,
                    chain->keeps_grid ? in->image_h : chain->grids[stage->focals[i].to_grid].h,
                    temp);
        }
    }
}

static void check_parts(const struct pb_chain *chain, const struct pb_tile_in *in, int32_t part_w,
                        int32_t part_h)
{
    const size_t plane_px = (size_t)in->core.w * (size_t)in->core.h;
    const size_t bytes = pb_chain_output_count(chain) * plane_px * sizeof(float);
    const size_t scratch_bytes = pb_chain_scratch_bytes(chain, part_w, part_h);
    float *const whole = malloc(bytes), *const parts = malloc(bytes);
    void *const scratch = aligned_alloc(64, (scratch_bytes + 127) / 64 * 64);

    ck_assert(whole && parts && scratch);
    memset(parts, 0x5a, bytes);
    ck_assert_int_eq(fx_run(chain, in, &(struct pb_tile_out){whole, plane_px}), 0);
    for (int32_t y = 0; y < in->core.h; y += part_h)
        for (int32_t x = 0; x < in->core.w; x += part_w) {
            const struct pb_rect part = {in->core.x + x, in->core.y + y,
                                         in->core.w - x < part_w ? in->core.w - x : part_w,
                                         in->core.h - y < part_h ? in->core.h - y : part_h};

            run_part(chain, in, &part, &(struct pb_tile_out){parts, plane_px}, scratch);
        }
    ck_assert_msg(memcmp(whole, parts, bytes) == 0, "%d x %d in parts of %d x %d", in->core.w,
                  in->core.h, part_w, part_h);
    free(whole);
    free(parts);
    free(scratch);
}

START_TEST(parts_of_a_tile_have_the_bits_of_the_whole)
{
    uint32_t random = 99;

    for (int i = 0; i < 60; i++) {
        const enum pb_type type = (enum pb_type)(fx_random(&random) % PB_F32);
        const struct random_image image = {.seed = fx_random(&random),
                                           .type = type,
                                           .w = 30 + (int32_t)(fx_random(&random) % 120),
                                           .h = 20 + (int32_t)(fx_random(&random) % 70),
                                           .masked = i % 5 == 4};
        const struct pb_rect core = {(int32_t)(fx_random(&random) % 20),
                                     (int32_t)(fx_random(&random) % 15), image.w - 20,
                                     image.h - 15};
        struct pb_chain *chain = NULL;
        struct random_tile tile;
        struct pb_diag diag;
        const uint32_t *used;

        ck_assert_msg(focal_chain_make(&random, type, i % 7 + 1, &diag, &chain) == 0, "%s",
                      diag.msg);
        const size_t n = pb_chain_used(chain, &used);
        ck_assert(random_tile_make(&image, &core, pb_chain_halo(chain), used, n,
                                   fx_random(&random) % 4, &tile));
        check_parts(chain, &tile.in, 1 + (int32_t)(fx_random(&random) % 64),
                    1 + (int32_t)(fx_random(&random) % 48));
        random_tile_free(&tile);
        pb_chain_destroy(chain);
    }
}
END_TEST

/* One scratch for all parts, laid out for the largest, as a block on a GPU has. */
START_TEST(parts_of_several_grids_have_the_bits_of_the_whole)
{
    static const uint32_t source_of[] = {0, 0, 1, 1};
    static struct grid_chain grids;
    uint32_t random = 7;
    int checked = 0;

    for (int i = 0; i < 120; i++) {
        struct pb_chain *chain = NULL;
        struct random_tile tile;
        struct pb_diag diag;

        if (grid_chain_make(&random, 90, &grids, &diag, &chain) < 0)
            continue; /* scales out of bounds, or grids that do not meet */
        const struct pb_geometry grid = pb_chain_geometry(chain);
        const struct pb_rect core = {grid.w / 3, grid.h / 4, grid.w - grid.w / 3,
                                     grid.h - grid.h / 4};

        ck_assert(grid_tile_make(chain, grids.image, GRID_CHAIN_SOURCES, source_of, &core,
                                 (int32_t)(fx_random(&random) % 3), fx_random(&random) % 4, &tile));
        check_parts(chain, &tile.in, 1 + (int32_t)(fx_random(&random) % 64),
                    1 + (int32_t)(fx_random(&random) % 48));
        random_tile_free(&tile);
        checked += !pb_chain_keeps_grid(chain);
        pb_chain_destroy(chain);
    }
    ck_assert_int_gt(checked, 60);
}
END_TEST

/* --- rows ------------------------------------------------------------------------------------ */

START_TEST(stores_leave_what_is_between_the_rows_of_an_output)
{
    enum { W = 5, H = 3, ROW = 9 };
    static uint8_t px[W * H] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const char *const texts[] = {"a + 0", "7"}; /* a register and an immediate are stored */
    const struct pb_rect all = {0, 0, W, H};
    const struct pb_tile_in in = {.window[0].data = px,
                                  .window[0].row_bytes = W,
                                  .window[0].plane_bytes = W * H,
                                  .window[0].rect = all,
                                  .core = all,
                                  .image_w = W,
                                  .image_h = H};

    for (int t = 0; t < 2; t++) {
        const struct pb_item item = {.key = "X", .text = texts[t]};
        const struct pb_chain_input input = {.name = "a",
                                             .type = PB_U8,
                                             .has_nodata = false,
                                             .nodata = 0.0,
                                             .scale = 1.0,
                                             .offset = 0.0};
        const char *const output = "X";
        struct pb_chain *chain = NULL;
        struct pb_sweep sweep;
        struct fx_step step;
        struct pb_diag diag;
        float out[H * ROW];
        size_t at;

        fx_op(&step, "math");
        fx_arg(&step, "bands", &item, 1);
        const struct pb_chain_spec spec = {.inputs = &input,
                                           .n_inputs = 1,
                                           .steps = &step.step,
                                           .n_steps = 1,
                                           .outputs = &output,
                                           .n_outputs = 1};
        ck_assert_int_eq(pb_chain_create(&spec, &diag, &at, &chain), 0);
        void *const memory = aligned_alloc(
            64,
            (pb_program_cpu_bytes(chain->n_registers, chain->stages[0].n_code) + 127) / 64 * 64);
        pb_chain_sweep(chain, 0, &in, &(struct pb_tile_out){out, H * ROW}, NULL, &sweep);
        sweep.out_row = ROW;
        for (int i = 0; i < H * ROW; i++)
            out[i] = -1.0f;
        pb_program_run_cpu(&sweep, memory);
        for (int i = 0; i < H * ROW; i++) {
            const float made = t ? 7.0f : (float)px[i / ROW * W + i % ROW % W];

            ck_assert_msg(out[i] == (i % ROW < W ? made : -1.0f), "%s: %d: %g", texts[t], i,
                          (double)out[i]);
        }
        free(memory);
        pb_chain_destroy(chain);
    }
}
END_TEST

START_TEST(the_mask_has_a_row_length_of_its_own)
{
    enum { W = 4, H = 2, ROW = 7 };
    static uint8_t px[W * H] = {1, 2, 3, 4, 5, 6, 7, 8};
    static uint8_t mask[ROW * H] = {1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0};
    const struct pb_chain_input input = {.name = "a",
                                         .type = PB_U8,
                                         .has_nodata = false,
                                         .nodata = 0.0,
                                         .scale = 1.0,
                                         .offset = 0.0};
    const char *const output = "a";
    const struct pb_chain_spec spec = {.inputs = &input,
                                       .n_inputs = 1,
                                       .steps = NULL,
                                       .n_steps = 0,
                                       .outputs = &output,
                                       .n_outputs = 1};
    const struct pb_rect all = {0, 0, W, H};
    struct pb_tile_in in = {.window[0].data = px,
                            .window[0].row_bytes = W,
                            .window[0].plane_bytes = W * H,
                            .window[0].mask = mask,
                            .window[0].mask_row_bytes = ROW,
                            .window[0].rect = all,
                            .core = all,
                            .image_w = W,
                            .image_h = H};
    struct pb_chain *chain = NULL;
    struct pb_diag diag;
    float out[W * H];
    size_t at;

    ck_assert_int_eq(pb_chain_create(&spec, &diag, &at, &chain), 0);
    ck_assert_int_eq(fx_run(chain, &in, &(struct pb_tile_out){out, W * H}), 0);
    for (int i = 0; i < W * H; i++)
        ck_assert_msg(mask[i / W * ROW + i % W] ? out[i] == (float)px[i] : isnan(out[i]), "%d: %g",
                      i, (double)out[i]);
    in.window[0].mask_row_bytes = W - 1; /* also what a caller leaves that forgot it */
    ck_assert_int_eq(fx_run(chain, &in, &(struct pb_tile_out){out, W * H}), -EINVAL);
    pb_chain_destroy(chain);
}
END_TEST

/* --- what a block needs ---------------------------------------------------------------------- */

START_TEST(registers_and_patches_share_the_memory_of_a_block)
{
    struct pb_stage_focal over = {.focal = {.kind = PB_FOCAL_MAGNITUDE, .radius = 7}};
    struct pb_stage stages[2] = {{.focals = &over, .n_focals = 1, .margin = 7}, {.n_code = 1}};
    struct pb_chain_grid grid = {.w = 1, .h = 1};
    struct pb_chain chain = {.stages = stages,
                             .n_stages = 2,
                             .n_registers = 3,
                             .n_planes = 2,
                             .grids = &grid,
                             .keeps_grid = true};
    struct pb_chain_block_needs needs;

    chain.halo = 7;
    ck_assert_int_eq(pb_chain_block_measure(&chain, 64, 48, 256, 49152, &needs), 0);
    ck_assert_int_eq(needs.px, 4);
    ck_assert_uint_eq(needs.shared_bytes, (46 * 46 + 2 * 46 * 32) * 4); /* more than registers */
    ck_assert_uint_ge(needs.scratch_bytes, 2 * (64 + 14) * (48 + 14) * sizeof(float));
    ck_assert_uint_eq(needs.scratch_bytes % 64, 0);
    ck_assert_int_eq(pb_chain_block_measure(&chain, 64, 48, 32, 20239, &needs), -E2BIG);

    chain.n_registers = 20;
    ck_assert_int_eq(pb_chain_block_measure(&chain, 64, 48, 256, 81920, &needs), 0);
    ck_assert_uint_eq(needs.shared_bytes, 20 * 256 * 16);
    ck_assert_int_eq(pb_chain_block_measure(&chain, 64, 48, 256, 81919, &needs), 0);
    ck_assert_int_eq(needs.px, 1);
    ck_assert_uint_eq(needs.shared_bytes, 20 * 256 * 4);
    ck_assert_int_eq(pb_chain_block_measure(&chain, 64, 48, 256, 20479, &needs), -E2BIG);
}
END_TEST

START_TEST(a_pointwise_chain_needs_no_planes)
{
    struct pb_chain *chain = NULL;
    struct pb_chain_block_needs needs;
    struct pb_diag diag;

    ck_assert_int_eq(fx_expression("ab", "(a - b) / (a + b)", &diag, &chain), 0);
    ck_assert_int_eq(pb_chain_block_measure(chain, 64, 48, 576, 227 * 1024, &needs), 0);
    ck_assert_int_eq(needs.px, 4);
    ck_assert_uint_eq(needs.scratch_bytes, 0);
    ck_assert_uint_eq(needs.shared_bytes, chain->n_registers * 576 * 16);
    pb_chain_destroy(chain);
}
END_TEST

START_TEST(parts_and_crews_that_cannot_be_are_refused)
{
    struct pb_chain *chain = NULL;
    struct pb_chain_block_needs needs;
    struct pb_diag diag;

    ck_assert_int_eq(fx_expression("a", "a", &diag, &chain), 0);
    ck_assert_int_eq(pb_chain_block_measure(chain, 0, 48, 64, 49152, &needs), -EINVAL);
    ck_assert_int_eq(pb_chain_block_measure(chain, 64, -1, 64, 49152, &needs), -EINVAL);
    ck_assert_int_eq(pb_chain_block_measure(chain, 1 << 16, 1 << 16, 64, 49152, &needs), -EINVAL);
    ck_assert_int_eq(pb_chain_block_measure(chain, 64, 48, 0, 49152, &needs), -EINVAL);
    ck_assert_int_eq(pb_chain_block_measure(chain, 64, 48, 48, 49152, &needs), -EINVAL);
    ck_assert_int_eq(pb_chain_block_measure(chain, 64, 48, 1056, 49152, &needs), -EINVAL);
    pb_chain_destroy(chain);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("chain_block");
    TCase *const tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, parts_of_a_tile_have_the_bits_of_the_whole);
    tcase_add_test(tests, parts_of_several_grids_have_the_bits_of_the_whole);
    tcase_add_test(tests, stores_leave_what_is_between_the_rows_of_an_output);
    tcase_add_test(tests, the_mask_has_a_row_length_of_its_own);
    tcase_add_test(tests, registers_and_patches_share_the_memory_of_a_block);
    tcase_add_test(tests, a_pointwise_chain_needs_no_planes);
    tcase_add_test(tests, parts_and_crews_that_cannot_be_are_refused);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
