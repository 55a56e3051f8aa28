/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: early
 *
 * Warps by device code, run on the host: the CPU's bits, whatever the parts of a tile are; also
 * over ground of different heights, which a band of another source has. */
#include "tests/device/emulate_chain.h"
#include "tests/grid_chain.h"
#include "tests/op_cases.h"
#include "tests/unit/chain_fixture.h"

enum { SIDE = 90, HEIGHTS_W = 45, HEIGHTS_H = 41, STEPS = 3, METHODS = 6 };

static const char *const methods[METHODS] = {"nearest", "bilinear", "cubic",
                                             "lanczos", "average",  "mode"};
/* Windows on both sides, coarser and finer pixels before (whose kernels are wider), a way by two
 * systems, and heights. */
static const char *const chains[][STEPS] = {{"median", "warp", "median"},
                                            {"resample", "warp", "median"},
                                            {"warp", "warp", "unsharp"},
                                            {"median", "relief", "unsharp"},
                                            {"resample", "relief", "warp"}};
static const double factors[METHODS] = {0.4, 3.7, 1.9, 2.6, 9.3, 11.0};

static void give(struct pb_chain_step *step, struct op_params *params, const char *op, int m)
{
    const struct pb_item crs = {.text = "EPSG:3857"}, method = {.text = methods[m]},
                         factor = {.text = "", .num = factors[m]}, dem = {.text = "h"},
                         rpc = {.text = "rpc"};
    static const struct pb_item bands = {.text = "a"}; /* borrowed by params */
    const bool relief = strcmp(op, "relief") == 0;

    op = relief ? "warp" : op;
    step->op = pb_op_find(op);
    step->params = params;
    ck_assert_ptr_nonnull(step->op);
    op_defaults(step->op, params);
    if (strcmp(op, "warp") == 0)
        ck_assert(op_give(step->op, params, "crs", &crs, 1) &&
                  op_give(step->op, params, "method", &method, 1));
    if (relief)
        ck_assert(op_give(step->op, params, "dem", &dem, 1) &&
                  op_give(step->op, params, "from", &rpc, 1));
    ck_assert(op_give(step->op, params, "bands", &bands, 1));
    if (strcmp(op, "resample") == 0)
        ck_assert(op_give(step->op, params, "factor", &factor, 1));
}

static struct pb_chain *make_chain(const char *const names[STEPS], int m, enum pb_type type)
{
    struct op_params params[STEPS];
    struct pb_chain_step steps[STEPS];
    const struct pb_scene_facts scene = {
        .has_transform = true, .transform = {0, 1, 0, 0, 0, -1}, .ways = &op_ways};
    const struct pb_chain_input inputs[] = {
        {.name = "a", .type = type, .has_nodata = true, .nodata = TILE_NODATA, .scale = 1},
        {.name = "h",
         .type = PB_U8,
         .has_nodata = true,
         .nodata = TILE_NODATA,
         .scale = 3.1,
         .offset = 100,
         .source = 1}};
    const struct pb_chain_source sources[] = {{SIDE, SIDE, true, pb_map_identity()},
                                              {HEIGHTS_W, HEIGHTS_H, false, pb_map_identity()}};
    const char *const output = "a";
    const struct pb_chain_spec spec = {.inputs = inputs,
                                       .n_inputs = 2,
                                       .steps = steps,
                                       .n_steps = STEPS,
                                       .outputs = &output,
                                       .n_outputs = 1,
                                       .sources = sources,
                                       .n_sources = 2,
                                       .scene = &scene};
    struct pb_chain *chain = NULL;
    struct pb_diag diag = {.kind = PB_DIAG_NONE};
    size_t at;

    for (int i = 0; i < STEPS; i++)
        give(&steps[i], &params[i], names[i], m);
    ck_assert_msg(pb_chain_create(&spec, &diag, &at, &chain) == 0, "%s", diag.msg);
    return chain;
}

