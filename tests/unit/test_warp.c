/* SPDX-FileCopyrightText: pushbroom authors
 * SPDX-License-Identifier: Apache-2.0
 * ctest: loops
 *
 * Positions of the quadtree against their function; rows on the CPU against the pixel function;
 * tiles against the whole image. */
#include "kernels/resample/warp_area.h"
#include "tests/op_cases.h"
#include "tests/unit/chain_fixture.h"

#include <time.h>

enum { SIDE = 300 };

/* Where the function jumps, and where it is not defined. */
#define JUMP_PX 141.5
#define EDGE_PX 203.0

static void hard_points(void *of, size_t n, double *x, double *y)
{
    (void)of;
    for (size_t i = 0; i < n; i++) {
        const double u = x[i], v = y[i];

        x[i] = u + 0.2 * v + 2 * sin(u / 40) + (u + v / 7 < JUMP_PX ? 0 : -SIDE);
        y[i] = v + u * u / 900;
        if (hypot(u - 250, v - 250) > EDGE_PX)
            x[i] = y[i] = NAN;
    }
}

static struct pb_warp *make(pb_warp_points *points, int32_t side)
{
    struct pb_warp *warp = NULL;
    const struct pb_warp_want want = {
        .w = side, .h = side, .source_w = SIDE, .source_h = SIDE, .has_areas = true};

    ck_assert_int_eq(pb_warp_create(&want, points, NULL, &warp), 0);
    return warp;
}

static struct pb_warp_job job_of(const struct pb_warp *warp, enum pb_resampling how)
{
    struct pb_warp_job job = {.how = how,
                              .warp = warp,
                              .to = pb_map_identity(),
                              .from = pb_map_identity(),
                              .source_w = SIDE,
                              .source_h = SIDE};

    pb_warp_job_scale(&job);
    return job;
}

static bool near_source(double x, double y)
{
    return x > -1 && y > -1 && x < SIDE + 1 && y < SIDE + 1;
}

START_TEST(positions_keep_the_bound_along_a_jump_and_an_edge)
{
    struct pb_warp *const warp = make(hard_points, SIDE);
    const struct pb_warp_job job = job_of(warp, PB_NEAREST);
    size_t there = 0;

    for (int32_t k = 0; k < SIDE * SIDE; k++) {
        double x = k % SIDE + 0.5, y = k / SIDE + 0.5;
        const struct pb_warp_at at = pb_warp_position(&job, x, y, 0);

        hard_points(NULL, 1, &x, &y);
        if (isnan(x))
            ck_assert_msg(isnan(at.x), "pixel %d", k);
        else if (near_source(x, y))
            ck_assert_msg(fabs(at.x - x) < 1e-3 && fabs(at.y - y) < 1e-3, "pixel %d: %g %g", k,
                          at.x - x, at.y - y);
        there += near_source(x, y);
    }
    ck_assert_uint_gt(there, SIDE);
    pb_warp_put(warp);
}
END_TEST

START_TEST(bounds_contain_every_position_and_keep_the_maximum)
{
    struct pb_warp *const warp = make(hard_points, SIDE);
    const struct pb_warp_job job = job_of(warp, PB_NEAREST);
    uint32_t random = 5;

    for (int i = 0; i < 60; i++) {
        const int32_t x0 = (int32_t)(fx_random(&random) % 250),
                      y0 = (int32_t)(fx_random(&random) % 250);
        const int32_t w = 1 + (int32_t)(fx_random(&random) % 50),
                      h = 1 + (int32_t)(fx_random(&random) % 50);
        const struct pb_warp_box area = {x0, y0, x0 + w, y0 + h};
        const struct pb_warp_box box = pb_warp_bounds(warp, &area);
        double most_w, most_h;

        pb_warp_most(warp, w, h, &most_w, &most_h);
        ck_assert(fmin(box.x1, SIDE) - fmax(box.x0, 0) <= most_w);
        ck_assert(fmin(box.y1, SIDE) - fmax(box.y0, 0) <= most_h);
        for (int32_t k = 0; k < w * h; k++) {
            const struct pb_warp_at at =
                pb_warp_position(&job, x0 + k % w + 0.5, y0 + k / w + 0.5, 0);

            ck_assert(isnan(at.x) ||
                      (at.x >= box.x0 && at.x <= box.x1 && at.y >= box.y0 && at.y <= box.y1));
        }
    }
    pb_warp_put(warp);
}
END_TEST