static float *by_cpu(const struct pb_chain *chain, const struct pb_tile_in *in, size_t plane_px)
{
    const size_t bytes = pb_chain_scratch_bytes(chain, in->core.w, in->core.h);
    void *const scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
    const struct pb_tile_out out = {malloc(plane_px * sizeof(float)), plane_px};

    ck_assert_int_eq(pb_chain_run_cpu(chain, in, &out, scratch), 0);
    free(scratch);
    return out.data;
}

static float *by_device(const struct pb_chain *chain, const struct pb_chain_block_shape *shape,
                        const struct pb_tile_in *in, size_t plane_px)
{
    struct pb_chain_block_needs needs;
    void *const tables = calloc(1, pb_chain_device_bytes(chain));
    const struct pb_chain_device device = pb_chain_device_lay(chain, tables, tables);
    const struct pb_tile_out out = {malloc(plane_px * sizeof(float)), plane_px};

    ck_assert_int_eq(pb_chain_block_measure(chain, shape->part_w, shape->part_h, shape->threads,
                                            PB_CHAIN_BLOCK_SHARED, &needs),
                     0);
    float *const scratch = malloc(needs.scratch_bytes);
    memset(scratch, 0x5a, needs.scratch_bytes);
    emulate_chain(&device, shape, &needs, in, &out, scratch, shape->blocks);
    free(scratch);
    free(tables);
    return out.data;
}

static void compare(const struct pb_chain *chain, const struct pb_chain_block_shape *shape,
                    const struct pb_rect *core, enum pb_type type, const char *what)
{
    static const uint32_t source_of[] = {0, 1};
    const struct random_image images[] = {
        {.seed = shape->threads, .type = type, .w = SIDE, .h = SIDE, .masked = shape->blocks == 1},
        {.seed = 3, .type = PB_U8, .w = HEIGHTS_W, .h = HEIGHTS_H}};
    const size_t n = (size_t)core->w * (size_t)core->h;
    struct random_tile tile;

    ck_assert(grid_tile_make(chain, images, 2, source_of, core, 1, 3, &tile));
    float *const cpu = by_cpu(chain, &tile.in, n), *device = by_device(chain, shape, &tile.in, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&cpu[i], &device[i], sizeof *cpu) == 0,
                      "%s, parts of %d x %d: pixel %zu of %d x %d: %a, not %a", what, shape->part_w,
                      shape->part_h, i, core->w, core->h, (double)device[i], (double)cpu[i]);
    free(cpu);
    free(device);
    random_tile_free(&tile);
}

START_TEST(warps_have_the_bits_of_the_cpu)
{
    static const struct pb_chain_block_shape shapes[] = {{64, 48, 64, 1}, {17, 31, 96, 2}};
    const char *const *const names = chains[_i / METHODS];
    const int m = _i % METHODS;
    const enum pb_type type = m % 2 ? PB_U16 : PB_F32;
    struct pb_chain *const chain = make_chain(names, m, type);
    const struct pb_geometry grid = pb_chain_geometry(chain);
    const struct pb_rect cores[] = {{0, 0, grid.w, grid.h},
                                    {grid.w / 3, grid.h / 2, grid.w / 2, grid.h / 4 + 1}};
    char what[80];

    (void)snprintf(what, sizeof what, "%s, %s, %s (%s)", names[0], names[1], names[2], methods[m]);
    ck_assert(!pb_chain_keeps_grid(chain));
#ifdef __SANITIZE_ADDRESS__
    const int first = names == chains[0] ? 0 : 1; /* a part of the grid makes the same accesses */
#else
    const int first = 0;
#endif
    for (int i = first; i < 2; i++)
        compare(chain, &shapes[i], &cores[i], type, what);
    pb_chain_destroy(chain);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("warp on a device");
    TCase *const tests = tcase_create("all");

    tcase_add_loop_test(tests, warps_have_the_bits_of_the_cpu, 0,
                        METHODS * (int)(sizeof chains / sizeof chains[0]));
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