/* Pixels of a coarser plane whose centres are on the new grid, and some of whose ends are not. */
START_TEST(bounds_hold_areas_that_end_beyond_the_new_grid)
{
    struct pb_warp *const warp = make(op_ground_points, 192); /* whole squares */
    static float px[SIDE * SIDE], made[3 * 3];
    static const double offsets[] = {0, -20};

    for (int32_t i = 0; i < SIDE * SIDE; i++)
        px[i] = (float)(i % SIDE);
    for (int c = 0; c < 2; c++)
        for (int how = PB_AVERAGE; how <= PB_MODE; how++) {
            struct pb_warp_job job = job_of(warp, (enum pb_resampling)how);

            job.to = (struct pb_map){100, 100, offsets[c], offsets[c]};
            const struct pb_warp_box all = {0, 0, 192, 192};
            const struct pb_warp_box box = pb_warp_bounds(warp, &all);
            for (int32_t i = 0; i < 9; i++) {
                const struct pb_warp_at at = pb_warp_corner(&job, warp, i % 3, i / 3);

                ck_assert(isnan(at.x) ||
                          (at.x >= box.x0 && at.x <= box.x1 && at.y >= box.y0 && at.y <= box.y1));
            }
            const struct pb_resample_source source = {px, {0, 0, SIDE, SIDE}};
            const struct pb_plane in = {px, source.rect}, out = {made, {0, 0, 3, 3}};
            float *const temp = malloc(pb_warp_temp_px(&job, 3) * sizeof *temp);
            pb_warp_run_cpu(&job, &in, NULL, &out, temp);
            for (int32_t k = 0; k < 9; k++) {
                const struct pb_warp_at at = pb_warp_position(&job, k % 3 + 0.5, k / 3 + 0.5, 0);
                const float pixel = pb_warp_pixel(&job, &source, k % 3, k / 3, &at, NULL);

                ck_assert(memcmp(&pixel, &made[k], sizeof pixel) == 0);
            }
            ck_assert(!isnan(made[0]) && isnan(made[8]));
            free(temp);
        }
    pb_warp_put(warp);
}
END_TEST

START_TEST(a_pixel_alone_has_the_bits_of_the_row)
{
    static float px[SIDE * SIDE], made[SIDE * SIDE];
    static pb_warp_points *const points[] = {hard_points, op_ground_points};
    const struct pb_resample_source source = {px, {0, 0, SIDE, SIDE}};
    const struct pb_plane in = {px, {0, 0, SIDE, SIDE}};
    uint32_t random = 3;

    /* Kernels of their own width, wider along one axis or both, and too wide for a part. */
    static const double scales[][2] = {
        {1.0, 1.0}, {2.3, 1.0}, {1.0, 1.04}, {3.0, 2.0}, {9.7, 13.2}};
    enum { SCALES = sizeof scales / sizeof scales[0] };

    for (size_t i = 0; i < SIDE * SIDE; i++) {
        const uint32_t kind = fx_random(&random) % 400;

        px[i] = kind < 10 ? NAN : kind == 10 ? INFINITY : fx_uniform(&random, -3, 900);
    }
    for (int i = 0; i < 2 * SCALES * PB_RESAMPLING_COUNT; i++) {
        struct pb_warp *const warp = make(points[i % 2], 220);
        struct pb_warp_job job = job_of(warp, (enum pb_resampling)(i / 2 / SCALES));

        job.scale_x = scales[i / 2 % SCALES][0];
        job.scale_y = scales[i / 2 % SCALES][1];
        const struct pb_plane out = {made, {0, 0, 200, job.scale_y > 3 ? 12 : 200}};
        float *const temp = malloc(pb_warp_temp_px(&job, 200) * sizeof *temp);
        ck_assert_ptr_nonnull(temp);
        pb_warp_run_cpu(&job, &in, NULL, &out, temp);
        for (int32_t k = 0; k < 200 * out.rect.h; k++) {
            const struct pb_warp_at at = pb_warp_position(&job, k % 200 + 0.5, k / 200 + 0.5, 0);
            const float pixel = pb_warp_pixel(&job, &source, k % 200, k / 200, &at, NULL);

            ck_assert_msg(memcmp(&pixel, &made[k], sizeof pixel) == 0, "%s: pixel %d: %a and %a",
                          pb_resampling_name(job.how), k, (double)made[k], (double)pixel);
        }
        free(temp);
        pb_warp_put(warp);
    }
}
END_TEST

/* A pixel whose footprint is a rectangle of whole pixels. */
struct rectangle {
    int32_t w, h;
};

static void rectangle_points(void *of, size_t n, double *x, double *y)
{
    const struct rectangle *const r = of;

    for (size_t i = 0; i < n; i++) {
        x[i] *= r->w;
        y[i] *= r->h;
    }
}

static float mode_of_rectangle(const float *px, int32_t side, struct rectangle r)
{
    const struct pb_resample_source source = {px, {0, 0, side, side}};
    const struct pb_warp_want want = {
        .w = 1, .h = 1, .source_w = side, .source_h = side, .has_areas = true};
    struct pb_warp *warp = NULL;

    ck_assert_int_eq(pb_warp_create(&want, rectangle_points, &r, &warp), 0);
    const struct pb_warp_job job = {.how = PB_MODE,
                                    .warp = warp,
                                    .to = pb_map_identity(),
                                    .from = pb_map_identity(),
                                    .source_w = side,
                                    .source_h = side};
    const float mode = pb_warp_area_pixel(&job, &source, 0, 0, NULL);
    pb_warp_put(warp);
    return mode;
}

/* The definition: of the most frequent values the one that was the first to be so. */
static float mode_of(const float *px, int32_t n)
{
    float best = NAN;
    int32_t most = 0;

    for (int32_t i = 0; i < n; i++) {
        int32_t count = 0;

        for (int32_t k = 0; k <= i; k++)
            count += px[k] == px[i];
        best = count > most ? px[i] : best;
        most = count > most ? count : most;
    }
    return best;
}

START_TEST(mode_of_a_large_area_is_that_of_the_definition)
{
    static float px[SIDE * SIDE], part[SIDE * SIDE];
    static const struct {
        int32_t w, h;
        uint32_t kinds;
    } areas[] = {{5, 4, 3}, {17, 9, 40}, {60, 50, 11}, {SIDE, 40, 9000}, {SIDE, 20, 100000}};
    uint32_t random = 11;

    for (size_t c = 0; c < sizeof areas / sizeof areas[0]; c++) {
        for (int32_t i = 0; i < SIDE * SIDE; i++) {
            px[i] = fx_random(&random) % 9 ? (float)(fx_random(&random) % areas[c].kinds) : NAN;
            px[i] = fx_random(&random) % 2 ? px[i] : -px[i]; /* -0 is 0 */
        }
        for (int32_t i = 0; i < areas[c].w * areas[c].h; i++)
            part[i] = px[i / areas[c].w * SIDE + i % areas[c].w];
        const float want = mode_of(part, areas[c].w * areas[c].h);
        const float got = mode_of_rectangle(px, SIDE, (struct rectangle){areas[c].w, areas[c].h});
        ck_assert_msg(want == got, "case %zu: %a, not %a", c, (double)got, (double)want);
    }
}
END_TEST

START_TEST(mode_of_a_very_large_area_takes_no_time)
{
    static float px[500 * 500];
    uint32_t random = 4;

    for (size_t i = 0; i < sizeof px / sizeof *px; i++)
        px[i] = (float)(fx_random(&random) % 200 + 1);
    const clock_t before = clock();
    for (int i = 0; i < 4; i++)
        ck_assert(mode_of_rectangle(px, 500, (struct rectangle){500, 500}) > 0);
    /* 9 s where each pixel is looked for in all before it, 0.1 s otherwise. */
    ck_assert_int_lt((clock() - before) / CLOCKS_PER_SEC, 4);
}
END_TEST

START_TEST(lanczos_weights_are_those_of_the_formula)
{
    for (int i = 1; i < 3000; i++) {
        const double t = i / 1000.0, pi = 3.14159265358979323846;
        const double want = 3 * sin(pi * t) * sin(pi * t / 3) / (pi * pi * t * t);

        ck_assert_double_eq_tol((double)pb_tap_lanczos((float)t), want, 4e-7);
    }
    ck_assert_float_eq(pb_tap_lanczos(0), 1);
}
END_TEST

/* A crop and a focal operation on both sides of the warp, all of it, or in tiles of any size. */
static void run_core(const struct pb_chain *chain, const uint16_t *px, const struct pb_rect *core,
                     float *out)
{
    const struct pb_rect need = pb_chain_need(chain, 0, core);
    const struct pb_rect most = pb_chain_need_most(chain, 0, core->w, core->h);
    const struct pb_geometry grid = pb_chain_geometry(chain);
    uint16_t *const part = malloc(((size_t)need.w * (size_t)need.h + 1) * sizeof *part);
    void *const scratch =
        aligned_alloc(64, (pb_chain_scratch_bytes(chain, core->w, core->h) + 63) / 64 * 64 + 64);
    struct pb_tile_in in = {.core = *core, .image_w = grid.w, .image_h = grid.h};
    const struct pb_tile_out to = {out, (size_t)core->w * (size_t)core->h};

    ck_assert(need.w <= most.w && need.h <= most.h);
    for (int32_t y = 0; y < need.h; y++)
        memcpy(part + (size_t)y * (size_t)need.w, px + (size_t)(need.y + y) * SIDE + (size_t)need.x,
               (size_t)need.w * sizeof *part);
    in.window[0] = (struct pb_window){.data = part,
                                      .row_bytes = (size_t)need.w * sizeof *part,
                                      .plane_bytes = (size_t)need.w * (size_t)need.h * sizeof *part,
                                      .rect = need};
    ck_assert_int_eq(pb_chain_run_cpu(chain, &in, &to, scratch), 0);
    free(part);
    free(scratch);
}

START_TEST(tiles_of_any_size_make_the_whole_image)
{
    static uint16_t px[SIDE * SIDE];
    static float whole[SIDE * SIDE], tile[SIDE * SIDE];
    static const char *const methods[] = {"nearest", "bilinear", "cubic",
                                          "lanczos", "average",  "mode"};
    uint32_t random = 9;

    for (size_t i = 0; i < SIDE * SIDE; i++)
        px[i] = (uint16_t)(fx_random(&random) % 50);
    for (size_t m = 0; m < 6; m++) {
        struct op_params params[3];
        const char *const names[] = {"median", "warp", "median"};
        struct pb_chain_step steps[3];
        const struct pb_item crs = {.text = "EPSG:3857"}, method = {.text = methods[m]};
        const struct pb_scene_facts scene = {
            .has_transform = true, .transform = {0, 1, 0, 0, 0, -1}, .ways = &op_ways};
        const struct pb_chain_input input = {
            .name = "a", .type = PB_U16, .has_nodata = true, .nodata = 3, .scale = 1};
        const struct pb_chain_source source = {SIDE, SIDE, true, pb_map_identity()};
        const char *const output = "a";
        struct pb_chain *chain = NULL;
        struct pb_diag diag;
        size_t at;

        for (int i = 0; i < 3; i++) {
            op_defaults(pb_op_find(names[i]), &params[i]);
            steps[i] = (struct pb_chain_step){pb_op_find(names[i]), &params[i]};
        }
        (void)op_give(steps[1].op, &params[1], "crs", &crs, 1);
        (void)op_give(steps[1].op, &params[1], "method", &method, 1);
        const struct pb_chain_spec spec = {.inputs = &input,
                                           .n_inputs = 1,
                                           .steps = steps,
                                           .n_steps = 3,
                                           .outputs = &output,
                                           .n_outputs = 1,
                                           .sources = &source,
                                           .n_sources = 1,
                                           .scene = &scene};
        ck_assert_msg(pb_chain_create(&spec, &diag, &at, &chain) == 0, "%s", diag.msg);
        const struct pb_geometry grid = pb_chain_geometry(chain);
        const struct pb_rect all = {0, 0, grid.w, grid.h};
        ck_assert_int_eq(grid.w, 285);
        run_core(chain, px, &all, whole);
        for (int32_t side = 31; side < 200; side += 53)
            for (int32_t y = 0; y < grid.h; y += side)
                for (int32_t x = 0; x < grid.w; x += side) {
                    const struct pb_rect core = {x, y, x + side < grid.w ? side : grid.w - x,
                                                 y + side < grid.h ? side : grid.h - y};

                    run_core(chain, px, &core, tile);
                    for (int32_t k = 0; k < core.h; k++)
                        ck_assert_msg(memcmp(tile + (size_t)k * (size_t)core.w,
                                             whole + (size_t)(y + k) * (size_t)grid.w + (size_t)x,
                                             (size_t)core.w * sizeof *tile) == 0,
                                      "%s: tile of %d px at %d, %d", methods[m], side, x, y);
                }
        pb_chain_destroy(chain);
    }
}
END_TEST

enum { WIDE = 9000 };

/* Three pixels of the old grid for one of the new, on which it begins at places[of]. */
static void small_points(void *of, size_t n, double *x, double *y)
{
    const double *const place = of;

    for (size_t i = 0; i < n; i++) {
        x[i] = 3 * (x[i] - *place) + 1e-5 * (y[i] - *place) * (y[i] - *place);
        y[i] = 3 * (y[i] - *place);
    }
}

START_TEST(scales_are_those_of_the_old_grid_wherever_it_lies)
{
    double places[] = {0, 4030, -60};
    double scale[3];

    for (int i = 0; i < 3; i++) {
        struct pb_warp *warp = NULL;
        const int32_t side = i == 1 ? WIDE : SIDE;
        const struct pb_warp_want want = {
            .w = side, .h = side, .source_w = SIDE, .source_h = SIDE, .has_areas = true};

        ck_assert_int_eq(pb_warp_create(&want, small_points, &places[i], &warp), 0);
        scale[i] = warp->scale_x;
        ck_assert_double_eq_tol(warp->scale_x, 3, 1e-4);
        ck_assert_double_eq(warp->scale_y, 3);
        pb_warp_put(warp);
    }
    ck_assert(scale[0] == scale[1] && scale[0] == scale[2]);
}
END_TEST

static size_t asked;

/* A jump far from the old grid, along all of the new one, over it on both sides. */
static void far_jump_points(void *of, size_t n, double *x, double *y)
{
    (void)of;
    asked += n;
    for (size_t i = 0; i < n; i++) {
        x[i] = x[i] - 1000;
        y[i] = y[i] < 6000.3 + x[i] / 100 ? y[i] - 1000 : y[i] - 12000;
    }
}

START_TEST(a_jump_far_from_the_old_grid_asks_for_few_points)
{
    struct pb_warp *warp = NULL;
    const struct pb_warp_want want = {.w = WIDE, .h = WIDE, .source_w = SIDE, .source_h = SIDE};

    asked = 0;
    ck_assert_int_eq(pb_warp_create(&want, far_jump_points, NULL, &warp), 0);
    ck_assert_uint_lt(asked, 300000);
    pb_warp_put(warp);
}
END_TEST

/* Bends along lines, as positions have whose polynomials are interpolated in time. */
static void bent_points(void *of, size_t n, double *x, double *y)
{
    (void)of;
    asked += n;
    for (size_t i = 0; i < n; i++)
        x[i] += 0.02 * fabs(remainder(y[i] + 0.1 * x[i], 90.0));
}

START_TEST(an_allowed_error_is_kept_and_takes_few_points)
{
    size_t exact = 0;

    for (int i = 0; i < 2; i++) {
        const double error = i == 0 ? 0 : 1 / 64.0;
        struct pb_warp *warp = NULL;
        const struct pb_warp_want want = {
            .w = SIDE, .h = SIDE, .source_w = SIDE, .source_h = SIDE, .error_px = error};

        asked = 0;
        ck_assert_int_eq(pb_warp_create(&want, bent_points, NULL, &warp), 0);
        const size_t points = asked;
        const struct pb_warp_job job = job_of(warp, PB_NEAREST);
        for (int32_t k = 0; k < SIDE * SIDE; k++) {
            double x = k % SIDE + 0.5, y = k / SIDE + 0.5;
            const struct pb_warp_at at = pb_warp_position(&job, x, y, 0);

            bent_points(NULL, 1, &x, &y);
            ck_assert(!near_source(x, y) || fabs(at.x - x) <= 3 * fmax(error, PB_WARP_ERROR_PX));
        }
        ck_assert(i == 0 || 3 * points < exact);
        exact = points;
        pb_warp_put(warp);
    }
}
END_TEST

START_TEST(pixels_beyond_the_new_grid_are_nowhere)
{
    struct pb_warp *const warp = make(op_ground_points, 200);
    const struct pb_warp_job job = job_of(warp, PB_NEAREST);
    static float px[SIDE * SIDE], made[40 * 30];
    const struct pb_plane in = {px, {0, 0, SIDE, SIDE}}, out = {made, {180, 185, 40, 30}};
    float *const temp = malloc(pb_warp_temp_px(&job, 40) * sizeof *temp);

    ck_assert_ptr_nonnull(temp);
    pb_warp_run_cpu(&job, &in, NULL, &out, temp);
    for (int32_t k = 0; k < 40 * 30; k++)
        ck_assert_msg(isnan(made[k]) == (k % 40 >= 20 || k / 40 >= 15), "pixel %d", k);
    free(temp);
    pb_warp_put(warp);
}
END_TEST

/* Nearly singular ways make pixels of 1e15 old ones: the reach of a kernel is a number of pixels.
 */
START_TEST(reach_ends_with_the_source)
{
    struct pb_warp_job job = {.how = PB_CUBIC, .source_w = 100, .source_h = 70, .scale_y = 1};

    for (double scale = 1; scale < 1e300; scale *= 3) {
        job.scale_x = scale;
        ck_assert_int_ge(pb_warp_reach(&job), 3);
        ck_assert_int_le(pb_warp_reach(&job), 101);
    }
    ck_assert_int_eq(pb_warp_reach(&job), 101);
    job.scale_x = 2;
    ck_assert_int_eq(pb_warp_reach(&job), 5);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("warp");
    TCase *const tests = tcase_create("all");

    tcase_add_test(tests, positions_keep_the_bound_along_a_jump_and_an_edge);
    tcase_add_test(tests, bounds_contain_every_position_and_keep_the_maximum);
    tcase_add_test(tests, bounds_hold_areas_that_end_beyond_the_new_grid);
    tcase_add_test(tests, a_pixel_alone_has_the_bits_of_the_row);
    tcase_add_test(tests, mode_of_a_large_area_is_that_of_the_definition);
    tcase_add_test(tests, mode_of_a_very_large_area_takes_no_time);
    tcase_add_test(tests, lanczos_weights_are_those_of_the_formula);
    tcase_add_test(tests, tiles_of_any_size_make_the_whole_image);
    tcase_add_test(tests, scales_are_those_of_the_old_grid_wherever_it_lies);
    tcase_add_test(tests, a_jump_far_from_the_old_grid_asks_for_few_points);
    tcase_add_test(tests, an_allowed_error_is_kept_and_takes_few_points);
    tcase_add_test(tests, pixels_beyond_the_new_grid_are_nowhere);
    tcase_add_test(tests, reach_ends_with_the_source);
    suite_add_tcase(suite, tests);
    return fx_main(suite);
}
